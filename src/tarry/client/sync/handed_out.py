"""What an iteration was given and has not yielded yet.

A record is finished when the next one is asked for.  So whatever the core took for an iteration
goes back to it, unless it was yielded, before anything else looks at the positions.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarry.client.core.consumer.core import ConsumerCore, RecordGroup
from tarry.client.sync.driver import monotonic_ms
from tarry.records.record import Record


class ConsumerRecord:
    """A record with the partition it came from.  Looks its fields up when they are asked for:
    copying all of them costs more than the one or two that a loop reads."""

    __slots__ = ("_record", "partition", "topic")

    def __init__(self, topic: str, partition: int, record: Record) -> None:
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
    def key(self) -> bytes | None:
        return self._record.key

    @property
    def value(self) -> bytes | None:
        return self._record.value

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._record.headers

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

    def records(self, until_ms: int) -> Iterator[ConsumerRecord]:
        """One by one, until the time is up or they were given back: then it is time for a poll."""
        while self.group < len(self.groups):
            topic, partition, records = self.groups[self.group]
            for place, record in enumerate(records):
                self._current = place
                self.record = place + 1
                yield ConsumerRecord(topic, partition, record)
                if self.is_over or monotonic_ms() >= until_ms:
                    return
            self.group += 1
            self.record = 0

    def batches(self, until_ms: int) -> Iterator[RecordGroup]:
        """The same, a group at a time."""
        while self.group < len(self.groups):
            group = self.groups[self.group]
            self._current = 0
            self.record = len(group.records)
            yield group
            if self.is_over or monotonic_ms() >= until_ms:
                return
            self.group += 1
            self.record = 0

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
                position.finish(position.position)
            elif place > self.group:
                core.give_back(position, records)
            else:
                core.give_back(position, records[self.record :])
                if self.record > 0:
                    position.finish(records[self._current].offset)
        self.groups = []
