"""Topics hosted here, by name and by id, with look-ups for handlers.  Hot."""

from __future__ import annotations

from tarry.base import errors
from tarry.cluster.state.scheduled_topics import other_id, scheduled_name, topic_shown_by
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic, ReadableTopic, ScheduledTopic


def missing_code(hosted: ReadableTopic | None, index: int) -> int:
    """Return the error for a partition that is not led here."""
    if hosted is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    return hosted.missing_code(index)


def _scheduled(hosted: HostedTopic | None) -> ScheduledTopic | None:
    """Return the virtual topic of a topic; None if no record of the topic may wait."""
    if hosted is None or not hosted.has_companions:
        return None
    return ScheduledTopic(scheduled_name(hosted.name), other_id(hosted.topic_id), hosted)


class Topics:
    """Topics of which this broker has partitions, by name and by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, HostedTopic] = {}
        self._by_id: dict[bytes, HostedTopic] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> HostedTopic:
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> HostedTopic | None:
        """Return the topic with this name, or None."""
        return self._by_name.get(name)

    def with_id(self, topic_id: bytes) -> HostedTopic | None:
        """Return the topic with this id, or None."""
        return self._by_id.get(topic_id)

    def readable(self, name: str) -> ReadableTopic | None:
        """Return the topic with this name as consumers read it, which may be virtual; or None."""
        hosted = self._by_name.get(name)
        if hosted is not None:
            return hosted
        return _scheduled(self._by_name.get(topic_shown_by(name)))

    def readable_with_id(self, topic_id: bytes) -> ReadableTopic | None:
        """Return the topic with this id as consumers read it, which may be virtual; or None."""
        hosted = self._by_id.get(topic_id)
        if hosted is not None:
            return hosted
        return _scheduled(self._by_id.get(other_id(topic_id)))

    def partition(self, name: str, index: int) -> ReplicatedLog | None:
        """Return the partition with this index of the topic with this name, if it is led here."""
        hosted = self._by_name.get(name)
        return None if hosted is None else hosted.partition(index)

    def replica(self, name: str, index: int) -> ReplicatedLog | None:
        """Return this broker's replica of a partition, whoever leads it, or None."""
        hosted = self._by_name.get(name)
        return None if hosted is None else hosted.replica(index)

    def names(self) -> list[str]:
        """Return the names of the topics, sorted."""
        return sorted(self._by_name)

    def all(self) -> list[HostedTopic]:
        """Return every topic."""
        return list(self._by_id.values())

    def partitions(self) -> list[ReplicatedLog]:
        """Return every partition that is led here, topic by topic."""
        return [
            partition for hosted in self._by_id.values() for partition in hosted.partitions.values()
        ]

    def replicas(self) -> list[ReplicatedLog]:
        """Return every partition that has a log here, topic by topic."""
        return [partition for hosted in self._by_id.values() for partition in hosted.replicas()]

    def logs(self) -> list[ReplicatedLog]:
        """Return every log on this broker, topic by topic."""
        return [log for hosted in self._by_id.values() for log in hosted.logs()]

    def add(self, hosted: HostedTopic) -> None:
        """Add a topic; it replaces an earlier one of the same name."""
        self._by_name[hosted.name] = hosted
        self._by_id[hosted.topic_id] = hosted

    def remove(self, topic_id: bytes) -> HostedTopic | None:
        """Remove the topic with this id and return it; None if there is none."""
        hosted = self._by_id.pop(topic_id, None)
        if hosted is not None and self._by_name.get(hosted.name) is hosted:
            del self._by_name[hosted.name]
        return hosted
