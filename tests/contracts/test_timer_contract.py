"""One suite over all timers that take the time as an argument.

The law that they share, beside what the names say:

* Due is what has a deadline, rounded up to the tick, at or before `current_ms`; `add` and
  `reschedule` refuse exactly that.  `current_ms` is a multiple of the tick and never goes back;
  after an advance that left nothing over it is the time, rounded down.
* All that ever comes is in order of exact deadline, over all calls.  Ties are the same in every
  run; what was added with no advance between comes in the order of adding.  Where a rescheduled
  entry comes among its ties is the timer's own affair.
* With a limit at most so many entries come.  What else counts is the timer's own affair (with
  the wheel the falls to a lower level), but a call with a limit of one or more gets on, and all
  parts together bring what one call would have brought.
* `next_due_ms` is None when nothing is pending, and never later than the first deadline, rounded
  up.  Earlier it may be (a fall, a look; the heap is exact), but who wakes then, and only then,
  gets every entry in its very tick.  At or before the time it is exactly while a limit has left
  something over.
* What has come is its owner's: cancelling it answers False, the timer knows it no longer.
* What is refused with an error has changed nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tarry.timer.entry import TimerEntry
from tarry.timer.heap import HeapTimer
from tarry.timer.rounds import RoundsTimer
from tarry.timer.wheel import TimingWheel

AnyTimer = TimingWheel | HeapTimer | RoundsTimer
Maker = Callable[..., AnyTimer]

YEAR_MS = 365 * 86_400_000


def wheel_of_3(now_ms: int, tick_ms: int = 1) -> TimingWheel:
    """Kafka's tests take this size: six levels for half a second."""
    return TimingWheel(now_ms, tick_ms, 3)


def rounds_of_3(now_ms: int, tick_ms: int = 1) -> RoundsTimer:
    return RoundsTimer(now_ms, tick_ms, 3)


TIMERS: dict[str, Maker] = {
    "wheel": TimingWheel,
    "wheel of 3": wheel_of_3,
    "heap": HeapTimer,
    "rounds": RoundsTimer,
    "rounds of 3": rounds_of_3,
}


@pytest.fixture(params=TIMERS)
def make(request: pytest.FixtureRequest) -> Maker:
    return TIMERS[request.param]


@pytest.fixture
def timer(make: Maker) -> AnyTimer:
    """Fresh, at time 0, with a tick of 1 ms."""
    return make(0)


class Task(TimerEntry):
    """An entry that does what it is told."""

    def __init__(self, deadline_ms: int, run: Callable[[], object] = lambda: None) -> None:
        super().__init__(deadline_ms)
        self.run = run

    def expire(self) -> None:
        self.run()


def added(timer: AnyTimer, *deadlines_ms: int) -> list[TimerEntry]:
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    for entry in entries:
        assert timer.add(entry)
    return entries


def deadlines(entries: list[TimerEntry]) -> list[int]:
    return [entry.deadline_ms for entry in entries]


def advanced_in_parts(timer: AnyTimer, now_ms: int, limit: int | None) -> list[list[TimerEntry]]:
    """Advance until nothing is left over; the parts that brought something."""
    parts = []
    calls_max = 1000 + len(timer) * 64
    while (due_ms := timer.next_due_ms()) is not None and due_ms <= now_ms:
        parts.append(timer.advance(now_ms, limit))
        calls_max -= 1
        assert calls_max > 0, "the timer does not get on"
    return [part for part in parts if part]


def assert_untouched(timer: AnyTimer, entries: list[TimerEntry], current_ms: int) -> None:
    """The timer has these entries, in this order, at this time, and they come as they should."""
    assert timer.current_ms == current_ms
    assert len(timer) == len(entries)
    assert all(entry.is_pending for entry in entries)
    wanted = deadlines(entries)
    came = []
    while (due_ms := timer.next_due_ms()) is not None:
        came += [(entry, timer.current_ms) for entry in timer.advance(due_ms)]
    assert came == list(zip(entries, wanted, strict=True))
    assert len(timer) == 0


# Adding: what is due, what is not, and what the tick makes of it.


def test_an_entry_is_taken_and_counted(timer: AnyTimer) -> None:
    (entry,) = added(timer, 5)

    next_due_ms = timer.next_due_ms()

    assert len(timer) == 1
    assert entry.is_pending
    assert next_due_ms is not None
    assert 0 < next_due_ms <= 5


