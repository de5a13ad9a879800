"""RecordGroup: records of one partition, as a poll hands them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload, runtime_checkable

from tarry.client.codecs import Key, KeyOut_co, Value, ValueOut_co


@runtime_checkable
class ConsumerRecord(Protocol[KeyOut_co, ValueOut_co]):
    """Record that a consumer hands out: a `Record` with bytes, or what codecs made of one."""

    @property
    def topic(self) -> str:
        """Topic of the record."""

    @property
    def partition(self) -> int:
        """Partition of the record."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def timestamp(self) -> int:
        """Time in milliseconds since 1970, set by the producer or, with
        `message.timestamp.type=LogAppendTime`, by the broker at the append; -1 if there is none."""

    @property
    def key(self) -> KeyOut_co | None:
        """Key; None if the record has none."""

    @property
    def value(self) -> ValueOut_co | None:
        """Value; None for a tombstone."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in their order, as pairs of a name and bytes; a name may come twice."""


# Old name of ConsumerRecord, from the time when records of a poll had no topic.
TypedRecord = ConsumerRecord


class RecordGroup(Sequence[ConsumerRecord[Key, Value]]):
    """Records of one partition in the order of their offsets: a sequence of records, with their
    `topic` and `partition`.  `records` is the list of them.

    `next_offset` is the offset at which reading goes on: after the last record, and after aborted
    records and markers that follow it.
    """

    __slots__ = ("next_offset", "partition", "records", "topic")

    def __init__(
        self,
        topic: str,
        partition: int,
        records: list[ConsumerRecord[Key, Value]],
        next_offset: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records
        if next_offset is None:
            next_offset = records[-1].offset + 1 if records else -1
        self.next_offset = next_offset

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.records)

    def __iter__(self) -> Iterator[ConsumerRecord[Key, Value]]:
        """Yield record after record."""
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> ConsumerRecord[Key, Value]: ...

    @overload
    def __getitem__(self, index: slice) -> list[ConsumerRecord[Key, Value]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> ConsumerRecord[Key, Value] | list[ConsumerRecord[Key, Value]]:
        """Return the record at this place, or a list of records."""
        return self.records[index]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RecordGroup)
            and self.topic == other.topic
            and self.partition == other.partition
            and self.records == other.records
            and self.next_offset == other.next_offset
        )

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __reduce__(self) -> tuple[object, ...]:
        return RecordGroup, (self.topic, self.partition, self.records, self.next_offset)

    def __repr__(self) -> str:
        return f"<RecordGroup {self.topic} [{self.partition}], {len(self.records)} records>"
