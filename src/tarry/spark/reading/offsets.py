"""Offsets of a query: by topic and partition, with the id of each topic, as JSON that Spark keeps.

    {"orders": {"id": "Vx8sT0aPQ2yJc1xE2mWk3A", "0": 12, "1": 40,
                "epochs": {"0": [[0, 0]], "1": [[0, 0], [3, 25]]}}}

A topic that was deleted and made anew has another id, so that its offsets are not taken for those
of the old one.  The epochs are those of the leaders that wrote the records before an offset, each
with its first offset, so that a log that was cut and written anew is not taken for the one that
was read; older versions of Tarry noted none.  The order of the keys is fixed: Spark compares
offsets as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarry.base.ids import TopicPartition
from tarry.spark.histories.lines import Line, NotedPlace, line_of
from tarry.spark.reading.bounds import EPOCHS_KEY, ID_KEY


@dataclass
class TopicOffsets:
    """Offsets of one topic by partition, and lines of the logs there as far as they are known; the
    id is "" where the broker has none."""

    topic_id: str
    offsets: dict[int, int] = field(default_factory=dict)
    lines: dict[int, Line] = field(default_factory=dict)


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

    def noted(self, place: TopicPartition) -> NotedPlace | None:
        """Return the offset of a partition and the line of its log, None if it has none."""
        offset = self.get(place)
        if offset is None:
            return None
        topic = self.topics[place[0]]
        return NotedPlace(offset, topic.lines.get(place[1], ()), topic.topic_id)

    def set(self, place: TopicPartition, offset: int, topic_id: str, line: Line = ()) -> None:
        """Set the offset of a partition, and the line of its log there."""
        topic = self.topics.setdefault(place[0], TopicOffsets(topic_id))
        topic.offsets[place[1]] = offset
        topic.lines.pop(place[1], None)
        if line:
            topic.lines[place[1]] = line

    def bare_places(self) -> dict[TopicPartition, int]:
        """Return the partitions whose line is not known, with their offsets."""
        return {
            place: offset
            for place, offset in self.places()
            if place[1] not in self.topics[place[0]].lines
        }

    def note(self, lines: Mapping[TopicPartition, Line]) -> None:
        """Set the lines of logs at the offsets that are there."""
        for (topic, partition), line in lines.items():
            self.topics[topic].lines[partition] = line

    def is_at(self, other: QueryOffsets) -> bool:
        """Tell whether others are the same places, whatever is known of the logs there."""
        mine, others = self.topics, other.topics
        return list(self.places()) == list(other.places()) and all(
            mine[name].topic_id == others[name].topic_id for name in mine if name in others
        )

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return what Spark keeps."""
        made: dict[str, dict[str, Any]] = {}
        for name in sorted(self.topics):
            topic = self.topics[name]
            made[name] = {ID_KEY: topic.topic_id} if topic.topic_id else {}
            for partition, offset in sorted(topic.offsets.items()):
                made[name][str(partition)] = offset
            if topic.lines:
                made[name][EPOCHS_KEY] = {
                    str(partition): [list(one) for one in line]
                    for partition, line in sorted(topic.lines.items())
                }
        return made

    @classmethod
    def from_json(cls, kept: Mapping[str, Mapping[str, Any]]) -> QueryOffsets:
        """Read what Spark kept."""
        made = cls()
        for name, by_partition in kept.items():
            numbers = {
                int(partition): int(offset)
                for partition, offset in by_partition.items()
                if partition not in (ID_KEY, EPOCHS_KEY)
            }
            epochs = by_partition.get(EPOCHS_KEY) or {}
            lines = {one: line for one in numbers if (line := line_of(epochs.get(str(one))))}
            made.topics[name] = TopicOffsets(str(by_partition.get(ID_KEY, "")), numbers, lines)
        return made
