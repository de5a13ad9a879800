"""Records that an iteration was given and has not yielded yet.

A record is finished when the next one is asked for.  So whatever the core took for an iteration
goes back to it, unless it was yielded, before anything else looks at the positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, cast

from mypy_extensions import mypyc_attr

from tarry.base.ids import TopicPartition
from tarry.client.codecs import Key, Value
from tarry.client.core.consumer.position import PartitionPosition
from tarry.records.record import Record


# A loop makes one after the other: the memory of the last one serves again.
@mypyc_attr(free_list_len=1)
class ConsumerRecord(Generic[Key, Value]):
    """Record with the `topic` and the `partition` that it came from."""

    # Its fields are looked up when they are asked for: to copy all of them costs more than the one
    # or two that a loop reads.
    __slots__ = ("_record", "partition", "topic")

    def __init__(self, topic: str, partition: int, record: Any) -> None:
        self.topic = topic
        self.partition = partition
        # A `Record`, or what codecs made of one.
        self._record: Any = record

    @property
    def offset(self) -> int:
        """Offset in the partition."""
        record = self._record
        # Compiled, an attribute of a known class is found without a look-up.
        if isinstance(record, Record):
            return record.offset
        offset: int = record.offset
        return offset

    @property
    def timestamp(self) -> int:
        """Time in milliseconds since 1970, of the producer or, with
        `message.timestamp.type=LogAppendTime`, of the append; -1: none."""
        timestamp: int = self._record.timestamp
        return timestamp

    @property
    def key(self) -> Key | None:
        """Key; None if the record has none."""
        record = self._record
        if isinstance(record, Record):
            return cast("Key | None", record.key)
        key: Key | None = record.key
        return key

    @property
    def value(self) -> Value | None:
        """Value; None for a tombstone."""
        record = self._record
        if isinstance(record, Record):
            return cast("Value | None", record.value)
        value: Value | None = record.value
        return value

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in their order, as pairs of a name and bytes; a name may come twice."""
        headers: list[tuple[str, bytes | None]] = self._record.headers
        return headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConsumerRecord)
            and self.partition == other.partition
            and self.topic == other.topic
            and bool(self._record == other._record)
        )

    def __hash__(self) -> int:
        return hash(self._record)

    def __reduce__(self) -> tuple[object, ...]:
        return ConsumerRecord, (self.topic, self.partition, self._record)

    def __repr__(self) -> str:
        return f"ConsumerRecord({self.topic} [{self.partition}] at {self.offset}, {self.value!r})"


class HandedOut:
    """The groups of one poll, and how far they were yielded.  Any: the face knows the classes of
    keys and values."""

    __slots__ = ("_current", "_opened", "group", "groups", "is_over", "record")

    def __init__(self, groups: list[Any]) -> None:
        # Of class RecordGroup.
        self.groups = groups
        self.group = 0
        self.record = 0
        self.is_over = False
        # The first record that whoever reads still works on.
        self._current = 0
        # The group that is being yielded; None: the next one begins.
        self._opened: OpenedGroup | None = None

    def records(self) -> Iterator[ConsumerRecord[Any, Any]]:
        """Iterate over the records one by one, until they are given back."""
        return RecordIterator(self)

    def batches(self) -> Iterator[Any]:
        """Iterate over the groups, until they are given back."""
        return GroupIterator(self)

    def next_record(self) -> ConsumerRecord[Any, Any] | None:
        """Return the next record; None: there is none, or they were given back."""
        while not self.is_over:
            opened = self._opened
            if opened is None:
                opened = self._open()
                if opened is None:
                    return None
            place = self.record
            if place < len(opened.records):
                self._current = place
                self.record = place + 1
                return ConsumerRecord(opened.topic, opened.partition, opened.records[place])
            self._close()
        return None

    def next_group(self) -> Any:
        """Return the next group; None: there is none, or they were given back."""
        if self.is_over:
            return None
        if self._opened is not None:
            self._close()
        opened = self._open()
        if opened is None:
            return None
        self._current = 0
        self.record = len(opened.records)
        return self.groups[self.group]

    def _open(self) -> OpenedGroup | None:
        if self.group >= len(self.groups):
            return None
        topic, partition, records = self.groups[self.group]
        self._opened = opened = OpenedGroup(topic, partition, records)
        return opened

    def _close(self) -> None:
        self._opened = None
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
        self._opened = None


class OpenedGroup:
    """Parts of the group that is being yielded."""

    __slots__ = ("partition", "records", "topic")

    def __init__(self, topic: str, partition: int, records: list[Any]) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records


class RecordIterator:
    """Iterator over the records of all groups."""

    __slots__ = ("_handed_out",)

    def __init__(self, handed_out: HandedOut) -> None:
        self._handed_out = handed_out

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> ConsumerRecord[Any, Any]:
        record = self._handed_out.next_record()
        if record is None:
            raise StopIteration
        return record


class GroupIterator:
    """Iterator over the groups."""

    __slots__ = ("_handed_out",)

    def __init__(self, handed_out: HandedOut) -> None:
        self._handed_out = handed_out

    def __iter__(self) -> GroupIterator:
        return self

    def __next__(self) -> Any:
        group = self._handed_out.next_group()
        if group is None:
            raise StopIteration
        return group