@pytest.mark.parametrize("deadline_ms", [-(2**70), -5, -1, 0, 999, 1000])
def test_a_deadline_that_has_passed_is_left_to_the_caller(make: Maker, deadline_ms: int) -> None:
    timer = make(1000)
    entry = TimerEntry(deadline_ms)

    taken = timer.add(entry)

    assert not taken
    assert not entry.is_pending
    assert len(timer) == 0
    assert timer.next_due_ms() is None


def test_an_entry_due_one_tick_from_now_is_not_due_now(make: Maker) -> None:
    timer = make(1000)

    added(timer, 1001)

    assert timer.advance(1000) == []
    assert deadlines(timer.advance(1001)) == [1001]


def test_entries_added_at_once_come_like_those_added_one_by_one(timer: AnyTimer) -> None:
    timer.advance(10)
    entries = [TimerEntry(deadline_ms) for deadline_ms in (30, 10, 445, 11, 3, 30)]

    due = timer.add_all(entries)

    assert due == [entries[1], entries[4]]
    assert [entry.is_pending for entry in entries] == [True, False, True, True, False, True]
    assert len(timer) == 4
    assert timer.advance(1000) == [entries[3], entries[0], entries[5], entries[2]]


def test_no_entry_is_added_if_one_of_the_list_is_pending_already(timer: AnyTimer) -> None:
    pending = added(timer, 7)
    entries = [TimerEntry(5), TimerEntry(0), pending[0], TimerEntry(9)]

    with pytest.raises(ValueError, match="pending already"):
        timer.add_all(entries)

    assert not any(entry.is_pending for entry in (entries[0], entries[1], entries[3]))
    assert_untouched(timer, pending, current_ms=0)


def test_no_entry_is_added_if_one_stands_twice_in_the_list(timer: AnyTimer) -> None:
    pending = added(timer, 7)
    twice = TimerEntry(5)

    with pytest.raises(ValueError, match="pending already"):
        timer.add_all([twice, TimerEntry(6), twice])

    assert_untouched(timer, pending, current_ms=0)


def test_no_entry_is_added_if_one_belongs_to_another_timer(make: Maker, timer: AnyTimer) -> None:
    other = make(0)
    (foreign,) = added(other, 8)

    with pytest.raises(ValueError, match="another timer"):
        timer.add_all([TimerEntry(5), foreign])

    assert_untouched(timer, [], current_ms=0)
    assert_untouched(other, [foreign], current_ms=0)


def test_a_deadline_rounds_up_to_the_tick_so_that_nothing_is_early(make: Maker) -> None:
    timer = make(0, 10)

    added(timer, 5, 11)

    assert timer.advance(9) == []
    assert deadlines(timer.advance(10)) == [5]
    assert timer.advance(19) == []
    assert deadlines(timer.advance(20)) == [11]


def test_a_deadline_on_the_tick_is_not_rounded(make: Maker) -> None:
    timer = make(0, 10)

    added(timer, 10, 20)

    assert deadlines(timer.advance(10)) == [10]
    assert timer.next_due_ms() == 20


def test_an_entry_in_the_current_tick_waits_for_the_next_one(make: Maker) -> None:
    timer = make(15, 10)

    assert timer.current_ms == 10
    assert not timer.add(TimerEntry(10))
    assert timer.add(TimerEntry(11))
    assert timer.advance(19) == []
    assert deadlines(timer.advance(20)) == [11]


def test_an_entry_cancelled_before_it_was_added_is_taken_all_the_same(timer: AnyTimer) -> None:
    entry = TimerEntry(5)

    cancelled = timer.cancel(entry)

    assert not cancelled
    assert timer.add(entry)
    assert timer.advance(5) == [entry]


def test_an_entry_may_be_added_again_after_it_came_or_was_cancelled(timer: AnyTimer) -> None:
    (entry,) = added(timer, 3)
    timer.advance(3)

    entry.deadline_ms = 9
    assert timer.add(entry)
    timer.cancel(entry)
    assert timer.add(entry)

    assert timer.advance(9) == [entry]
    assert timer.next_due_ms() is None


