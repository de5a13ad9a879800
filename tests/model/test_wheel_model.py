"""The timers against a sorted list: every operation, in any order, over any span of time.

Wheel, heap and rounds get the same calls.  Each has a twin, which must answer alike to the very
entry, and a sorted list of its own, for while a limit has left something over they may differ in
how far they have got.  The law is that of tests/contracts/test_timer_contract.py.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tarry.timer.bucket import Chunk
from tarry.timer.entry import TimerEntry
from tarry.timer.heap import HeapTimer
from tarry.timer.rounds import RoundsTimer
from tarry.timer.wheel import TimingWheel

AnyTimer = TimingWheel | HeapTimer | RoundsTimer

# Near, around the edges of the levels of 1 ms x 20, and as far as 64 bits go.
SPANS_MS = st.one_of(
    st.integers(-3, 25),
    st.sampled_from([19, 20, 21, 399, 400, 401, 439, 440, 445, 459, 460, 7_999, 8_000, 8_001]),
    st.integers(0, 10_000),
    st.sampled_from([365 * 86_400_000, 10 * 365 * 86_400_000]),
    st.integers(0, 2**62),
)
LIMITS = st.one_of(st.none(), st.integers(0, 5))

# Which entry a rule is about: modulo how many there are.
PICKS = st.integers(0, 1_000)

# A deadline on or beside the edge of a level that is so many of its buckets away.
EDGES = st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-1, 1))

# Calls that an expiring task makes on the timer.
TASKS = st.lists(
    st.tuples(
        st.sampled_from(["nothing", "add", "add itself", "cancel", "reschedule", "fail"]),
        PICKS,
        SPANS_MS,
    ),
    min_size=1,
    max_size=6,
)


def rounded(deadline_ms: int, tick_ms: int) -> int:
    return -(-deadline_ms // tick_ms) * tick_ms


class Watched:
    """A timer and its twin, and the sorted list that knows what must come and when.

    An item of the list is deadline, order of adding, number of the entry.
    """

    def __init__(self, make: Callable[[], AnyTimer], tick_ms: int) -> None:
        self.twins = (make(), make())
        self.timer = self.twins[0]
        self.tick_ms = tick_ms
        self.entries: list[tuple[TimerEntry, TimerEntry]] = []
        self.numbers: list[dict[int, int]] = [{}, {}]
        self.items: list[tuple[int, int, int]] = []
        self.item_of: dict[int, tuple[int, int, int]] = {}
        self.orders = 0
        # How many advances there were; in which of them an entry was added, unless it was moved.
        self.advances = 0
        self.added_in: dict[int, int] = {}
        self.last_ms = -(2**100)

    def is_due(self, deadline_ms: int) -> bool:
        return rounded(deadline_ms, self.tick_ms) <= self.timer.current_ms

    def is_behind(self, now_ms: int) -> bool:
        """Whether a limit has left something over."""
        next_due_ms = self.timer.next_due_ms()
        return next_due_ms is not None and next_due_ms <= now_ms

    def put(self, number: int, deadline_ms: int) -> None:
        item = (deadline_ms, self.orders, number)
        self.orders += 1
        insort(self.items, item)
        self.item_of[number] = item

    def drop(self, number: int) -> bool:
        item = self.item_of.pop(number, None)
        if item is None:
            return False
        self.items.remove(item)
        return True

    def add(self, deadline_ms: int) -> None:
        number = len(self.entries)
        twin_entries = (TimerEntry(deadline_ms), TimerEntry(deadline_ms))
        self.entries.append(twin_entries)
        for numbers, entry in zip(self.numbers, twin_entries, strict=True):
            numbers[id(entry)] = number
        self.add_number(number, deadline_ms)

    def add_number(self, number: int, deadline_ms: int) -> None:
        """Add an entry that is there already and not pending."""
        is_due = self.is_due(deadline_ms)
        for timer, entry in zip(self.twins, self.entries[number], strict=True):
            entry.deadline_ms = deadline_ms
            assert timer.add(entry) == (not is_due)
        if not is_due:
            self.put(number, deadline_ms)
            self.added_in[number] = self.advances

    def cancel(self, pick: int) -> None:
        number = pick % len(self.entries)
        was_pending = self.drop(number)
        for timer, entry in zip(self.twins, self.entries[number], strict=True):
            assert timer.cancel(entry) == was_pending

    def reschedule(self, pick: int, deadline_ms: int) -> None:
        number = pick % len(self.entries)
        is_due = self.is_due(deadline_ms)
        for timer, entry in zip(self.twins, self.entries[number], strict=True):
            assert timer.reschedule(entry, deadline_ms) == (not is_due)
            assert entry.deadline_ms == deadline_ms
        self.drop(number)
        self.added_in.pop(number, None)
        if not is_due:
            self.put(number, deadline_ms)

    def advance(self, now_ms: int, limit: int | None) -> list[int]:
        """Advance both; what came is what the list says.  The numbers of the entries."""
        current_ms = self.timer.current_ms
        tick_start_ms = now_ms - now_ms % self.tick_ms
        came = [timer.advance(now_ms, limit) for timer in self.twins]
        numbers = [self.numbers[0][id(entry)] for entry in came[0]]
        assert numbers == [self.numbers[1][id(entry)] for entry in came[1]]

        wanted = self.items[: len(numbers)]
        assert [entry.deadline_ms for entry in came[0]] == [item[0] for item in wanted]
        self.assert_ties(numbers, wanted)
        for number in numbers:
            assert self.drop(number)
        self.advances += 1
        if wanted:
            assert wanted[0][0] >= self.last_ms
            self.last_ms = wanted[-1][0]
            assert rounded(self.last_ms, self.tick_ms) <= min(now_ms, self.timer.current_ms)

        assert limit is None or len(numbers) <= limit
        if self.is_behind(now_ms):
            assert limit is not None
            assert current_ms <= self.timer.current_ms <= tick_start_ms
        else:
            assert self.timer.current_ms == max(current_ms, tick_start_ms)
            assert not self.items or rounded(self.items[0][0], self.tick_ms) > tick_start_ms
        return numbers

    def assert_ties(self, numbers: list[int], wanted: list[tuple[int, int, int]]) -> None:
        """Heap and rounds: in the order of adding, moved ones as added again.

        With the wheel that holds for what was added with no advance between and never moved.
        """
        if not isinstance(self.timer, TimingWheel):
            assert numbers == [item[2] for item in wanted]
            return
        latest: dict[tuple[int, int], int] = {}
        for number in numbers:
            deadline_ms, order, _ = self.item_of[number]
            added_in = self.added_in.get(number)
            if added_in is not None:
                assert order > latest.get((deadline_ms, added_in), -1)
                latest[deadline_ms, added_in] = order

    def advance_in_parts(self, now_ms: int, limit: int) -> None:
        """Nothing comes between: the parts together are one advance, cost by entries only."""
        levels = len(self.timer._levels) if isinstance(self.timer, TimingWheel) else 1
        # A tick of more than 1 ms is divided by exact deadlines first: one more move an entry.
        moves_max = levels + (self.tick_ms > 1)
        parts_max = len(self.items) * moves_max + 1
        while self.is_behind(now_ms):
            self.advance(now_ms, limit)
            parts_max -= 1
            assert parts_max >= 0

    def run_tasks(self, now_ms: int, tasks: list[tuple[str, int, int]]) -> None:
        """Advance, and whatever comes does something to the timer while the others wait."""
        for place, number in enumerate(self.advance(now_ms, None)):
            what, pick, span_ms = tasks[place % len(tasks)]
            if what == "add":
                self.add(now_ms + span_ms)
            elif what == "add itself" and number not in self.item_of:
                self.add_number(number, now_ms + span_ms)
            elif what == "cancel":
                self.cancel(pick)
            elif what == "reschedule":
                self.reschedule(pick, now_ms + span_ms)
            elif what == "fail":
                self.refuse(pick)

    def refuse(self, pick: int) -> None:
        """Everything that is an error: a sentence, and nothing has changed."""
        number = pick % len(self.entries) if self.entries else None
        stranger = TimerEntry(self.timer.current_ms + 5)
        its_timer = HeapTimer(self.timer.current_ms)
        its_timer.add(stranger)
        not_an_int: Any = 1.5
        for place, timer in enumerate(self.twins):
            before = (len(timer), timer.current_ms, timer.next_due_ms())
            with pytest.raises(ValueError, match="another timer"):
                timer.add(stranger)
            with pytest.raises(ValueError, match="another timer"):
                timer.cancel(stranger)
            with pytest.raises(ValueError, match="another timer"):
                timer.reschedule(stranger, 9)
            with pytest.raises(TypeError, match="int"):
                timer.advance(not_an_int)
            if number is not None:
                entry = self.entries[number][place]
                with pytest.raises(TypeError, match="int"):
                    timer.reschedule(entry, not_an_int)
                if number in self.item_of:
                    with pytest.raises(ValueError, match="pending already"):
                        timer.add(entry)
            assert (len(timer), timer.current_ms, timer.next_due_ms()) == before
        assert stranger.is_pending

    def go_back(self, span_ms: int) -> None:
        for timer in self.twins:
            before = (len(timer), timer.current_ms, timer.next_due_ms())
            assert timer.advance(timer.current_ms - span_ms) == []
            assert (len(timer), timer.current_ms, timer.next_due_ms()) == before

    def assert_law(self, now_ms: int) -> None:
        """What holds after every step."""
        for number, twin_entries in enumerate(self.entries):
            for entry in twin_entries:
                assert entry.is_pending == (number in self.item_of)
        assert [len(timer) for timer in self.twins] == [len(self.items)] * 2
        assert self.timer.current_ms % self.tick_ms == 0
        next_due_ms = self.timer.next_due_ms()
        assert self.twins[1].next_due_ms() == next_due_ms
        if next_due_ms is None:
            assert not self.items
            return
        first_ms = rounded(self.items[0][0], self.tick_ms)
        assert next_due_ms <= first_ms
        assert self.is_behind(now_ms) or next_due_ms > self.timer.current_ms
        assert not isinstance(self.timer, HeapTimer) or next_due_ms == first_ms


class TimersAgainstSortedLists(RuleBasedStateMachine):
    """The same calls for all timers; what each must answer its sorted list says."""

    @initialize(
        now_ms=st.integers(-(10**6), 10**12),
        tick_ms=st.sampled_from([1, 1, 1, 2, 7, 100]),
        wheel_size=st.sampled_from([2, 3, 20, 20, 64]),
    )
    def start(self, now_ms: int, tick_ms: int, wheel_size: int) -> None:
        self.now_ms = now_ms
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        makers: list[Callable[[], AnyTimer]] = [
            lambda: TimingWheel(now_ms, tick_ms, wheel_size),
            lambda: HeapTimer(now_ms, tick_ms),
            lambda: RoundsTimer(now_ms, tick_ms, wheel_size),
        ]
        self.all = [Watched(make, tick_ms) for make in makers]

    def edge_ms(self, edge: tuple[int, int, int]) -> int:
        level, buckets, beside_ms = edge
        interval_ms: int = self.tick_ms * self.wheel_size**level
        return (self.now_ms // interval_ms + buckets) * interval_ms + beside_ms

    @rule(span_ms=SPANS_MS)
    def add(self, span_ms: int) -> None:
        for each in self.all:
            each.add(self.now_ms + span_ms)

    @rule(edge=EDGES)
    def add_at_an_edge(self, edge: tuple[int, int, int]) -> None:
        for each in self.all:
            each.add(self.edge_ms(edge))

    @precondition(lambda self: all(each.items for each in self.all))
    @rule(pick=PICKS, count=st.integers(1, 3))
    def add_ties(self, pick: int, count: int) -> None:
        for each in self.all:
            deadline_ms = each.items[pick % len(each.items)][0]
            for _ in range(count):
                each.add(deadline_ms)

    @precondition(lambda self: all(each.entries for each in self.all))
    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        for each in self.all:
            each.cancel(pick)

    @precondition(lambda self: all(each.entries for each in self.all))
    @rule(pick=PICKS, span_ms=SPANS_MS)
    def reschedule(self, pick: int, span_ms: int) -> None:
        for each in self.all:
            each.reschedule(pick, self.now_ms + span_ms)

    @rule(span_ms=SPANS_MS, limit=LIMITS)
    def advance(self, span_ms: int, limit: int | None) -> None:
        self.now_ms += max(0, span_ms)
        for each in self.all:
            each.advance(self.now_ms, limit)

    @rule(edge=EDGES, limit=LIMITS)
    def advance_to_an_edge(self, edge: tuple[int, int, int], limit: int | None) -> None:
        self.now_ms = max(self.now_ms, self.edge_ms(edge))
        for each in self.all:
            each.advance(self.now_ms, limit)

    @rule(limit=LIMITS)
    def the_clock_stands_still(self, limit: int | None) -> None:
        for each in self.all:
            is_behind = each.is_behind(self.now_ms)
            came = each.advance(self.now_ms, limit)
            assert is_behind or came == []

    @rule(span_ms=st.one_of(st.integers(1, 500), st.integers(1, 2**62)))
    def the_clock_goes_back(self, span_ms: int) -> None:
        for each in self.all:
            each.go_back(span_ms)

    @precondition(lambda self: any(each.is_behind(self.now_ms) for each in self.all))
    @rule(limit=st.integers(1, 3))
    def advance_in_parts(self, limit: int) -> None:
        for each in self.all:
            each.advance_in_parts(self.now_ms, limit)

    @rule(span_ms=SPANS_MS, tasks=TASKS)
    def run_tasks(self, span_ms: int, tasks: list[tuple[str, int, int]]) -> None:
        self.now_ms += max(0, span_ms)
        for each in self.all:
            each.run_tasks(self.now_ms, tasks)

    @rule(pick=PICKS)
    def refuse(self, pick: int) -> None:
        for each in self.all:
            each.refuse(pick)

    @invariant()
    def each_keeps_the_law(self) -> None:
        for each in getattr(self, "all", []):
            each.assert_law(self.now_ms)


TimersAgainstSortedLists.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
TestTimersAgainstSortedLists = TimersAgainstSortedLists.TestCase


@given(
    deadlines_ms=st.lists(st.integers(1, 20_000), max_size=60),
    tick_ms=st.sampled_from([1, 7, 100]),
    wheel_size=st.sampled_from([2, 3, 20]),
)
@settings(deadline=None)
def test_waking_at_next_due_brings_every_entry_in_its_very_tick(
    deadlines_ms: list[int], tick_ms: int, wheel_size: int
) -> None:
    timers: list[AnyTimer] = [
        TimingWheel(0, tick_ms, wheel_size),
        HeapTimer(0, tick_ms),
        RoundsTimer(0, tick_ms, wheel_size),
    ]
    for timer in timers:
        for deadline_ms in deadlines_ms:
            timer.add(TimerEntry(deadline_ms))

        came: list[int] = []
        while (now_ms := timer.next_due_ms()) is not None:
            for entry in timer.advance(now_ms):
                assert rounded(entry.deadline_ms, tick_ms) == now_ms
                came.append(entry.deadline_ms)

        assert came == sorted(deadlines_ms)


@given(
    deadlines_ms=st.lists(st.integers(1, 10**15), min_size=1, max_size=40),
    jump_ms=st.integers(1, 10**16),
)
@settings(deadline=None)
def test_a_jump_costs_the_wheel_by_the_entries_and_not_by_the_ticks(
    deadlines_ms: list[int], jump_ms: int
) -> None:
    wheel = TimingWheel(0)
    for deadline_ms in deadlines_ms:
        wheel.add(TimerEntry(deadline_ms))
    moves_max = len(deadlines_ms) * len(wheel._levels)

    due = wheel.advance(jump_ms, moves_max)

    assert [entry.deadline_ms for entry in due] == sorted(
        deadline_ms for deadline_ms in deadlines_ms if deadline_ms <= jump_ms
    )
    assert wheel.current_ms == jump_ms


def demotions(deadline_ms: int, wheel_size: int) -> list[tuple[int, int]]:
    """Tick and expiration of each bucket that an entry waits in, from a fresh wheel on.

    By arithmetic: the lowest level whose interval reaches the deadline, until that has come.
    """
    passed: list[tuple[int, int]] = []
    now_ms = 0
    while now_ms < deadline_ms:
        level = 0
        while deadline_ms >= now_ms - now_ms % wheel_size**level + wheel_size ** (level + 1):
            level += 1
        now_ms = deadline_ms - deadline_ms % wheel_size**level
        passed.append((wheel_size**level, now_ms))
    return passed


@given(deadline_ms=st.integers(1, 10**12), wheel_size=st.sampled_from([2, 3, 20]))
@example(deadline_ms=445, wheel_size=20)
@example(deadline_ms=400, wheel_size=20)
@example(deadline_ms=399, wheel_size=20)
@example(deadline_ms=8_000, wheel_size=20)
@settings(deadline=None)
def test_an_entry_falls_step_by_step_and_at_each_only_when_the_bucket_expires(
    deadline_ms: int, wheel_size: int
) -> None:
    wheel = TimingWheel(0, wheel_size=wheel_size)
    entry = TimerEntry(deadline_ms)
    wheel.add(entry)

    passed: list[tuple[int, int]] = []
    came: list[tuple[int, list[TimerEntry]]] = []
    while (due_ms := wheel.next_due_ms()) is not None:
        chunk = entry._holder
        assert isinstance(chunk, Chunk)
        passed.append((chunk.bucket.tick_ms, chunk.bucket.expiration_ms))
        assert wheel.advance(due_ms - 1) == []
        assert entry._holder is chunk
        came.append((due_ms, wheel.advance(due_ms)))

    assert passed == demotions(deadline_ms, wheel_size)
    assert [due_ms for due_ms, _ in came] == [expiration_ms for _, expiration_ms in passed]
    assert [due for _, due in came] == [[]] * (len(came) - 1) + [[entry]]
