"""The wheel's edges, one sentence each; the laws stand in tests/model."""

from __future__ import annotations

from typing import Any

import pytest

from tarry.timer import TimerEntry, TimingWheel
from tarry.timer.wheel import CHUNKS_MIN


class Named(TimerEntry):
    """An entry that a test can recognise."""

    def __init__(self, deadline_ms: int, name: str = "") -> None:
        super().__init__(deadline_ms)
        self.name = name


def added(wheel: TimingWheel, *deadlines_ms: int) -> list[TimerEntry]:
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    for entry in entries:
        assert wheel.add(entry)
    return entries


def deadlines(entries: list[TimerEntry]) -> list[int]:
    return [entry.deadline_ms for entry in entries]


def test_an_entry_within_the_interval_is_taken_and_counted() -> None:
    wheel = TimingWheel(0)

    (entry,) = added(wheel, 5)

    assert len(wheel) == 1
    assert entry.is_pending
    assert wheel.next_due_ms() == 5


@pytest.mark.parametrize("deadline_ms", [-5, 0, 999, 1000])
def test_an_entry_that_is_due_is_left_to_the_caller(deadline_ms: int) -> None:
    wheel = TimingWheel(1000)
    entry = TimerEntry(deadline_ms)

    taken = wheel.add(entry)

    assert not taken
    assert not entry.is_pending
    assert len(wheel) == 0


def test_an_entry_due_one_tick_from_now_is_not_due_now() -> None:
    wheel = TimingWheel(1000)

    added(wheel, 1001)

    assert wheel.advance(1000) == []
    assert deadlines(wheel.advance(1001)) == [1001]


def test_a_deadline_rounds_up_to_the_tick_so_that_nothing_is_early() -> None:
    wheel = TimingWheel(0, tick_ms=10)

    added(wheel, 5, 11)

    assert wheel.advance(9) == []
    assert deadlines(wheel.advance(10)) == [5]
    assert wheel.advance(19) == []
    assert deadlines(wheel.advance(20)) == [11]


def test_an_entry_in_the_current_tick_waits_for_the_next_one() -> None:
    wheel = TimingWheel(15, tick_ms=10)

    assert wheel.current_ms == 10
    assert not wheel.add(TimerEntry(10))
    assert wheel.add(TimerEntry(11))


def test_advancing_within_a_tick_does_not_move_the_time() -> None:
    wheel = TimingWheel(0, tick_ms=10)

    wheel.advance(9)
    within = wheel.current_ms
    wheel.advance(29)

    assert within == 0
    assert wheel.current_ms == 20


def test_going_back_in_time_does_nothing() -> None:
    wheel = TimingWheel(100)
    added(wheel, 105)

    due = wheel.advance(50)

    assert due == []
    assert wheel.current_ms == 100


def test_an_entry_due_in_445_ms_falls_through_three_wheels() -> None:
    wheel = TimingWheel(0)
    added(wheel, 445)

    seen = []
    while (due_ms := wheel.next_due_ms()) is not None:
        assert wheel.advance(due_ms - 1) == []
        seen.append((due_ms, deadlines(wheel.advance(due_ms))))

    assert seen == [(400, []), (440, []), (445, [445])]


def test_what_is_due_comes_in_order_of_deadline_over_six_levels() -> None:
    wheel = TimingWheel(0, tick_ms=1, wheel_size=3)
    wanted = [*range(1, 5), *range(1, 5), *range(10, 100), *range(10, 100), *range(100, 500)]
    added(wheel, *wanted)

    due = wheel.advance(1000)

    assert deadlines(due) == sorted(wanted)
    assert len(wheel) == 0
    assert wheel.next_due_ms() is None


def test_exact_deadlines_within_one_tick_are_in_order_too() -> None:
    wheel = TimingWheel(0, tick_ms=100)
    added(wheel, 399, 301, 350, 400, 302)

    due = wheel.advance(400)

    assert deadlines(due) == [301, 302, 350, 399, 400]


def test_ties_come_in_the_order_in_which_they_were_added() -> None:
    wheel = TimingWheel(0)
    entries = [Named(7, name) for name in "abcdef"]
    for entry in entries:
        wheel.add(entry)

    due = wheel.advance(7)

    assert due == entries


def test_a_cancelled_entry_never_comes_and_holds_nothing() -> None:
    wheel = TimingWheel(0)
    first, second, third = added(wheel, 5, 5, 5)

    assert wheel.cancel(second)
    assert not wheel.cancel(second)

    assert not second.is_pending
    assert second._holder is None
    assert wheel.advance(10) == [first, third]