def test_an_entry_may_go_from_one_timer_to_another(make: Maker) -> None:
    one, other = make(0), make(0)
    (entry,) = added(one, 8)

    one.cancel(entry)

    assert other.add(entry)
    assert one.advance(8) == []
    assert other.advance(8) == [entry]


def test_an_interpreted_subclass_expires_by_its_own_method(timer: AnyTimer) -> None:
    ran = []
    timer.add(Task(3, lambda: ran.append(3)))

    for entry in timer.advance(3):
        entry.expire()

    assert ran == [3]


# Time: standing still, going on, jumping, going back.


def test_advancing_within_a_tick_does_not_move_the_time(make: Maker) -> None:
    timer = make(0, 10)

    timer.advance(9)
    within = timer.current_ms
    timer.advance(29)

    assert within == 0
    assert timer.current_ms == 20


def test_a_clock_that_stands_still_brings_nothing_twice(timer: AnyTimer) -> None:
    first, _second = added(timer, 5, 6)

    came = [timer.advance(5) for _ in range(3)]

    assert came == [[first], [], []]
    assert timer.current_ms == 5
    assert not timer.add(TimerEntry(5))


@pytest.mark.parametrize("back_ms", [99, 50, 0, -(10**15)])
def test_going_back_in_time_does_nothing(make: Maker, back_ms: int) -> None:
    timer = make(100)
    entries = added(timer, 105, 2000)
    timer.advance(104)
    next_due_ms = timer.next_due_ms()

    due = timer.advance(back_ms)

    assert due == []
    assert timer.next_due_ms() == next_due_ms
    assert not timer.add(TimerEntry(104))
    assert_untouched(timer, entries, current_ms=104)


def test_going_back_while_a_limit_has_left_something_over_brings_nothing(timer: AnyTimer) -> None:
    entries = added(timer, 2, 2, 2)
    first = timer.advance(50, 1)

    back = timer.advance(1)

    assert back == []
    assert first + timer.advance(2) == entries


def test_a_jump_of_years_brings_what_is_due_and_costs_no_step_between(timer: AnyTimer) -> None:
    added(timer, 1, YEAR_MS, YEAR_MS * 1000)

    first = timer.advance(YEAR_MS)
    between = timer.advance(YEAR_MS * 1000 - 1)
    second = timer.advance(YEAR_MS * 1000)

    assert deadlines(first) == [1, YEAR_MS]
    assert between == []
    assert deadlines(second) == [YEAR_MS * 1000]
    assert timer.current_ms == YEAR_MS * 1000


def test_a_deadline_years_away_is_reached_in_a_few_wake_ups(timer: AnyTimer) -> None:
    added(timer, 10 * YEAR_MS)

    wake_ups = 0
    came: list[TimerEntry] = []
    while (due_ms := timer.next_due_ms()) is not None:
        came += timer.advance(due_ms)
        wake_ups += 1

    assert deadlines(came) == [10 * YEAR_MS]
    assert timer.current_ms == 10 * YEAR_MS
    assert wake_ups < 64


def test_time_may_be_negative(make: Maker) -> None:
    timer = make(-1000, 7)
    added(timer, -500, -3)

    assert timer.current_ms == -1001
    assert timer.advance(-501) == []
    assert deadlines(timer.advance(-490)) == [-500]
    assert deadlines(timer.advance(0)) == [-3]


def test_an_entry_due_in_445_ms_comes_then_and_not_at_444(timer: AnyTimer) -> None:
    (entry,) = added(timer, 445)

    for now_ms in (399, 400, 439, 440, 444):
        assert timer.advance(now_ms) == []

    assert timer.advance(445) == [entry]


def test_millisecond_by_millisecond_each_entry_comes_in_its_own(timer: AnyTimer) -> None:
    added(timer, *range(1, 1000))

    came = [deadlines(timer.advance(now_ms)) for now_ms in range(1, 1000)]

    assert came == [[now_ms] for now_ms in range(1, 1000)]


# Order.


def test_kafkas_test_of_task_expiration_over_six_levels(timer: AnyTimer) -> None:
    wanted = [*range(1, 5), *range(10, 100), *range(10, 100), *range(100, 500)]
    refused = TimerEntry(0)
    entries = added(timer, *wanted)

    taken = timer.add(refused)
    due = timer.advance(1000)

    assert not taken
    assert deadlines(due) == sorted(wanted)
    assert sorted(map(id, due)) == sorted(map(id, entries))
    assert len(timer) == 0
    assert timer.next_due_ms() is None


