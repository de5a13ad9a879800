"""A topic as far as this broker hosts it: some of its partitions, by index."""

from __future__ import annotations

from tarry.base import errors
from tarry.log.config import AS_PRODUCED
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import COMPANION, RECORDS, ReplicatedLog


def has_companion(partition: ReplicatedLog) -> bool:
    """Return whether the partition has a log of what waits until it is due."""
    return len(partition.leadership.logs) > COMPANION


class HostedTopic:
    """Name, id and, by index, the partitions: led here, followed here, and elsewhere.

    A partition stands here for the log of its records; its leadership knows the others.
    """

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        # A coordinator's own: clients read it and do not write to it.
        self.is_internal = False
        # Its partitions have companion logs, in which records wait until they are due.
        # open: hosting knows the topic's settings
        self.has_companions = False
        # What this broker leads.
        self.partitions: dict[int, ReplicatedLog] = {}
        # Replicas that are here and led by another broker, or by none.
        self.followed: dict[int, ReplicatedLog] = {}
        # Indexes of the partitions that only other brokers have.
        self.elsewhere: dict[int, None] = {}
        # Indexes of replicas that are to be here and whose logs the disk has refused, the one that
        # was not tried for longest first.
        self.refused: dict[int, None] = {}

    def partition(self, index: int) -> ReplicatedLog | None:
        """Return the partition with this index if it is led here, or None."""
        return self.partitions.get(index)

    def replica(self, index: int) -> ReplicatedLog | None:
        """Return the partition with this index if it has a replica here, or None."""
        return self.partitions.get(index) or self.followed.get(index)

    def replicas(self) -> list[ReplicatedLog]:
        """Return the partitions that have a replica here, whoever leads them."""
        return [*self.partitions.values(), *self.followed.values()]

    def log(self, index: int, which: int) -> ReplicatedLog | None:
        """Return one log of a partition; None if the partition has no replica here."""
        replica = self.replica(index)
        if replica is None or which == RECORDS:
            return replica
        logs = replica.leadership.logs
        return logs[which] if which < len(logs) else None

    def logs(self) -> list[ReplicatedLog]:
        """Return every log on this broker, led here or not."""
        found: list[ReplicatedLog] = []
        for replica in self.replicas():
            found += replica.leadership.logs
        return found

    def place(self, leadership: Leadership) -> None:
        """Keep a replica by the role that it has now."""
        index = leadership.index
        led, other = self.partitions, self.followed
        if not leadership.is_leader:
            led, other = other, led
        other.pop(index, None)
        self.elsewhere.pop(index, None)
        self.refused.pop(index, None)
        led[index] = leadership.records

    def leave(self, index: int) -> None:
        """Keep no replica of a partition: other brokers have it."""
        self.partitions.pop(index, None)
        self.followed.pop(index, None)
        self.refused.pop(index, None)
        self.elsewhere[index] = None

    def refuse(self, index: int) -> None:
        """Note that the disk has refused the log of a replica, now."""
        self.refused.pop(index, None)
        self.refused[index] = None

    def missing_code(self, index: int) -> int:
        """Return the error for a partition not led here: another broker has it, or none."""
        if index in self.refused:
            return errors.KAFKA_STORAGE_ERROR
        if index in self.followed or index in self.elsewhere:
            return errors.NOT_LEADER_OR_FOLLOWER
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def is_unmade(self, index: int) -> bool:
        """Return whether a log of a partition is still to be made."""
        replica = self.replica(index)
        if replica is not None and (not self.has_companions or has_companion(replica)):
            return False
        return index not in self.refused and index not in self.elsewhere

    def goes_in_steps(self, index: int) -> bool:
        """Return whether batches that are produced to a partition go in steps: `compression.type`
        asks for a codec of the topic's own, or the headers of their records are to be read."""
        if self.is_internal:
            return False
        partition = self.partitions.get(index)
        if partition is None:
            return False
        config = partition.config
        if config.compression_codec != AS_PRODUCED or config.has_delay_by_header:
            return True
        parking = partition.leadership.parking
        return parking is not None and parking.reads_headers()
