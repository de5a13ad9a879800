"""What is the heap's own: stale keys and their cleaning; the rest stands in tests/contracts."""

from __future__ import annotations

import sys

from tarry.timer.entry import TimerEntry
from tarry.timer.heap import STALE_KEYS_MIN, HeapTimer


def added(timer: HeapTimer, *deadlines_ms: int) -> list[TimerEntry]:
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    for entry in entries:
        assert timer.add(entry)
    return entries


def test_a_few_cancelled_entries_leave_their_keys_until_these_come_to_the_top() -> None:
    timer = HeapTimer(0)
    first, second, third = added(timer, 5, 6, 7)

    timer.cancel(second)
    keys_after_cancel = len(timer._heap)
    timer.cancel(first)
    next_due_ms = timer.next_due_ms()

    assert keys_after_cancel == 3
    assert next_due_ms == 7
    assert len(timer._heap) == 1
    assert timer.advance(7) == [third]


def test_the_heap_is_cleaned_once_more_than_half_of_its_keys_are_stale() -> None:
    timer = HeapTimer(0)
    entries = added(timer, *range(1, 1001))

    for entry in entries[:500]:
        timer.cancel(entry)
    keys_at_half = len(timer._heap)
    timer.cancel(entries[500])

    assert keys_at_half == 1000
    assert len(timer._heap) == 499
    assert timer.advance(1000) == entries[501:]


def test_cleaning_leaves_a_heap() -> None:
    timer = HeapTimer(0)
    entries = added(timer, *[number * 7919 % 10_007 + 1 for number in range(1000)])

    for entry in entries[::3] + entries[1::3]:
        timer.cancel(entry)

    left = sorted(entries[2::3], key=lambda entry: entry.deadline_ms)
    assert len(timer._heap) < 500
    assert timer.advance(10_007) == left


def test_cleaning_gives_back_the_space_of_what_was_cancelled() -> None:
    timer = HeapTimer(0)
    entries = added(timer, *range(1, 10_001))
    space = sys.getsizeof(timer._entries)

    for entry in entries[100:]:
        timer.cancel(entry)

    assert len(timer) == 100
    assert sys.getsizeof(timer._entries) < space // 10
    assert timer.advance(10_000) == entries[:100]


def test_rescheduling_for_ever_keeps_the_heap_bounded() -> None:
    timer = HeapTimer(0)
    moved, _other = added(timer, 5, 10**9)

    for deadline_ms in range(10_000):
        timer.reschedule(moved, 10**6 + deadline_ms)

    assert len(timer._heap) <= 2 * STALE_KEYS_MIN + 2
    assert timer.advance(10**7) == [moved]


def test_the_next_due_time_is_exact() -> None:
    timer = HeapTimer(0, tick_ms=10)
    near, _far = added(timer, 445, 10**15)

    before = timer.next_due_ms()
    timer.cancel(near)

    assert before == 450
    assert timer.next_due_ms() == 10**15


def test_ties_come_in_the_order_of_adding_across_advances_and_a_moved_entry_is_the_last() -> None:
    timer = HeapTimer(0)
    first, moved = added(timer, 445, 445)
    timer.advance(399)
    (second,) = added(timer, 445)

    timer.reschedule(moved, 445)

    assert timer.advance(445) == [first, second, moved]
