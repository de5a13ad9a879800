"""Records that were handed to an iteration and are not yielded yet.

A record is finished when the iteration asks for the next one.  Records that were not yielded go
back to the core before another call looks at the positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.position import PartitionPosition


class HandedOut:
    """The record groups of one poll, and how far they were yielded.

    Records are of type Any, because only the face knows their classes; all have a topic and a
    partition.
    """

    __slots__ = ("_current", "_first_offset", "_records", "group", "groups", "is_over", "record")

    def __init__(self, groups: list[Any]) -> None:
        # Items are of class RecordGroup.
        self.groups = groups
        self.group = 0
        self.record = 0
        self.is_over = False
        # Index of the first record that the reader has not finished.
        self._current = 0
        # Records of the group that is being yielded; None before the next group begins.
        self._records: list[Any] | None = None
        # First offset of that group, stored because the user may change the group's list.
        self._first_offset = -1

    def records(self) -> Iterator[Any]:
        """Return an iterator over the records; it ends early if they are given back."""
        return RecordIterator(self)

    def batches(self) -> Iterator[Any]:
        """Return an iterator over the groups; it ends early if they are given back."""
        return GroupIterator(self)

    def next_record(self) -> Any:
        """Return the next record; None at the end, or if the records were given back."""
        while not self.is_over:
            records = self._records
            if records is None:
                records = self._open()
                if records is None:
                    return None
            place = self.record
            if place < len(records):
                self._current = place
                self.record = place + 1
                return records[place]
            self._close()
        return None

    def next_group(self) -> Any:
        """Return the next group; None at the end, or if the groups were given back."""
        if self.is_over:
            return None
        if self._records is not None:
            self._close()
        records = self._open()
        if records is None:
            return None
        self._current = 0
        self._first_offset = records[0].offset
        self.record = len(records)
        return self.groups[self.group]

    def _open(self) -> list[Any] | None:
        if self.group >= len(self.groups):
            return None
        records: list[Any] = self.groups[self.group].records
        self._records = records
        return records

    def _close(self) -> None:
        self._records = None
        self._first_offset = -1
        self.group += 1
        self.record = 0

    def give_back(self, positions: Mapping[TopicPartition, PartitionPosition]) -> None:
        """Give the records that were not yielded back to the positions, last group first to keep
        the order.

        The record that was yielded last counts as unfinished, the records before it as finished.
        """
        self.is_over = True
        for place in range(len(self.groups) - 1, -1, -1):
            group = self.groups[place]
            records: list[Any] = group.records
            position = positions.get((group.topic, group.partition))
            if position is None:
                continue
            if place < self.group:
                position.finish(position.position)
            elif place > self.group:
                position.give_back(records)
            else:
                position.give_back(records[self.record :])
                if self._first_offset >= 0:
                    position.finish(self._first_offset)
                elif self.record > 0:
                    position.finish(records[self._current].offset)
        self.groups = []
        self._records = None


class RecordIterator:
    """Iterator over the records of all groups."""

    __slots__ = ("_handed_out",)

    def __init__(self, handed_out: HandedOut) -> None:
        self._handed_out = handed_out

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> Any:
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
