"""Arguments of a send, checked before anything has changed."""

from __future__ import annotations

from tarry.client.core.outgoing import (
    Content,
    HeadersGiven,
    check_partition,
    check_timestamp,
    check_topic,
    content_of,
    pairs_of,
)
from tarry.client.core.producer.core import Appended
from tarry.client.core.producer.partitioner import ANY_PARTITION


def record_of(
    topic: str,
    value: Content | None,
    key: Content | None,
    headers: HeadersGiven | None,
    *,
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
    value = content_of("value", value)
    key = content_of("key", key)
    pairs = None if headers is None else pairs_of(headers) or None
    return topic, place, timestamp, key, value, pairs
