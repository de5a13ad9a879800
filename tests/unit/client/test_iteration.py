"""Iteration: record after record out of polls, and another poll when a tick is over."""

from __future__ import annotations

import pytest

from tarry.client.core.consumer.handed_out import HandedOut
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.consumer.record_group import ConsumerRecord, RecordGroup
from tarry.client.core.group.offsets.what import offsets_behind
from tarry.client.face import iteration
from tarry.client.face.iteration import TICK_NS, PiecesForATick, PolledRecords
from tarry.records.record import Record


class Polls:
    """Polls that bring records of one partition, so many at a time."""

    def __init__(self, *counts: int) -> None:
        self.counts = list(counts)
        self.made: list[HandedOut] = []
        self.error: Exception | None = None

    def hand_out(self) -> HandedOut | None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if not self.counts:
            return None
        first = 100 * len(self.made)
        records = [Record(first + one, 0, None, b"v", None) for one in range(self.counts.pop(0))]
        self.made.append(HandedOut([RecordGroup("orders", 0, records)]))
        return self.made[-1]


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(iteration, "monotonic_ns", made)
    return made


def test_records_come_poll_after_poll_until_there_is_none():
    records = PolledRecords(Polls(2, 0, 1).hand_out)

    assert [record.offset for record in records] == [0, 1, 200]
    assert list(records) == []


def test_an_error_of_a_poll_does_not_end_the_iteration():
    polls = Polls(1, 1)
    records = PolledRecords(polls.hand_out)
    assert next(records).offset == 0
    polls.error = ValueError("told")

    with pytest.raises(ValueError, match="told"):
        next(records)

    assert [record.offset for record in records] == [100]


def test_a_slow_body_polls_again_after_each_record(clock: Clock):
    polls = Polls(3, 3)
    found = []
    for record in PolledRecords(polls.hand_out):
        found.append(record.offset)
        clock.now_ns += TICK_NS

    assert found == [0, 100]


def test_a_body_that_turns_slow_polls_again_after_a_few_records(clock: Clock):
    polls = Polls(100, 1)
    found = []
    for record in PolledRecords(polls.hand_out):
        found.append(record.offset)
        if len(found) > 50:
            clock.now_ns += TICK_NS

    assert found[-1] == 100
    assert 51 <= len(found[:-1]) <= 58


def test_a_fast_body_looks_at_the_clock_at_every_eighth_record(clock: Clock):
    assert len(list(PolledRecords(Polls(800).hand_out))) == 800

    assert 100 <= clock.looks <= 110


def test_what_a_tick_leaves_is_left_to_its_owner(clock: Clock):
    pieces = iter(range(5))
    found = []
    for piece in PiecesForATick(pieces):
        found.append(piece)
        clock.now_ns += TICK_NS // 2

    assert found == [0, 1]
    assert list(pieces) == [2, 3, 4]


def test_a_group_whose_records_were_taken_out_is_in_hand_and_can_be_committed():
    """Whoever works on a group may empty its list on the way."""
    position = PartitionPosition("orders", 0)
    position.seek(9)
    records = [Record(offset, 0, None, b"v", None) for offset in range(5, 8)]
    group = RecordGroup("orders", 0, records, 9)
    handed_out = HandedOut([group])
    assert handed_out.next_group() is group
    group.records.clear()

    handed_out.give_back({("orders", 0): position})

    assert (position.finished, position.position, position.left_over) == (5, 9, [])
    assert offsets_behind(group)["orders", 0].offset == 9


def test_a_record_that_nobody_has_read_is_not_committed_anywhere():
    with pytest.raises(ValueError, match="without a topic"):
        offsets_behind(Record(4, 0, None, b"v", None))


def test_a_record_is_known_by_its_class():
    assert isinstance(Record(4, 0, None, b"v", None), ConsumerRecord)
