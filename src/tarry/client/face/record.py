"""Record: the arguments of a send, checked before anything has changed."""

from __future__ import annotations

from typing import Any

from tarry.client.codecs import Codec, check_codec, encoded
from tarry.client.core.outgoing import (
    check_partition,
    check_timestamp,
    check_topic,
    content_of,
    pairs_of,
)
from tarry.client.core.producer.intake import Appended
from tarry.client.core.producer.partitioner import ANY_PARTITION

# Codecs of keys and of values; None if bytes are given.
Codecs = tuple[Codec[Any] | None, Codec[Any] | None]


def codecs_of(key: Codec[Any] | None, value: Codec[Any] | None) -> Codecs | None:
    """Return the codecs of a producer, None if it has none; raise TypeError for an invalid one."""
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
    topic: object,
    value: object,
    key: object,
    headers: object,
    *,
    codecs: Codecs | None,
    partition: object,
    timestamp: object,
    now_wall_ms: int,
) -> Appended:
    """Return the record in the form that the core appends; raise TypeError or ValueError for an
    invalid argument."""
    check_topic(topic)
    assert isinstance(topic, str)
    time = now_wall_ms
    if timestamp is not None:
        check_timestamp(timestamp)
        assert isinstance(timestamp, int)
        time = timestamp
    place = ANY_PARTITION
    if partition is not None:
        check_partition(partition)
        assert isinstance(partition, int)
        place = partition
    if codecs is not None:
        key, value = encoded_pair(codecs, key, value)
    key_bytes, value_bytes = content_of("key", key), content_of("value", value)
    pairs = None if headers is None else pairs_of(headers) or None
    return topic, place, time, key_bytes, value_bytes, pairs
