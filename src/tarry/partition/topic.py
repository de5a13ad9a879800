"""A topic as far as this broker hosts it: some of its partitions, by index."""

from __future__ import annotations

from tarry.base import errors
from tarry.log.config import AS_PRODUCED
from tarry.partition.state import Partition


class HostedTopic:
    """Name, id and, by index, the partitions that have a replica here."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        # A coordinator's own: clients read it and do not write to it.
        self.is_internal = False
        self.partitions: dict[int, Partition] = {}
        # Indexes of the partitions that only other brokers have.
        self.elsewhere: dict[int, None] = {}

    def partition(self, index: int) -> Partition | None:
        """Return the partition with this index, or None."""
        return self.partitions.get(index)

    def has(self, index: int) -> bool:
        """Return whether the topic has this partition, here or at another broker."""
        return index in self.partitions or index in self.elsewhere

    def missing_code(self, index: int) -> int:
        """Return the error for a partition that is not here: another broker has it, or none."""
        if index in self.elsewhere:
            return errors.NOT_LEADER_OR_FOLLOWER
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def recompresses(self) -> bool:
        """Return whether `compression.type` asks for a codec of the topic's own."""
        if self.is_internal:
            return False
        for partition in self.partitions.values():
            return partition.config.compression_codec != AS_PRODUCED
        return False