def test_what_was_added_in_any_order_comes_in_order_of_deadline(timer: AnyTimer) -> None:
    wanted = [number * 7919 % 10_007 + 1 for number in range(3000)]
    added(timer, *wanted)

    due = timer.advance(5000) + timer.advance(10_007)

    assert deadlines(due) == sorted(wanted)


@pytest.mark.parametrize("limit", [None, 1, 2, 100])
def test_exact_deadlines_within_one_tick_are_in_order_too(make: Maker, limit: int | None) -> None:
    timer = make(0, 100)
    wanted = [399, 301, 350, 400, 302, 200, 299]
    added(timer, *wanted)

    parts = advanced_in_parts(timer, 400, limit)

    assert [entry.deadline_ms for part in parts for entry in part] == sorted(wanted)


@pytest.mark.parametrize("tick_ms", [1, 100])
@pytest.mark.parametrize("deadline_ms", [7, 445, 100_000])
def test_ties_come_in_the_order_in_which_they_were_added(
    make: Maker, deadline_ms: int, tick_ms: int
) -> None:
    timer = make(0, tick_ms)
    entries = added(timer, *[deadline_ms] * 50)

    due = timer.advance(deadline_ms + tick_ms)

    assert due == entries


def test_ties_keep_their_order_whatever_is_cancelled_between_them(timer: AnyTimer) -> None:
    entries = added(timer, *[350] * 100)

    for number in (0, 7, 99, *range(20, 95)):
        timer.cancel(entries[number])

    left = [entry for entry in entries if entry.is_pending]
    assert len(left) == 22
    assert timer.advance(350) == left


# Cancelling and rescheduling.


def test_a_cancelled_entry_never_comes(timer: AnyTimer) -> None:
    first, second, third = added(timer, 5, 5, 5)

    assert timer.cancel(second)
    assert not timer.cancel(second)

    assert not second.is_pending
    assert len(timer) == 2
    assert timer.advance(10) == [first, third]


def test_cancelling_everything_leaves_nothing_to_wake_for(timer: AnyTimer) -> None:
    entries = added(timer, 5, 445, 445, 10**6)

    for entry in entries:
        timer.cancel(entry)

    assert len(timer) == 0
    assert timer.next_due_ms() is None
    assert timer.advance(10**7) == []


@pytest.mark.parametrize("kept", [0, 10, 1000])
def test_the_timer_holds_no_cancelled_entry(timer: AnyTimer, kept: int) -> None:
    added(timer, *[700] * kept)
    entries = [Task(deadline_ms) for deadline_ms in (5, 700, 700, 10**9)]
    held = [weakref.ref(entry) for entry in entries]
    for entry in entries:
        timer.add(entry)
    timer.reschedule(entries[1], 800)
    timer.reschedule(entries[2], 3)

    for entry in entries:
        timer.cancel(entry)
    del entries, entry

    assert [ref() for ref in held] == [None] * 4
    assert len(timer) == kept


def test_the_timer_holds_no_entry_that_has_come(timer: AnyTimer) -> None:
    added(timer, 10**6)
    entry = Task(445)
    held = weakref.ref(entry)
    timer.add(entry)
    del entry

    came = timer.advance(445)

    assert came == [held()]
    del came
    assert held() is None


def test_a_rescheduled_entry_comes_at_its_new_deadline_only(timer: AnyTimer) -> None:
    later, sooner, near = added(timer, 10, 9000, 30)

    assert timer.reschedule(later, 9500)
    assert timer.reschedule(sooner, 20)
    assert timer.reschedule(near, 31)

    assert deadlines([later, sooner, near]) == [9500, 20, 31]
    assert timer.advance(19) == []
    assert timer.advance(30) == [sooner]
    assert timer.advance(31) == [near]
    assert timer.advance(9499) == []
    assert timer.advance(9500) == [later]
    assert len(timer) == 0


