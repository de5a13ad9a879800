"""Offsets of a query: by topic and partition, with the id of each topic, as JSON that Spark keeps.

    {"orders": {"id": "Vx8sT0aPQ2yJc1xE2mWk3A", "0": 12, "1": 40}}

A topic that was deleted and made anew has another id, so that its offsets are not taken for those
of the old one.  The order of the keys is fixed: Spark compares offsets as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarry.base.ids import TopicPartition
from tarry.spark.reading.bounds import ID_KEY


@dataclass
class TopicOffsets:
    """Offsets of one topic by partition; the id is "" where the broker has none."""

    topic_id: str
    offsets: dict[int, int] = field(default_factory=dict)


@dataclass
class QueryOffsets:
    """Offsets of all topics of a query."""

    topics: dict[str, TopicOffsets] = field(default_factory=dict)

    def places(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield each partition with its offset, in order."""
        for topic in sorted(self.topics):
            for partition, offset in sorted(self.topics[topic].offsets.items()):
                yield (topic, partition), offset

    def get(self, place: TopicPartition) -> int | None:
        """Return the offset of a partition, None if it has none."""
        topic = self.topics.get(place[0])
        return None if topic is None else topic.offsets.get(place[1])

    def set(self, place: TopicPartition, offset: int, topic_id: str) -> None:
        """Set the offset of a partition."""
        topic = self.topics.setdefault(place[0], TopicOffsets(topic_id))
        topic.offsets[place[1]] = offset

    def to_json(self) -> dict[str, dict[str, int | str]]:
        """Return what Spark keeps."""
        made: dict[str, dict[str, int | str]] = {}
        for name in sorted(self.topics):
            topic = self.topics[name]
            made[name] = {ID_KEY: topic.topic_id} if topic.topic_id else {}
            for partition, offset in sorted(topic.offsets.items()):
                made[name][str(partition)] = offset
        return made

    @classmethod
    def from_json(cls, kept: Mapping[str, Mapping[str, Any]]) -> QueryOffsets:
        """Read what Spark kept."""
        made = cls()
        for name, by_partition in kept.items():
            numbers = {
                int(partition): int(offset)
                for partition, offset in by_partition.items()
                if partition != ID_KEY
            }
            made.topics[name] = TopicOffsets(str(by_partition.get(ID_KEY, "")), numbers)
        return made
