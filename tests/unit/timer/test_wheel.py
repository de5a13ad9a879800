"""What is the wheel's own: levels, falls, buckets and their chunks.

What it shares with the other timers stands in tests/contracts, the laws in tests/model.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tarry.timer import TimerEntry, TimingWheel
from tarry.timer.bucket import CHUNKS_MIN, Chunk
from tarry.timer.wheel import EMPTY_BUCKETS_MAX


def added(wheel: TimingWheel, *deadlines_ms: int) -> list[TimerEntry]:
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    for entry in entries:
        assert wheel.add(entry)
    return entries


def deadlines(entries: list[TimerEntry]) -> list[int]:
    return [entry.deadline_ms for entry in entries]


def lies(entry: TimerEntry) -> tuple[int, int, int]:
    """Which level and which slot of it an entry lies in, and when that bucket expires."""
    chunk = entry._holder
    assert isinstance(chunk, Chunk)
    bucket = chunk.bucket
    assert isinstance(chunk.owner, TimingWheel)
    (level,) = (each for each in chunk.owner._levels if bucket in each.buckets)
    return level.number, level.buckets.index(bucket), bucket.expiration_ms


def test_an_entry_due_in_445_ms_lies_where_the_example_says_at_every_step() -> None:
    wheel = TimingWheel(0)
    (entry,) = added(wheel, 445)

    places = [lies(entry)]
    for now_ms in (399, 400, 439, 440, 444):
        assert wheel.advance(now_ms) == []
        places.append(lies(entry))

    third, second, first = (2, 1, 400), (1, 2, 440), (0, 5, 445)
    assert places == [third, third, second, second, first, first]
    assert wheel.advance(445) == [entry]


@pytest.mark.parametrize(
    ("deadline_ms", "level"),
    [(1, 0), (19, 0), (20, 1), (399, 1), (400, 2), (7_999, 2), (8_000, 3), (159_999, 3)],
)
def test_the_edges_of_an_interval_belong_to_the_next_level(deadline_ms: int, level: int) -> None:
    wheel = TimingWheel(0)

    (entry,) = added(wheel, deadline_ms)

    assert lies(entry)[0] == level
    assert wheel.advance(deadline_ms - 1) == []
    assert wheel.advance(deadline_ms) == [entry]


def test_a_level_is_made_when_the_first_entry_needs_it() -> None:
    wheel = TimingWheel(0)

    levels = []
    for deadline_ms in (19, 20, 399, 5, 400, 8_000):
        added(wheel, deadline_ms)
        levels.append(len(wheel._levels))

    assert levels == [1, 2, 2, 2, 3, 4]


def test_slots_are_used_again_after_the_wheel_has_gone_round() -> None:
    wheel = TimingWheel(0)
    came = []

    for now_ms in range(0, 200, 5):
        added(wheel, now_ms + 19)
        came += deadlines(wheel.advance(now_ms + 5))

    assert came == list(range(19, 201, 5))
    assert len(wheel._levels) == 1


def test_an_entry_due_in_445_ms_falls_through_three_wheels() -> None:
    wheel = TimingWheel(0)
    added(wheel, 445)

    seen = []
    while (due_ms := wheel.next_due_ms()) is not None:
        assert wheel.advance(due_ms - 1) == []
        seen.append((due_ms, deadlines(wheel.advance(due_ms))))

    assert seen == [(400, []), (440, []), (445, [445])]


def test_ties_keep_their_order_through_a_fall_whatever_is_cancelled_between_them() -> None:
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


def test_a_limit_counts_the_falls_to_lower_levels() -> None:
    wheel = TimingWheel(0)
    added(wheel, 445, 446)

    assert wheel.advance(445, 2) == []
    assert wheel.next_due_ms() == 440
    assert wheel.advance(445, 2) == []
    assert deadlines(wheel.advance(445, 2)) == [445]
    assert deadlines(wheel.advance(446, 2)) == [446]


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

    # Five thousand steps into exact order, and five thousand out.
    parts = [wheel.advance(10_000, 3000) for _ in range(4)]

    assert deadlines([entry for part in parts for entry in part]) == sorted(wanted)


def test_a_deadline_beyond_all_levels_is_refused_and_the_entry_stays_where_it_is() -> None:
    wheel = TimingWheel(0, wheel_size=2)
    (entry,) = added(wheel, 5)

    with pytest.raises(ValueError, match="farther away"):
        wheel.reschedule(entry, 2**70)
    with pytest.raises(ValueError, match="farther away"):
        wheel.add(TimerEntry(2**70))

    assert len(wheel) == 1
    assert wheel.advance(5) == [entry]


def test_a_full_tick_of_many_chunks_is_given_in_exact_order_in_bounded_parts() -> None:
    wheel = TimingWheel(0, tick_ms=10)
    wanted = [(number * 7) % 10 + 1 for number in range(5000)]
    added(wheel, *wanted)

    came: list[int] = []
    while (due_ms := wheel.next_due_ms()) is not None:
        part = wheel.advance(10, 100)
        assert due_ms == 10
        assert len(part) <= 100
        came += deadlines(part)

    assert came == sorted(wanted)
    assert wheel.current_ms == 10


def test_what_a_limit_left_of_a_full_tick_may_be_cancelled_and_moved() -> None:
    wheel = TimingWheel(0, tick_ms=10)
    entries = added(wheel, *[(number * 7) % 10 + 1 for number in range(3000)])
    early = [entry for entry in entries if entry.deadline_ms == 1]
    while not (first := wheel.advance(10, 100)):
        pass

    for entry in entries:
        if entry.is_pending and entry.deadline_ms == 5:
            wheel.cancel(entry)
        elif entry.is_pending and entry.deadline_ms == 6:
            assert wheel.reschedule(entry, 66)
    rest = wheel.advance(10)

    assert first == early[:100]
    assert (
        deadlines(rest)
        == [number for number in (1, 2, 3, 4, 7, 8, 9, 10) for _ in range(300)][100:]
    )
    assert len(wheel) == 300
    assert deadlines(wheel.advance(70)) == [66] * 300


def test_a_long_tick_is_in_exact_order_too_however_it_is_taken() -> None:
    wheel = TimingWheel(0, tick_ms=7000)
    wanted = [(number * 7919) % 7000 + 1 for number in range(5000)]
    added(wheel, *wanted)

    came: list[int] = []
    while wheel.next_due_ms() is not None:
        came += deadlines(wheel.advance(7000, 300))

    assert came == sorted(wanted)


def test_buckets_that_cancelling_emptied_are_passed_in_bounded_parts() -> None:
    wheel = TimingWheel(0, wheel_size=5000)
    entries = added(wheel, *range(1, 5000))
    for entry in entries[:-1]:
        wheel.cancel(entry)

    calls = 0
    while not (due := wheel.advance(4999, 1)):
        calls += 1
        assert (wheel.next_due_ms() or 0) <= 4999

    assert due == entries[-1:]
    assert calls > 4998 // (4 * EMPTY_BUCKETS_MAX)
    assert wheel.next_due_ms() is None


class Dying:
    """Garbage in a circle: its finalizer runs whenever the collector does."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.circle = self

    def __del__(self) -> None:
        self.act()


