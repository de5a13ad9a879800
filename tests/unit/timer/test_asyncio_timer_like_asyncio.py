"""Any program of calls, cancels and jumps of the clock runs on the timer as it does on asyncio.

Times are whole milliseconds, which the timer keeps exactly, and differ: asyncio promises nothing
for ties.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st
from tests.support.hand_loop import HandLoop

from tarry.timer.asyncio_timer import AsyncioTimer

# The effect of a call besides recording: nothing, cancel another, add one so many milliseconds on
# (or back), or ask the loop for a plain call.
ACTIONS = st.one_of(
    st.none(),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("add"), st.integers(-50, 900)),
    st.tuples(st.just("soon"), st.just(0)),
)
CALLS = st.lists(st.tuples(st.integers(-100, 2000), ACTIONS), min_size=1, max_size=25)
# How the clock goes on before each turn of the loop.
STEPS = st.lists(st.integers(0, 300), min_size=1, max_size=15)


class Program:
    """One run: `face` is the loop, or the timer on it."""

    def __init__(self, loop: HandLoop, face: Any) -> None:
        self.loop = loop
        self.face = face
        self.handles: list[Any] = []
        self.taken: set[int] = set()
        self.trace: list[tuple[int, str]] = []

    def now_ms(self) -> int:
        return round(self.loop.now * 1000)

    def add(self, when_ms: int, action: tuple[str, int] | None) -> None:
        while when_ms in self.taken:
            when_ms += 1
        self.taken.add(when_ms)
        number = len(self.handles)
        self.handles.append(self.face.call_at(when_ms / 1000, self.run, number, action))

    def run(self, number: int, action: tuple[str, int] | None) -> None:
        self.record(f"call {number}")
        if action is None:
            return
        verb, argument = action
        if verb == "cancel" and argument < len(self.handles):
            self.handles[argument].cancel()
        elif verb == "add":
            self.add(self.now_ms() + argument, None)
        elif verb == "soon":
            self.loop.call_soon(self.record, f"soon {number}")

    def record(self, what: str) -> None:
        self.trace.append((self.now_ms(), what))


def trace_of(face: str, calls: list[Any], steps_ms: list[int]) -> list[tuple[int, str]]:
    loop = HandLoop(0.0)
    program = Program(loop, AsyncioTimer(loop) if face == "timer" else loop)
    for when_ms, action in calls:
        program.add(when_ms, action)
    now_ms = 0
    for step_ms in steps_ms:
        now_ms += step_ms
        loop.now = now_ms / 1000
        loop.turn()
    loop.run_until(10.0)
    loop.close()
    assert not loop.errors
    return program.trace


@given(calls=CALLS, steps_ms=STEPS)
def test_a_program_runs_as_on_asyncio(calls: list[Any], steps_ms: list[int]) -> None:
    expected = trace_of("asyncio", calls, steps_ms)

    trace = trace_of("timer", calls, steps_ms)

    assert trace == expected