def test_rescheduling_within_the_bucket_or_to_another_keeps_the_count(timer: AnyTimer) -> None:
    moved, _still = added(timer, 440, 450)

    for deadline_ms in (441, 442, 442, 5, 90_000, 440, 10**12, 443):
        assert timer.reschedule(moved, deadline_ms)
        assert len(timer) == 2

    assert deadlines(timer.advance(445)) == [443]
    assert deadlines(timer.advance(10**12)) == [450]


def test_rescheduling_to_the_past_leaves_the_entry_to_the_caller(make: Maker) -> None:
    timer = make(100)
    (entry,) = added(timer, 200)

    kept = timer.reschedule(entry, 100)

    assert not kept
    assert not entry.is_pending
    assert entry.deadline_ms == 100
    assert len(timer) == 0


def test_rescheduling_adds_an_entry_that_is_not_pending(timer: AnyTimer) -> None:
    entry = TimerEntry(0)

    assert timer.reschedule(entry, 8)

    assert timer.advance(8) == [entry]


def test_a_heartbeat_that_moves_for_ever_comes_once(timer: AnyTimer) -> None:
    beaten, _other = added(timer, 30_000, 10**9)
    for now_ms in range(0, 100_000, 50):
        assert timer.advance(now_ms) == []
        assert timer.reschedule(beaten, now_ms + 30_000)

    came = timer.advance(10**8)

    assert came == [beaten]
    assert beaten.deadline_ms == 129_950


# Parts.


def test_a_limit_hands_out_the_rest_with_the_next_calls(timer: AnyTimer) -> None:
    entries = added(timer, *[2] * 10)

    first = timer.advance(100, 4)
    due_ms = timer.next_due_ms()
    second = timer.advance(100, 4)
    third = timer.advance(100, 4)

    assert due_ms == 2
    assert [first, second, third] == [entries[:4], entries[4:8], entries[8:]]
    assert timer.next_due_ms() is None
    assert timer.advance(100, 4) == []
    assert timer.current_ms == 100


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
@pytest.mark.parametrize("tick_ms", [1, 50])
def test_parts_of_a_jump_bring_what_the_whole_would(make: Maker, limit: int, tick_ms: int) -> None:
    whole, parted = make(0, tick_ms), make(0, tick_ms)
    wanted = [number * number % 9973 + 1 for number in range(200)]
    added(whole, *wanted)
    added(parted, *wanted)

    parts = advanced_in_parts(parted, 9973, limit)

    assert max(len(part) for part in parts) <= limit
    assert [entry.deadline_ms for part in parts for entry in part] == deadlines(whole.advance(9973))
    assert len(parted) == len(whole)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_moves_nothing(timer: AnyTimer, limit: int) -> None:
    (entry,) = added(timer, 2)

    assert timer.advance(9, limit) == []
    assert timer.next_due_ms() == 2
    assert timer.advance(9, 1) == [entry]


def test_with_nothing_due_a_limit_does_not_hold_the_time_back(timer: AnyTimer) -> None:
    added(timer, 10**6)

    timer.advance(2, 0)

    assert timer.current_ms == 2


def test_an_entry_left_by_a_limit_may_be_cancelled_or_rescheduled(timer: AnyTimer) -> None:
    a, b, c, d, e = added(timer, 2, 2, 2, 2, 2)
    assert timer.advance(50, 1) == [a]

    assert timer.cancel(b)
    assert timer.reschedule(d, 60)
    assert not timer.reschedule(e, 2)

    assert len(timer) == 2
    assert timer.advance(50) == [c]
    assert timer.advance(60) == [d]


def test_what_is_added_between_the_parts_comes_in_order_or_is_due(timer: AnyTimer) -> None:
    added(timer, 2, 2, 2, 40)
    first = timer.advance(50, 1)

    late = TimerEntry(30)
    taken = timer.add(late)
    refused = timer.add(TimerEntry(timer.current_ms))
    rest = timer.advance(50)

    assert taken
    assert not refused
    assert deadlines(first + rest) == [2, 2, 2, 30, 40]


# Who runs what came may do with the timer what he likes.


def run(timer: AnyTimer, now_ms: int) -> None:
    for entry in timer.advance(now_ms):
        entry.expire()