def test_ties_keep_their_order_whatever_is_cancelled_between_them() -> None:
    wheel = TimingWheel(0)
    entries = added(wheel, *[350] * 100)

    for number in (0, 7, 99, *range(20, 95)):
        wheel.cancel(entries[number])

    left = [entry for entry in entries if entry.is_pending]
    assert len(left) == 22
    assert wheel.advance(350, 10) == []
    assert wheel.advance(350, 100) == left


def test_cancelling_keeps_the_memory_of_a_bucket_bounded() -> None:
    wheel = TimingWheel(0)
    (held,) = added(wheel, 350)
    for _ in range(1000):
        first, second = added(wheel, 350, 350)
        wheel.cancel(first)
        wheel.cancel(second)

    assert held._holder is not None
    assert len(held._holder.entries) < 10


def test_an_emptied_bucket_does_not_wake_anybody() -> None:
    wheel = TimingWheel(0)
    early, _late = added(wheel, 5, 5000)

    wheel.cancel(early)

    assert wheel.next_due_ms() == 400 * 12
    assert wheel.advance(100) == []


def test_a_bucket_that_was_emptied_and_filled_again_is_queued_once() -> None:
    wheel = TimingWheel(0)
    for _ in range(100):
        (entry,) = added(wheel, 15)
        wheel.cancel(entry)

    added(wheel, 15)

    assert len(wheel._queue) == 1


def test_an_entry_may_be_added_again_after_it_came() -> None:
    wheel = TimingWheel(0)
    (entry,) = added(wheel, 3)
    wheel.advance(3)

    entry.deadline_ms = 9

    assert wheel.add(entry)
    assert wheel.advance(9) == [entry]


def test_adding_a_pending_entry_is_refused_and_the_wheel_stays_whole() -> None:
    wheel = TimingWheel(0)
    (entry,) = added(wheel, 3)

    with pytest.raises(ValueError, match="pending already"):
        wheel.add(entry)

    assert len(wheel) == 1
    assert wheel.advance(3) == [entry]


def test_a_rescheduled_entry_comes_at_its_new_deadline_only() -> None:
    wheel = TimingWheel(0)
    later, sooner, near = added(wheel, 10, 9000, 30)

    assert wheel.reschedule(later, 9500)
    assert wheel.reschedule(sooner, 20)
    assert wheel.reschedule(near, 31)

    assert wheel.advance(19) == []
    assert wheel.advance(30) == [sooner]
    assert wheel.advance(31) == [near]
    assert wheel.advance(9499) == []
    assert wheel.advance(9500) == [later]
    assert len(wheel) == 0


def test_rescheduling_to_the_past_leaves_the_entry_to_the_caller() -> None:
    wheel = TimingWheel(100)
    (entry,) = added(wheel, 200)

    kept = wheel.reschedule(entry, 100)

    assert not kept
    assert not entry.is_pending
    assert len(wheel) == 0


def test_rescheduling_adds_an_entry_that_is_not_pending() -> None:
    wheel = TimingWheel(0)
    entry = TimerEntry(0)

    assert wheel.reschedule(entry, 8)

    assert wheel.advance(8) == [entry]


def test_a_limit_hands_out_the_rest_with_the_next_calls() -> None:
    wheel = TimingWheel(0)
    entries = added(wheel, *[5] * 10)

    first = wheel.advance(100, 4)
    due_ms = wheel.next_due_ms()
    second = wheel.advance(100, 4)
    third = wheel.advance(100, 4)

    assert due_ms == 5
    assert [first, second, third] == [entries[:4], entries[4:8], entries[8:]]
    assert wheel.current_ms == 100


def test_a_limit_counts_the_falls_to_lower_levels() -> None:
    wheel = TimingWheel(0)
    added(wheel, 445, 446)

    assert wheel.advance(445, 2) == []
    assert wheel.next_due_ms() == 440
    assert wheel.advance(445, 2) == []
    assert deadlines(wheel.advance(445, 2)) == [445]
    assert deadlines(wheel.advance(446, 2)) == [446]


def test_a_limit_of_nothing_moves_nothing() -> None:
    wheel = TimingWheel(0)
    added(wheel, 5)

    assert wheel.advance(9, 0) == []
    assert wheel.next_due_ms() == 5


def test_an_entry_left_by_a_limit_may_be_cancelled_or_rescheduled() -> None:
    wheel = TimingWheel(0)
    a, b, c, d = added(wheel, 5, 5, 5, 5)
    assert wheel.advance(50, 1) == [a]

    wheel.cancel(b)
    wheel.reschedule(d, 60)

    assert wheel.advance(50) == [c]
    assert wheel.advance(60) == [d]


def test_a_jump_over_a_year_with_two_entries_takes_no_steps_between() -> None:
    wheel = TimingWheel(0)
    year_ms = 365 * 86_400_000
    added(wheel, 1, year_ms * 1000)

    first = wheel.advance(year_ms)
    second = wheel.advance(year_ms * 1000)

    assert deadlines(first) == [1]
    assert deadlines(second) == [year_ms * 1000]


