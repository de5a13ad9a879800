"""Counts of scheduled records: how late they are, in buckets."""

from __future__ import annotations

from tarry.base.turn import Turn
from tarry.base.wait_buckets import bucket_of
from tarry.schedule.counts import LATENESS_BUCKETS, TopicCounts

DUE_MS = 1_000


def counts_at(turn: Turn) -> TopicCounts:
    return TopicCounts("tasks", turn)


def counted(counts: TopicCounts) -> dict[int, int]:
    return {number: count for number, count in enumerate(counts.lateness) if count}


def test_records_are_counted_by_how_late_they_are():
    turn = Turn(0, DUE_MS + 40)
    counts = counts_at(turn)

    counts.add_released(10, DUE_MS)
    counts.add_released(1, DUE_MS + 40)

    assert counted(counts) == {0: 1, bucket_of(40): 10}
    assert (counts.released, counts.longest_late_ms) == (11, 40)


def test_a_clock_that_was_set_back_makes_nothing_early():
    counts = counts_at(Turn(0, DUE_MS - 500))

    counts.add_released(1, DUE_MS)

    assert (counted(counts), counts.longest_late_ms) == ({0: 1}, 0)


def test_what_is_late_by_years_is_in_the_last_bucket():
    counts = counts_at(Turn(0, DUE_MS + 10**12))

    counts.add_released(3, DUE_MS)

    assert counted(counts) == {LATENESS_BUCKETS - 1: 3}
    assert counts.longest_late_ms == 10**12
