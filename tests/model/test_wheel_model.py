"""The wheel against a sorted list: every operation, in any order, over any span of time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tarry.timer import TimerEntry, TimingWheel

# Near, around the edges of the levels of 1 ms x 20, and as far as 64 bits go.
SPANS_MS = st.one_of(
    st.integers(-3, 25),
    st.sampled_from([19, 20, 21, 399, 400, 401, 439, 440, 445, 459, 460, 7_999, 8_000, 8_001]),
    st.integers(0, 10_000),
    st.integers(0, 2**62),
)


def rounded(deadline_ms: int, tick_ms: int) -> int:
    return -(-deadline_ms // tick_ms) * tick_ms


class WheelAgainstSortedList(RuleBasedStateMachine):
    """Two equal wheels get the same calls; the oracle is a dict from entry to deadline."""

    @initialize(
        now_ms=st.integers(-(10**6), 10**12),
        tick_ms=st.sampled_from([1, 1, 1, 2, 7, 100]),
        wheel_size=st.sampled_from([2, 3, 20, 20, 64]),
    )
    def start(self, now_ms: int, tick_ms: int, wheel_size: int) -> None:
        self.now_ms = now_ms
        self.tick_ms = tick_ms
        self.wheels = [TimingWheel(now_ms, tick_ms, wheel_size) for _ in range(2)]
        self.entries: list[tuple[TimerEntry, TimerEntry]] = []
        self.pending: dict[int, int] = {}
        # Where the wheel's time stands: behind `now_ms` while a limit has left something over.
        self.is_behind = False

    def is_due(self, deadline_ms: int) -> bool:
        return rounded(deadline_ms, self.tick_ms) <= self.wheels[0].current_ms

    @rule(span_ms=SPANS_MS)
    def add(self, span_ms: int) -> None:
        deadline_ms = self.now_ms + span_ms
        pair = (TimerEntry(deadline_ms), TimerEntry(deadline_ms))
        is_due = self.is_due(deadline_ms)

        taken = [wheel.add(entry) for wheel, entry in zip(self.wheels, pair, strict=True)]

        assert taken == [not is_due] * 2
        self.entries.append(pair)
        if not is_due:
            self.pending[len(self.entries) - 1] = deadline_ms

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.entries) - 1))
        pair = self.entries[number]

        cancelled = [wheel.cancel(entry) for wheel, entry in zip(self.wheels, pair, strict=True)]

        assert cancelled == [number in self.pending] * 2
        self.pending.pop(number, None)

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), span_ms=SPANS_MS)
    def reschedule(self, data: st.DataObject, span_ms: int) -> None:
        number = data.draw(st.integers(0, len(self.entries) - 1))
        deadline_ms = self.now_ms + span_ms
        is_due = self.is_due(deadline_ms)
        pair = self.entries[number]

        kept = [
            wheel.reschedule(entry, deadline_ms)
            for wheel, entry in zip(self.wheels, pair, strict=True)
        ]

        assert kept == [not is_due] * 2
        assert pair[0].deadline_ms == deadline_ms
        self.pending.pop(number, None)
        if not is_due:
            self.pending[number] = deadline_ms

    @rule(span_ms=SPANS_MS, limit=st.one_of(st.none(), st.integers(0, 5)))
    def advance(self, span_ms: int, limit: int | None) -> None:
        self.now_ms += max(0, span_ms)

        due = self.take(limit)

        next_due_ms = self.wheels[0].next_due_ms()
        self.is_behind = next_due_ms is not None and next_due_ms <= self.now_ms
        assert limit is not None or not self.is_behind
        assert limit is None or len(due) <= limit
        if not self.is_behind:
            for deadline_ms in self.pending.values():
                assert rounded(deadline_ms, self.tick_ms) > self.now_ms - self.now_ms % self.tick_ms

    @precondition(lambda self: self.is_behind)
    @rule(limit=st.integers(1, 3))
    def advance_in_parts(self, limit: int) -> None:
        """Nothing comes between: the parts together are one advance, cost by entries only."""
        pending_before = len(self.pending)
        came: list[int] = []
        parts = 0

        while (due_ms := self.wheels[0].next_due_ms()) is not None and due_ms <= self.now_ms:
            came += self.take(limit)
            parts += 1

        assert came == sorted(came)
        assert parts <= pending_before * len(self.wheels[0]._levels)
        self.is_behind = False

    def take(self, limit: int | None) -> list[int]:
        """Advance both wheels and take what came out of the oracle; the deadlines in order."""
        came = [wheel.advance(self.now_ms, limit) for wheel in self.wheels]
        first = {id(pair[0]): number for number, pair in enumerate(self.entries)}
        second = {id(pair[1]): number for number, pair in enumerate(self.entries)}
        numbers = [first[id(entry)] for entry in came[0]]
        assert numbers == [second[id(entry)] for entry in came[1]]

        deadlines = [self.pending.pop(number) for number in numbers]
        assert deadlines == sorted(deadlines)
        for deadline_ms in deadlines:
            assert rounded(deadline_ms, self.tick_ms) <= self.now_ms
        return deadlines

    @invariant()
    def both_know_the_same_entries(self) -> None:
        if not hasattr(self, "wheels"):
            return
        for number, pair in enumerate(self.entries):
            assert pair[0].is_pending == (number in self.pending)
        assert [len(wheel) for wheel in self.wheels] == [len(self.pending)] * 2

    @invariant()
    def the_wheel_wakes_in_time(self) -> None:
        if not hasattr(self, "wheels"):
            return
        next_due_ms = self.wheels[0].next_due_ms()
        assert (next_due_ms is None) == (not self.pending)
        if next_due_ms is not None:
            earliest_ms = min(rounded(each, self.tick_ms) for each in self.pending.values())
            assert next_due_ms <= earliest_ms
            assert self.is_behind or next_due_ms > self.wheels[0].current_ms


WheelAgainstSortedList.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
TestWheelAgainstSortedList = WheelAgainstSortedList.TestCase


@given(
    deadlines_ms=st.lists(st.integers(1, 20_000), max_size=60),
    wheel_size=st.sampled_from([2, 3, 20]),
)
@settings(deadline=None)
def test_waking_at_next_due_brings_every_entry_at_its_very_millisecond(
    deadlines_ms: list[int], wheel_size: int
) -> None:
    wheel = TimingWheel(0, wheel_size=wheel_size)
    for deadline_ms in deadlines_ms:
        wheel.add(TimerEntry(deadline_ms))

    came: list[int] = []
    while (now_ms := wheel.next_due_ms()) is not None:
        for entry in wheel.advance(now_ms):
            assert entry.deadline_ms == now_ms
            came.append(entry.deadline_ms)

    assert came == sorted(deadlines_ms)


@given(
    deadlines_ms=st.lists(st.integers(1, 10**15), min_size=1, max_size=40),
    jump_ms=st.integers(1, 10**16),
)
@settings(deadline=None)
def test_a_jump_costs_by_the_entries_and_not_by_the_ticks(
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
