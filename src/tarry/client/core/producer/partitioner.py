"""Partitioner: which partition a record goes to when the caller names none.

With a key the partition follows from murmur2 of its bytes, as in Java, so that all clients agree.
Without one, records stick to one partition until its batch is closed (KIP-480): few large batches
instead of many small ones.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Random
from tarry.client.core.metadata import NO_LEADER, Topic

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFF_FFFF

ANY_PARTITION: Final = -1


def murmur2(data: bytes) -> int:
    """Compute Kafka's murmur2 as an unsigned 32-bit number."""
    size = len(data)
    value = SEED ^ size
    whole = size & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * MULTIPLIER & MASK
        word = (word ^ (word >> 24)) * MULTIPLIER & MASK
        value = (value * MULTIPLIER & MASK) ^ word
    if size > whole:
        value ^= int.from_bytes(data[whole:], "little")
        value = value * MULTIPLIER & MASK
    value = (value ^ (value >> 13)) * MULTIPLIER & MASK
    return value ^ (value >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


class Partitioner:
    """Partitioner that remembers the sticky partition of each topic."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._sticky: dict[str, int] = {}

    def choose(self, topic: Topic, key: bytes | None) -> int:
        if key is not None:
            return partition_for_key(key, len(topic.partitions))
        partition = self._sticky.get(topic.name, ANY_PARTITION)
        if partition == ANY_PARTITION or partition not in topic.partitions:
            partition = self._draw(topic)
            self._sticky[topic.name] = partition
        return partition

    def on_batch_closed(self, topic: str, partition: int) -> None:
        """Forget the sticky partition: the next record without a key may go to another one."""
        if self._sticky.get(topic) == partition:
            del self._sticky[topic]

    def _draw(self, topic: Topic) -> int:
        """Draw a partition that has a leader, or one of all partitions if none has a leader."""
        led = [one.index for one in topic.partitions.values() if one.leader_id != NO_LEADER]
        choices = led or list(topic.partitions)
        return choices[self._random.randrange(len(choices))]
