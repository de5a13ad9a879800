"""What an iteration was given and has not yielded yet.

A record is finished when the next one is asked for.  So whatever the core took for an iteration
goes back to it, unless it was yielded, before anything else looks at the positions.
"""

from __future__ import annotations

from tarry.client.core.consumer import ConsumerCore, RecordGroup
from tarry.records.record import Record


class ConsumerRecord:
    """A record with the partition it came from."""

    __slots__ = ("headers", "key", "offset", "partition", "timestamp", "topic", "value")

    def __init__(self, topic: str, partition: int, record: Record) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = record.offset
        self.timestamp = record.timestamp
        self.key = record.key
        self.value = record.value
        self.headers = record.headers

    def __repr__(self) -> str:
        return f"ConsumerRecord({self.topic} [{self.partition}] at {self.offset}, {self.value!r})"


class HandedOut:
    """The groups of one poll, and how far they were yielded."""

    def __init__(self, groups: list[RecordGroup]) -> None:
        self.groups = groups
        self.group = 0
        self.record = 0
        # The first record that whoever reads still works on.
        self._current = 0
        self.is_over = False

    def next_record(self) -> ConsumerRecord | None:
        """None when everything was yielded."""
        while self.group < len(self.groups):
            topic, partition, records = self.groups[self.group]
            if self.record < len(records):
                record = records[self.record]
                self._current = self.record
                self.record += 1
                return ConsumerRecord(topic, partition, record)
            self.group += 1
            self.record = 0
        return None

    def next_group(self) -> RecordGroup | None:
        """The same, a group at a time; not to be mixed with records."""
        if self.record > 0:
            self.group += 1
        if self.group >= len(self.groups):
            return None
        group = self.groups[self.group]
        self.record = len(group.records)
        self._current = 0
        return group

    def give_back(self, core: ConsumerCore) -> None:
        """To the core what was not yielded, from the last on, so that the order stays; what was
        yielded last is not finished, what came before it is."""
        self.is_over = True
        for place in range(len(self.groups) - 1, -1, -1):
            topic, partition, records = self.groups[place]
            position = core.fetcher.positions.get((topic, partition))
            if position is None:
                continue
            if place < self.group:
                position.finished = position.position
            elif place > self.group:
                core.give_back(position, records)
            else:
                core.give_back(position, records[self.record :])
                if self.record > 0:
                    position.finished = records[self._current].offset
        self.groups = []
