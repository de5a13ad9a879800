"""ProducerFace: what a producer is asked without waiting, alike in every face; and the arguments of
a send, checked before anything has changed."""

from __future__ import annotations

from typing import Any

from tarry.client.codecs import Codec, check_codec, encoded
from tarry.client.core.outgoing import (
    HeadersGiven,
    check_partition,
    check_timestamp,
    check_topic,
    content_of,
    pairs_of,
)
from tarry.client.core.producer.core import Appended, ProducerCore
from tarry.client.core.producer.partitioner import ANY_PARTITION
from tarry.client.face.face import ClientFace
from tarry.client.metrics import ProducerMetrics
from tarry.client.settings import ProducerSettings

# Codecs of keys and of values; None: bytes are given.
Codecs = tuple[Codec[Any] | None, Codec[Any] | None]


class ProducerFace(ClientFace[ProducerCore]):
    """Face to be subclassed."""

    settings: ProducerSettings

    def metrics(self) -> ProducerMetrics:
        """Return what this producer has done so far; cheap enough for every call."""
        with self._driver.lock:
            return self._core.metrics(self._driver.now_ms())

    @property
    def trouble(self) -> str:
        """Reason why records are not sent at the moment; empty if nothing seems wrong."""
        with self._driver.lock:
            return self._core.trouble(self._driver.now_ms())

    @property
    def settled(self) -> int:
        """Count that grows whenever a broker takes records, or refuses them for good."""
        return self._core.sender.settled

    @property
    def acknowledged(self) -> int:
        """Number of records that brokers have taken; with acks=0 those that were sent."""
        return self._core.accumulator.acknowledged

    @property
    def is_waiting(self) -> bool:
        """True if records wait to be acknowledged, or the last ones waited in vain."""
        accumulator = self._core.accumulator
        return accumulator.has_expired or not accumulator.is_empty


def codecs_of(key: Codec[Any] | None, value: Codec[Any] | None) -> Codecs | None:
    """Return the codecs of a producer, None if it has none; TypeError for what is no codec."""
    for argument, codec in (("key", key), ("value", value)):
        if codec is not None:
            check_codec(argument, codec)
    return None if key is None and value is None else (key, value)


def encoded_pair(codecs: Codecs, key: object, value: object) -> tuple[object, object]:
    """Return key and value as their codecs encode them."""
    key_codec, value_codec = codecs
    return (
        key if key_codec is None else encoded(key_codec, "key", key),
        value if value_codec is None else encoded(value_codec, "value", value),
    )


def record_of(
    topic: str,
    value: object,
    key: object,
    headers: HeadersGiven | None,
    *,
    codecs: Codecs | None,
    partition: int | None,
    timestamp: int | None,
    now_wall_ms: int,
) -> Appended:
    """Return the record as the core appends it; raise TypeError or ValueError for an argument that
    no record can have."""
    check_topic(topic)
    if timestamp is None:
        timestamp = now_wall_ms
    else:
        check_timestamp(timestamp)
    place = ANY_PARTITION
    if partition is not None:
        check_partition(partition)
        place = partition
    if codecs is not None:
        key, value = encoded_pair(codecs, key, value)
    pairs = None if headers is None else pairs_of(headers) or None
    return topic, place, timestamp, content_of("key", key), content_of("value", value), pairs