@contextmanager
def collected_after(allocations: int) -> Iterator[None]:
    """Let the collector run at one allocation of those to come, and only there."""
    old = gc.get_threshold()
    gc.disable()
    gc.collect()
    gc.set_threshold(gc.get_count()[0] + 1 + allocations, 10_000, 10_000)
    gc.enable()
    try:
        yield
    finally:
        gc.disable()
        gc.set_threshold(*old)
        gc.enable()


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("place", [10, 500, 1014, 1500, 2014, 2040])
@pytest.mark.parametrize("allocations", range(12))
def test_a_finalizer_may_cancel_in_the_middle_of_an_advance(place: int, allocations: int) -> None:
    wheel = TimingWheel(0)
    entries = added(wheel, *[500] * 4000)
    wheel.advance(399)
    wheel.advance(400, 1000)
    answers: list[bool] = []
    spare: list[list[int]] = []
    Dying(lambda: answers.append(wheel.cancel(entries[place])))

    with collected_after(allocations):
        wheel.advance(400, 1000)
        for _ in range(40):
            spare.append([])
    gc.collect()
    came = wheel.advance(1000)

    assert answers == [True]
    assert came == [entry for entry in entries if entry is not entries[place]]
    assert len(wheel) == 0


# With nothing pending the add makes a level and its buckets: more allocations than with some.
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    ("pending", "allocations"),
    [
        *((0, allocations) for allocations in range(60)),
        *((pending, number) for pending in (1, 1023, 1024, 1025) for number in range(12)),
    ],
)
def test_a_finalizer_may_add_in_the_middle_of_an_add(pending: int, allocations: int) -> None:
    wheel = TimingWheel(0)
    held = added(wheel, *[600] * pending)
    inner, outer = TimerEntry(600), TimerEntry(600)
    spare: list[list[int]] = []
    Dying(lambda: wheel.add(inner))

    with collected_after(allocations):
        wheel.add(outer)
        for _ in range(40):
            spare.append([])
    gc.collect()

    assert len(wheel) == pending + 2
    assert [level.number for level in wheel._levels] == list(range(len(wheel._levels)))
    came = wheel.advance(10_000)
    assert came[:pending] == held
    assert {id(entry) for entry in came[pending:]} == {id(inner), id(outer)}
    assert len(wheel) == 0