def test_a_task_may_add_others_and_itself(timer: AnyTimer) -> None:
    answers: list[tuple[int, bool]] = []

    def add_others() -> None:
        for deadline_ms in (5, 6, 445):
            answers.append((deadline_ms, timer.add(TimerEntry(deadline_ms))))

    def add_itself() -> None:
        again.deadline_ms = 20
        answers.append((20, timer.add(again)))

    again = Task(5, add_itself)
    timer.add(Task(5, add_others))
    timer.add(again)

    run(timer, 5)

    assert answers == [(5, False), (6, True), (445, True), (20, True)]
    assert deadlines(timer.advance(19)) == [6]
    assert timer.advance(20) == [again]
    assert deadlines(timer.advance(445)) == [445]


def test_a_task_may_cancel_what_waits_but_not_what_came_with_it(timer: AnyTimer) -> None:
    answers: list[bool] = []
    waiting, _other = added(timer, 445, 445)

    def cancel_both() -> None:
        answers.append(timer.cancel(waiting))
        answers.append(timer.cancel(sibling))

    sibling = Task(5, lambda: answers.append(sibling.is_pending))
    timer.add(Task(5, cancel_both))
    timer.add(sibling)

    run(timer, 5)

    assert answers == [True, False, False]
    assert len(timer) == 1
    assert len(timer.advance(445)) == 1


def test_a_task_may_reschedule_what_waits_and_what_came_with_it(timer: AnyTimer) -> None:
    (waiting,) = added(timer, 445)

    def move_both() -> None:
        timer.reschedule(waiting, 9)
        timer.reschedule(sibling, 7)

    sibling = Task(5)
    timer.add(Task(5, move_both))
    timer.add(sibling)

    run(timer, 5)

    assert timer.advance(8) == [sibling]
    assert timer.advance(445) == [waiting]


def test_a_task_may_advance_the_timer(timer: AnyTimer) -> None:
    came: list[int] = []
    timer.add(Task(5, lambda: came.extend(deadlines(timer.advance(50)))))
    added(timer, 6, 45, 60)

    run(timer, 5)

    assert came == [6, 45]
    assert timer.advance(5) == []
    assert deadlines(timer.advance(60)) == [60]


def test_an_error_in_a_task_leaves_the_timer_whole(timer: AnyTimer) -> None:
    ran: list[str] = []

    def fail() -> None:
        raise OSError("the disk is full")

    timer.add(Task(5, lambda: ran.append("first")))
    timer.add(Task(5, fail))
    timer.add(Task(5, lambda: ran.append("third")))
    waiting = added(timer, 445, 446)

    came = timer.advance(5)
    came[0].expire()
    with pytest.raises(OSError, match="full"):
        came[1].expire()
    came[2].expire()

    assert ran == ["first", "third"]
    assert_untouched(timer, waiting, current_ms=5)


# Bad input: an answer or an error with a sentence, and the timer is as it was.


@pytest.mark.parametrize("other", TIMERS)
def test_an_entry_of_another_timer_is_refused_and_stays_where_it_is(
    make: Maker, other: str
) -> None:
    timer, its_timer = make(0), TIMERS[other](0)
    own = added(timer, 4, 445)
    (entry,) = added(its_timer, 5)

    with pytest.raises(ValueError, match="pending in another timer"):
        timer.cancel(entry)
    with pytest.raises(ValueError, match="pending in another timer"):
        timer.reschedule(entry, 9)
    with pytest.raises(ValueError, match="pending in another timer"):
        timer.add(entry)

    assert entry.deadline_ms == 5
    assert_untouched(timer, own, current_ms=0)
    assert_untouched(its_timer, [entry], current_ms=0)


def test_an_entry_added_twice_is_refused_and_comes_once(timer: AnyTimer) -> None:
    entries = added(timer, 3, 445)

    for entry in entries:
        with pytest.raises(ValueError, match=r"pending already; reschedule\(\) moves it"):
            timer.add(entry)

    assert_untouched(timer, entries, current_ms=0)


def test_an_entry_left_over_by_a_limit_is_pending_still(timer: AnyTimer) -> None:
    _first, second = added(timer, 2, 2)
    timer.advance(2, 1)

    with pytest.raises(ValueError, match="pending already"):
        timer.add(second)

    assert timer.advance(2) == [second]


# In both forms of the modules.
NO_TIME = "a time is an int of milliseconds, not .*; round it, up for a deadline"


