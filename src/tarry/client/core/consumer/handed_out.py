"""Records that an iteration was given and has not yielded yet.

A record is finished when the next one is asked for.  So whatever the core took for an iteration
goes back to it, unless it was yielded, before anything else looks at the positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tarry.base.ids import TopicPartition
from tarry.client.codecs import Key, Value
from tarry.client.core.consumer.position import PartitionPosition

KeyOut_co = TypeVar("KeyOut_co", covariant=True)
ValueOut_co = TypeVar("ValueOut_co", covariant=True)


class TypedRecord(Protocol[KeyOut_co, ValueOut_co]):
    """Record with a key and a value of any class: a `Record` has bytes, after codecs there are
    objects."""

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def key(self) -> KeyOut_co | None: ...

    @property
    def value(self) -> ValueOut_co | None: ...

    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...


class RecordGroup(NamedTuple, Generic[Key, Value]):
    """Records of one partition in the order of their offsets."""

    topic: str
    partition: int
    records: list[TypedRecord[Key, Value]]


class ConsumerRecord(Generic[Key, Value]):
    """A record with the partition it came from.  Looks its fields up when they are asked for:
    copying all of them costs more than the one or two that a loop reads."""

    __slots__ = ("_record", "partition", "topic")

    def __init__(self, topic: str, partition: int, record: TypedRecord[Key, Value]) -> None:
        self.topic = topic
        self.partition = partition
        self._record = record

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def timestamp(self) -> int:
        return self._record.timestamp

    @property
    def key(self) -> Key | None:
        return self._record.key

    @property
    def value(self) -> Value | None:
        return self._record.value

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._record.headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConsumerRecord)
            and self.partition == other.partition
            and self.topic == other.topic
            and self._record == other._record
        )

    def __hash__(self) -> int:
        return self._record.offset

    def __reduce__(self) -> tuple[object, ...]:
        return ConsumerRecord, (self.topic, self.partition, self._record)

    def __repr__(self) -> str:
        return f"ConsumerRecord({self.topic} [{self.partition}] at {self.offset}, {self.value!r})"


class HandedOut:
    """The groups of one poll, and how far they were yielded.  Any: the face knows the classes of
    keys and values."""

    def __init__(self, groups: list[RecordGroup[Any, Any]]) -> None:
        self.groups = groups
        self.group = 0
        self.record = 0
        # The first record that whoever reads still works on.
        self._current = 0
        self.is_over = False

    def records(self) -> Iterator[ConsumerRecord[Any, Any]]:
        """Yield the records one by one, until they are given back."""
        while self.group < len(self.groups):
            topic, partition, records = self.groups[self.group]
            for place, record in enumerate(records):
                self._current = place
                self.record = place + 1
                yield ConsumerRecord(topic, partition, record)
                if self.is_over:
                    return
            self.group += 1
            self.record = 0

    def batches(self) -> Iterator[RecordGroup[Any, Any]]:
        """Yield a group at a time, until they are given back."""
        while self.group < len(self.groups):
            group = self.groups[self.group]
            self._current = 0
            self.record = len(group.records)
            yield group
            if self.is_over:
                return
            self.group += 1
            self.record = 0

    def give_back(self, positions: Mapping[TopicPartition, PartitionPosition]) -> None:
        """Give back what was not yielded, from the last on, so that the order stays; what was
        yielded last is not finished, what came before it is."""
        self.is_over = True
        for place in range(len(self.groups) - 1, -1, -1):
            topic, partition, records = self.groups[place]
            position = positions.get((topic, partition))
            if position is None:
                continue
            if place < self.group:
                position.finish(position.position)
            elif place > self.group:
                position.give_back(records)
            else:
                position.give_back(records[self.record :])
                if self.record > 0:
                    position.finish(records[self._current].offset)
        self.groups = []
