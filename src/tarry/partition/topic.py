"""A topic as far as this broker hosts it: some of its partitions, by index."""

from __future__ import annotations

from tarry.base import errors
from tarry.log.config import AS_PRODUCED
from tarry.partition.state import Partition


class HostedTopic:
    """Name, id and, by index, the partitions: led here, followed here, and elsewhere."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        # A coordinator's own: clients read it and do not write to it.
        self.is_internal = False
        # What this broker leads.
        self.partitions: dict[int, Partition] = {}
        # Replicas that are here and led by another broker, or by none.
        self.followed: dict[int, Partition] = {}
        # Indexes of the partitions that only other brokers have.
        self.elsewhere: dict[int, None] = {}

    def partition(self, index: int) -> Partition | None:
        """Return the partition with this index if it is led here, or None."""
        return self.partitions.get(index)

    def replica(self, index: int) -> Partition | None:
        """Return the partition with this index if it has a replica here, or None."""
        return self.partitions.get(index) or self.followed.get(index)

    def replicas(self) -> list[Partition]:
        """Return the partitions that have a replica here, whoever leads them."""
        return [*self.partitions.values(), *self.followed.values()]

    def place(self, partition: Partition) -> None:
        """Keep a replica by the role that it has now."""
        index = partition.index
        led, other = self.partitions, self.followed
        if not partition.is_leader:
            led, other = other, led
        other.pop(index, None)
        self.elsewhere.pop(index, None)
        led[index] = partition

    def drop(self, partition: Partition) -> None:
        """Keep a replica no more: other brokers have the partition."""
        self.partitions.pop(partition.index, None)
        self.followed.pop(partition.index, None)
        self.elsewhere[partition.index] = None

    def has(self, index: int) -> bool:
        """Return whether the topic has this partition, here or at another broker."""
        return index in self.partitions or index in self.followed or index in self.elsewhere

    def missing_code(self, index: int) -> int:
        """Return the error for a partition not led here: another broker has it, or none."""
        if index in self.followed or index in self.elsewhere:
            return errors.NOT_LEADER_OR_FOLLOWER
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def recompresses(self) -> bool:
        """Return whether `compression.type` asks for a codec of the topic's own."""
        if self.is_internal:
            return False
        for partition in self.partitions.values():
            return partition.config.compression_codec != AS_PRODUCED
        return False
