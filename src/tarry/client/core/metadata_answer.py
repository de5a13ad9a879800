"""MetadataAnswer: the content of a Metadata answer, read in steps.

An answer of a large cluster has a million elements.  `read_in_steps` stops after each
`ELEMENTS_PER_STEP` of them, so that no turn is long, and builds only the topics that are to be
kept.  The fields and their versions are those of `protocol/schema/metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from tarry.client.core.topic import BrokerMetadata, PartitionMetadata, Topic, brokers_of
from tarry.protocol.messages.metadata import MetadataResponseBroker
from tarry.wire.reader import MalformedData, Reader

# Number of elements of one step: about 5 ms if the reader is compiled, 20 ms if not.
ELEMENTS_PER_STEP: Final = 5_000

# Limits of one answer.  Kafka's largest clusters have some hundred brokers and 200,000 partitions.
BROKERS_MAX: Final = 10_000
TOPICS_MAX: Final = 300_000
PARTITIONS_MAX: Final = 300_000


class MetadataAnswer:
    """Brokers and topics of one answer.  `topics` has the kept ones in the answer's order; `names`
    has all names, each with whether the topic is internal."""

    def __init__(self) -> None:
        self.throttle_time_ms = 0
        self.brokers: dict[int, BrokerMetadata] = {}
        self.cluster_id = ""
        self.controller_id = -1
        self.topics: list[Topic] = []
        self.names: dict[str, bool] = {}


class _Fields:
    """Reader of an answer's fields in one version; it counts the elements that were read since the
    last step."""

    def __init__(self, reader: Reader, version: int) -> None:
        self.reader = reader
        self.version = version
        self.is_flexible = version >= 9
        self.work = 0
        self.partitions_left = PARTITIONS_MAX

    def count(self, what: str, size_min: int, count_max: int) -> int:
        """Read the length of an array whose elements have at least `size_min` bytes."""
        reader = self.reader
        count: int
        if self.is_flexible:
            count = reader.compact_array_length(size_min)
        else:
            count = reader.array_length(size_min)
        if count < 0:
            raise MalformedData(f"{what} must not be null")
        if count > count_max:
            raise MalformedData(f"more than {count_max} {what} in one answer")
        return count

    def text(self) -> str:
        return self.reader.compact_string() if self.is_flexible else self.reader.string()

    def nullable_text(self) -> str | None:
        reader = self.reader
        return reader.compact_nullable_string() if self.is_flexible else reader.nullable_string()

    def end_struct(self) -> None:
        if self.is_flexible:
            self.reader.skip_tagged_fields()

    def broker(self) -> MetadataResponseBroker:
        broker_id = self.reader.i32()
        host, port = self.text(), self.reader.i32()
        rack = self.nullable_text() if self.version >= 1 else None
        self.end_struct()
        self.work += 1
        return MetadataResponseBroker(broker_id, host, port, rack)

    def replicas(self) -> list[int]:
        count = self.count("replicas of one partition", 4, BROKERS_MAX)
        self.work += count
        i32 = self.reader.i32
        return [i32() for _ in range(count)]

    def partition(self) -> PartitionMetadata:
        reader = self.reader
        error_code, index, leader_id = reader.i16(), reader.i32(), reader.i32()
        made = PartitionMetadata(
            index,
            leader_id,
            reader.i32() if self.version >= 7 else -1,
            error_code=error_code,
            replicas=self.replicas(),
            isr=self.replicas(),
            offline_replicas=self.replicas() if self.version >= 5 else (),
        )
        self.end_struct()
        self.work += 1
        return made

    def topic(self) -> Topic:
        """Read the fields of a topic that come before its partitions."""
        reader = self.reader
        error_code = reader.i16()
        name = self.nullable_text()
        if name is None and self.version < 12:
            raise MalformedData("name must not be null")
        topic = Topic(name or "", error_code)
        if self.version >= 10:
            topic.topic_id = reader.uuid()
        if self.version >= 1:
            topic.is_internal = reader.boolean()
        self.work += 1
        return topic

    def end_topic(self) -> None:
        if self.version >= 8:
            # Operations that the client may perform; they are not kept.
            self.reader.i32()
        self.end_struct()

    def end_answer(self) -> None:
        if 8 <= self.version <= 10:
            self.reader.i32()
        if self.version >= 13:
            self.reader.i16()
        self.end_struct()


Keep = Callable[[str], object]
Steps = Generator[None, None, None]
ReadInSteps = Generator[None, None, MetadataAnswer]


def read_in_steps(reader: Reader, version: int, keep: Keep | None = None) -> ReadInSteps:
    """Read an answer, one step each time that the generator is advanced; it returns the answer.

    `keep` returns whether a topic of this name is wanted; without it all are.  Raises MalformedData
    for more elements than an answer may have, and for a negative partition.
    """
    fields = _Fields(reader, version)
    answer = MetadataAnswer()
    if version >= 3:
        answer.throttle_time_ms = reader.i32()
    count = fields.count("brokers", 11 if fields.is_flexible else 10, BROKERS_MAX)
    answer.brokers = brokers_of(fields.broker() for _ in range(count))
    if version >= 2:
        answer.cluster_id = fields.nullable_text() or ""
    if version >= 1:
        answer.controller_id = reader.i32()
    for _ in range(fields.count("topics", 10 if fields.is_flexible else 8, TOPICS_MAX)):
        topic = fields.topic()
        answer.names[topic.name] = topic.is_internal
        is_kept = keep is None or bool(keep(topic.name))
        yield from _read_partitions(fields, topic, is_kept=is_kept)
        fields.end_topic()
        if is_kept:
            answer.topics.append(topic)
        if fields.work >= ELEMENTS_PER_STEP:
            fields.work = 0
            yield
    fields.end_answer()
    return answer


def _read_partitions(fields: _Fields, topic: Topic, *, is_kept: bool) -> Steps:
    count = fields.count("partitions", 18, fields.partitions_left)
    fields.partitions_left -= count
    found: dict[int, PartitionMetadata] = {}
    is_ordered = True
    last = -1
    for _ in range(count):
        partition = fields.partition()
        if partition.index < 0:
            raise MalformedData(
                f"topic {topic.name!r:.260} has partition {partition.index}, and those count from 0"
            )
        if is_kept:
            found[partition.index] = partition
            is_ordered = is_ordered and last < partition.index
            last = partition.index
        if fields.work >= ELEMENTS_PER_STEP:
            fields.work = 0
            yield
    topic.partitions = found if is_ordered else {index: found[index] for index in sorted(found)}


def read_metadata(reader: Reader, version: int) -> MetadataAnswer:
    """Read an answer at once, with all its topics."""
    steps = read_in_steps(reader, version)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: MetadataAnswer = end.value
            return answer
