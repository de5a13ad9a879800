"""A topic as this broker hosts it: some of its partitions, by index.

Consumers read the topic, and, under the name of a virtual topic, its companion logs.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.log.config import AS_PRODUCED
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import COMPANION, RECORDS, ReplicatedLog


def has_companion(partition: ReplicatedLog) -> bool:
    """Return True if the partition has a companion log, in which records wait until due."""
    return len(partition.leadership.logs) > COMPANION


class ReadableTopic:
    """Topic as its consumers know it: name, id and, by index, the logs that they read."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        # True for a topic of the broker itself: clients read it and do not write to it.
        self.is_internal = False

    def partition(self, index: int) -> ReplicatedLog | None:
        """Return the log with this index if this broker leads it, or None."""
        raise NotImplementedError

    def missing_code(self, index: int) -> int:
        """Return the error code for a partition that this broker does not lead."""
        raise NotImplementedError


class HostedTopic(ReadableTopic):
    """Partitions of a topic by index: led here, followed here, and elsewhere.

    Each partition is represented by the log of its records, whose leadership knows the others.
    """

    def __init__(self, name: str, topic_id: bytes) -> None:
        super().__init__(name, topic_id)
        # True if its partitions have companion logs, in which records wait until they are due.
        # open: hosting knows the topic's settings
        self.has_companions = False
        # Partitions that this broker leads.
        self.partitions: dict[int, ReplicatedLog] = {}
        # Replicas on this broker of partitions that another broker leads, or none.
        self.followed: dict[int, ReplicatedLog] = {}
        # Indexes of the partitions that only other brokers have.
        self.elsewhere: dict[int, None] = {}
        # Indexes of replicas that belong here and whose logs the disk has refused, in the order of
        # the last attempt, oldest first.
        self.refused: dict[int, None] = {}

    def partition(self, index: int) -> ReplicatedLog | None:
        return self.partitions.get(index)

    def replica(self, index: int) -> ReplicatedLog | None:
        """Return the partition with this index if it has a replica here, or None."""
        return self.partitions.get(index) or self.followed.get(index)

    def replicas(self) -> list[ReplicatedLog]:
        """Return the partitions that have a replica here, led here or not."""
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
        """File a replica under its present role."""
        index = leadership.index
        led, other = self.partitions, self.followed
        if not leadership.is_leader:
            led, other = other, led
        other.pop(index, None)
        self.elsewhere.pop(index, None)
        # The disk may have refused the companion log alone; it is tried again whatever the role.
        if not self.has_companions or has_companion(leadership.records):
            self.refused.pop(index, None)
        led[index] = leadership.records

    def leave(self, index: int) -> None:
        """Drop the replica of a partition: only other brokers have it."""
        self.partitions.pop(index, None)
        self.followed.pop(index, None)
        self.refused.pop(index, None)
        self.elsewhere[index] = None

    def refuse(self, index: int) -> None:
        """Note that the disk has just refused the log of a replica."""
        self.refused.pop(index, None)
        self.refused[index] = None

    def missing_code(self, index: int) -> int:
        if index in self.refused:
            return errors.KAFKA_STORAGE_ERROR
        if index in self.followed or index in self.elsewhere:
            return errors.NOT_LEADER_OR_FOLLOWER
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def is_unmade(self, index: int) -> bool:
        """Return True if a log of a partition is still to be made."""
        replica = self.replica(index)
        if replica is not None and (not self.has_companions or has_companion(replica)):
            return False
        return index not in self.refused and index not in self.elsewhere

    def goes_in_steps(self, index: int) -> bool:
        """Return True if batches produced to a partition are handled in steps: `compression.type`
        sets a codec, or the headers of their records must be read."""
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


class ScheduledTopic(ReadableTopic):
    """Virtual topic of the records of a hosted topic that wait: its logs are the companion logs."""

    def __init__(self, name: str, topic_id: bytes, topic: HostedTopic) -> None:
        super().__init__(name, topic_id)
        self.is_internal = True
        self._topic = topic

    def partition(self, index: int) -> ReplicatedLog | None:
        partition = self._topic.partition(index)
        if partition is None or not has_companion(partition):
            return None
        return partition.leadership.logs[COMPANION]

    def missing_code(self, index: int) -> int:
        if self._topic.partition(index) is not None:
            # The disk has refused the companion log, or the log is not made yet.
            return errors.KAFKA_STORAGE_ERROR
        return self._topic.missing_code(index)
