"""Records that an iteration was given and has not yielded yet.

A record is finished when the next one is asked for.  So whatever the core took for an iteration
goes back to it, unless it was yielded, before anything else looks at the positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.position import PartitionPosition


class HandedOut:
    """The groups of one poll, and how far they were yielded.  Any: the face knows the classes of
    records, which have their topic and partition."""

    __slots__ = ("_current", "_first_offset", "_records", "group", "groups", "is_over", "record")

    def __init__(self, groups: list[Any]) -> None:
        # Of class RecordGroup.
        self.groups = groups
        self.group = 0
        self.record = 0
        self.is_over = False
        # The first record that whoever reads still works on.
        self._current = 0
        # Those of the group that is being yielded; None: the next one begins.
        self._records: list[Any] | None = None
        # Where that group begins: whoever was given the group may take records out of its list.
        self._first_offset = -1

    def records(self) -> Iterator[Any]:
        """Iterate over the records one by one, until they are given back."""
        return RecordIterator(self)

    def batches(self) -> Iterator[Any]:
        """Iterate over the groups, until they are given back."""
        return GroupIterator(self)

    def next_record(self) -> Any:
        """Return the next record; None: there is none, or they were given back."""
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
        """Return the next group; None: there is none, or they were given back."""
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
        """Give back what was not yielded, from the last on, so that the order stays; what was
        yielded last is not finished, what came before it is."""
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
