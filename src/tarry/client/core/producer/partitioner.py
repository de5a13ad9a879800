"""Partitioner: chooses the partition of a record if the caller names none.

For a record with a key, a hash of the key's bytes chooses, so that all clients with the same hash
agree: murmur2 as in Java, or crc32 as librdkafka's default.  Records without a key stick to one
partition until its batch is closed (KIP-480), which makes few large batches instead of many small
ones.
"""

from __future__ import annotations

import zlib
from operator import index
from typing import Any, Final

from librt.strings import read_i32_le
from mypy_extensions import i64

from tarry.base.doors import Random
from tarry.client.core.topic import NO_LEADER, Topic
from tarry.client.errors import PartitionerFailed
from tarry.client.settings import PartitionFunction

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFF_FFFF

ANY_PARTITION: Final = -1


def murmur2(data: bytes) -> int:
    """Compute Kafka's murmur2 as an unsigned 32-bit number."""
    size: i64 = len(data)
    value: i64 = SEED ^ size
    whole: i64 = size & ~3
    position: i64 = 0
    while position < whole:
        word: i64 = (i64(read_i32_le(data, position)) & MASK) * MULTIPLIER & MASK
        word = (word ^ (word >> 24)) * MULTIPLIER & MASK
        value = (value * MULTIPLIER & MASK) ^ word
        position += 4
    if size > whole:
        value ^= int.from_bytes(data[whole:], "little")
        value = value * MULTIPLIER & MASK
    value = (value ^ (value >> 13)) * MULTIPLIER & MASK
    return value ^ (value >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


def partition_by_crc32(key: bytes, partition_count: int) -> int:
    return zlib.crc32(key) % partition_count


def partition_by_hash(key: bytes, partition_count: int, is_crc32: bool) -> int:
    """Return the partition of a key, by the hash of librdkafka's default or by Java's."""
    if is_crc32:
        return partition_by_crc32(key, partition_count)
    return partition_for_key(key, partition_count)


def may_go_anywhere(key: bytes | None, is_crc32: bool) -> bool:
    """Return true if the key chooses no partition; with crc32, like librdkafka, an empty one does
    not either."""
    return key is None or (is_crc32 and not key)


def partition_of_function(
    function: PartitionFunction, topic: str, key: bytes | None, partition_count: int
) -> int:
    """Return the partition that the user's function chooses.  Raises `PartitionerFailed` if the
    function raises, or if there is no such partition."""
    # The function belongs to the user and may return anything, so its result is Any.
    ask: Any = function
    try:
        chosen: Any = ask(topic, key, partition_count)
    except Exception as error:
        failure = PartitionerFailed(
            f"the partitioner raised {type(error).__name__} for a record of topic {topic!r}, which "
            f"was not sent: {error}"
        )
        # Set the cause here: compiled code ignores the error after `from`.
        failure.__cause__ = error
        raise failure from error
    try:
        partition = index(chosen)
    except TypeError:
        partition = ANY_PARTITION
    if isinstance(chosen, bool) or not 0 <= partition < partition_count:
        raise PartitionerFailed(
            f"the partitioner returned {chosen!r:.60} for a record of topic {topic!r}, which was "
            f"not sent; return an int from 0 to {partition_count - 1}"
        )
    return partition


class Partitioner:
    """Partitioner that remembers the sticky partition of each topic."""

    def __init__(self, random: Random, name: str = "murmur2") -> None:
        self._random = random
        self._is_crc32 = name == "crc32"
        self._sticky: dict[str, int] = {}

    def sticks(self, key: bytes | None) -> bool:
        """Return true if the record may go to any partition."""
        return may_go_anywhere(key, self._is_crc32)

    def choose(self, topic: Topic, key: bytes | None) -> int:
        if key is not None and not self.sticks(key):
            return partition_by_hash(key, len(topic.partitions), self._is_crc32)
        partition = self._sticky.get(topic.name, ANY_PARTITION)
        if partition == ANY_PARTITION or partition not in topic.partitions:
            partition = self._draw(topic)
            self._sticky[topic.name] = partition
        return partition

    def on_batch_closed(self, topic: str, partition: int) -> None:
        """Forget the sticky partition, so that the next record without a key may choose another."""
        if self._sticky.get(topic) == partition:
            del self._sticky[topic]

    def _draw(self, topic: Topic) -> int:
        """Draw a partition with a leader; if none has a leader, draw one of all partitions."""
        led = [one.index for one in topic.partitions.values() if one.leader_id != NO_LEADER]
        choices = led or list(topic.partitions)
        return choices[self._random.randrange(len(choices))]