def test_time_may_be_negative() -> None:
    wheel = TimingWheel(-1000, tick_ms=7)
    added(wheel, -500, -3)

    assert wheel.advance(-501) == []
    assert deadlines(wheel.advance(-490)) == [-500]
    assert deadlines(wheel.advance(0)) == [-3]


def test_a_wheel_needs_a_tick_and_two_buckets() -> None:
    with pytest.raises(ValueError, match="tick"):
        TimingWheel(0, tick_ms=0)
    with pytest.raises(ValueError, match="buckets"):
        TimingWheel(0, wheel_size=1)


def test_an_interpreted_subclass_expires_by_its_own_method() -> None:
    ran = []

    class Task(TimerEntry):
        def expire(self) -> None:
            ran.append(self.deadline_ms)

    wheel = TimingWheel(0)
    wheel.add(Task(3))

    for entry in wheel.advance(3):
        entry.expire()

    assert ran == [3]


def test_a_bucket_of_many_chunks_keeps_the_order_of_ties_whatever_is_cancelled() -> None:
    wheel = TimingWheel(0)
    entries = added(wheel, *[350] * 5000)
    for number, entry in enumerate(entries):
        if number % 7 or 1024 <= number < 3072:
            wheel.cancel(entry)

    parts = [wheel.advance(350, 100) for _ in range(20)]

    left = [entry for number, entry in enumerate(entries) if not (number % 7)]
    left = [entry for entry in left if entry not in entries[1024:3072]]
    assert [entry for part in parts for entry in part] == left
    assert len(wheel) == 0


def test_a_part_of_a_large_bucket_is_taken_without_a_look_at_the_rest() -> None:
    wheel = TimingWheel(0)
    entries = added(wheel, *[15] * 5000)

    first = wheel.advance(15, 10)

    assert first == entries[:10]
    assert entries[1023]._place == 1023
    assert [entry._place for entry in entries[1024:1027]] == [0, 1, 2]


def test_adding_and_cancelling_for_ever_leaves_no_empty_chunks_behind() -> None:
    wheel = TimingWheel(0)
    (held,) = added(wheel, 10**9)
    for _ in range(100):
        for entry in added(wheel, *[10**9] * 1024):
            wheel.cancel(entry)

    bucket = wheel._levels[-1].buckets[10**9 // wheel._levels[-1].tick_ms % 20]
    assert held.is_pending
    assert len(bucket.chunks) <= 2 * CHUNKS_MIN


def test_exact_deadlines_of_many_chunks_are_in_order_within_one_tick() -> None:
    wheel = TimingWheel(0, tick_ms=10_000)
    wanted = [(number * 7919) % 10_000 + 1 for number in range(5000)]
    added(wheel, *wanted)

    due = wheel.advance(10_000, 3000) + wheel.advance(10_000, 3000)

    assert deadlines(due) == sorted(wanted)


def test_an_entry_of_another_wheel_is_refused_and_stays_where_it_is() -> None:
    wheel, other = TimingWheel(0), TimingWheel(0)
    (entry,) = added(other, 5)

    with pytest.raises(ValueError, match="another timer"):
        wheel.cancel(entry)
    with pytest.raises(ValueError, match="another timer"):
        wheel.reschedule(entry, 9)
    with pytest.raises(ValueError, match="another timer"):
        wheel.add(entry)

    assert (len(wheel), len(other)) == (0, 1)
    assert other.advance(5) == [entry]


def test_a_deadline_beyond_all_levels_is_refused_and_the_entry_stays_where_it_is() -> None:
    wheel = TimingWheel(0, wheel_size=2)
    (entry,) = added(wheel, 5)

    with pytest.raises(ValueError, match="farther away"):
        wheel.reschedule(entry, 2**70)
    with pytest.raises(ValueError, match="farther away"):
        wheel.add(TimerEntry(2**70))

    assert len(wheel) == 1
    assert wheel.advance(5) == [entry]


@pytest.mark.parametrize("wrong", [1.5, "5", None, float("nan"), float("inf")])
def test_a_time_that_is_no_int_is_refused_and_the_wheel_stays_whole(wrong: Any) -> None:
    wheel = TimingWheel(0)
    (entry,) = added(wheel, 5)

    with pytest.raises(TypeError, match="int"):
        TimerEntry(wrong)
    with pytest.raises(TypeError, match="int"):
        wheel.reschedule(entry, wrong)
    with pytest.raises(TypeError, match="int"):
        wheel.advance(wrong)
    with pytest.raises(TypeError, match="int"):
        TimingWheel(wrong)

    assert wheel.advance(5) == [entry]