@pytest.mark.parametrize("wrong", [1.5, 7.0, "5", None, float("nan"), float("inf"), b"5", [5]])
def test_a_time_that_is_no_int_is_refused(make: Maker, wrong: Any) -> None:
    timer = make(0)
    entries = added(timer, 5, 445)
    apart = TimerEntry(6)

    with pytest.raises(TypeError, match=NO_TIME):
        TimerEntry(wrong)
    with pytest.raises(TypeError, match=NO_TIME):
        timer.reschedule(entries[0], wrong)
    with pytest.raises(TypeError, match=NO_TIME):
        timer.reschedule(apart, wrong)
    with pytest.raises(TypeError, match=NO_TIME):
        timer.advance(wrong)
    with pytest.raises(TypeError, match=NO_TIME):
        make(wrong)
    with pytest.raises(TypeError, match=NO_TIME):
        make(0, wrong)

    assert not apart.is_pending
    assert apart.deadline_ms == 6
    assert_untouched(timer, entries, current_ms=0)


class Number:
    """As a library of arrays has them."""

    def __index__(self) -> int:
        return 20


def test_what_stands_for_an_int_is_taken_as_one(make: Maker) -> None:
    timer = make(0)
    entry = TimerEntry(Number())
    timer.add(entry)

    timer.reschedule(entry, True)
    moved_ms = entry.deadline_ms
    timer.reschedule(entry, Number())

    assert (moved_ms, entry.deadline_ms) == (1, 20)
    assert timer.advance(Number()) == [entry]


def test_a_timer_says_where_it_is_and_how_much_is_pending(make: Maker) -> None:
    timer = make(0)
    added(timer, 5, 445)

    assert repr(timer) == f"<{type(timer).__name__} at 0 ms, 2 pending>"


@pytest.mark.parametrize("wrong", [None, "5", 5, object()])
def test_what_is_no_entry_is_refused(timer: AnyTimer, wrong: Any) -> None:
    entries = added(timer, 5, 445)

    for call in (timer.add, timer.cancel, lambda entry: timer.reschedule(entry, 9)):
        with pytest.raises((TypeError, AttributeError)):
            call(wrong)

    assert_untouched(timer, entries, current_ms=0)


@pytest.mark.parametrize("deadline_ms", [2**62, 2**63 - 1, 2**64, 2**100])
def test_a_deadline_may_be_as_far_as_any_clock_counts(make: Maker, deadline_ms: int) -> None:
    timer = make(1000)
    entries = added(timer, 2000, deadline_ms)

    assert_untouched(timer, entries, current_ms=1000)


def test_a_deadline_beyond_all_reason_is_taken_or_refused_with_nothing_changed(
    timer: AnyTimer,
) -> None:
    entries = added(timer, 5, 445)
    far_ms = 10**200

    try:
        timer.reschedule(entries[1], far_ms)
    except ValueError as error:
        assert "farther away" in str(error)
        assert_untouched(timer, entries, current_ms=0)
    else:
        assert deadlines(timer.advance(10**199)) == [5]
        assert timer.advance(far_ms) == [entries[1]]


@pytest.mark.parametrize("tick_ms", [0, -1])
def test_a_tick_has_at_least_a_millisecond(make: Maker, tick_ms: int) -> None:
    with pytest.raises(ValueError, match="tick"):
        make(0, tick_ms)


@pytest.mark.parametrize("make_wheel", [TimingWheel, RoundsTimer])
@pytest.mark.parametrize("wheel_size", [1, 0, -20])
def test_a_wheel_has_at_least_two_buckets(make_wheel: Maker, wheel_size: int) -> None:
    with pytest.raises(ValueError, match="buckets"):
        make_wheel(0, 1, wheel_size)


def test_a_deadline_assigned_behind_the_timers_back_loses_and_doubles_nothing(
    timer: AnyTimer,
) -> None:
    entries = added(timer, 445, 446, 447, 448)

    entries[0].deadline_ms = 3
    entries[1].deadline_ms = 499
    entries[3].deadline_ms = -1
    timer.cancel(entries[3])
    came = []
    for now_ms in range(1500):
        came += timer.advance(now_ms)
        assert timer.current_ms == now_ms

    assert sorted(map(id, came)) == sorted(map(id, entries[:3]))
    assert len(timer) == 0
    assert timer.next_due_ms() is None
