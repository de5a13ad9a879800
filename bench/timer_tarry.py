"""Tarry's timers under measurement, in whichever form the process has imported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final

from timer_python import AsyncioSubject
from timer_subject import Subject, each

from tarry.timer import HeapTimer, RoundsTimer, TimerEntry, TimingWheel

# How many moves one call of `advance` may make where pauses are measured.
LIMIT: Final = 1000

# The thread of a SystemTimer sleeps that long at least before anything is due, real time.
LEAD_MS: Final = 2000


class PureSubject(Subject):
    """A timer whose time is an argument; who advances it calls `expire` of what is due."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make
        self.due: list[TimerEntry] = []

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        self.timer = self.make()
        self.end_ms = span_ms + 1000  # also where a tick is coarse
        self.handles = [TimerEntry(delay_ms) for delay_ms in delays_ms]

    def add(self) -> None:
        each(self.timer.add, self.handles)

    def cancel(self) -> None:
        each(self.timer.cancel, self.chosen)

    def advance(self) -> None:
        self.due = self.timer.advance(self.end_ms)
        assert len(self.timer) == 0

    def run(self) -> None:
        each(TimerEntry.expire, self.due)

    def pauses(self) -> list[float]:
        advance, end_ms, clock = self.timer.advance, self.end_ms, time.thread_time
        spent = []
        while len(self.timer):
            started = clock()
            advance(end_ms, LIMIT)
            spent.append(clock() - started)
        return spent

    def end(self) -> None:
        self.timer = None
        self.due = []


class WheelOfLists(PureSubject):
    """The wheel, which takes all entries in one call of `add_all`."""

    def __init__(self) -> None:
        super().__init__(lambda: TimingWheel(0))

    def add(self) -> None:
        self.timer.add_all(self.handles)


def wheel() -> PureSubject:
    return PureSubject(lambda: TimingWheel(0))


def heap() -> PureSubject:
    return PureSubject(lambda: HeapTimer(0))


def rounds() -> PureSubject:
    """Make a timer of Netty's default shape: 512 buckets of 100 ms."""
    return PureSubject(lambda: RoundsTimer(0, 100, 512))


class SystemTimerSubject(Subject):
    """The thread-safe timer with its two threads, on a clock of ours.

    The reaper sleeps through the pass; the thread that measures does its work when time has come.
    Tasks run in the timer's own executor, whose CPU is counted, until the last is through.
    """

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        from tarry.timer import SystemTimer

        self.now_ms = 0
        self.end_ms = LEAD_MS + span_ms
        self.timer = SystemTimer("bench", clock=lambda: self.now_ms)
        self.handles = [TimerEntry(LEAD_MS + delay_ms) for delay_ms in delays_ms]

    def add(self) -> None:
        each(self.timer.add, self.handles)

    def cancel(self) -> None:
        each(self.timer.cancel, self.chosen)

    def advance(self) -> None:
        self.now_ms = self.end_ms
        self.timer.advance()
        assert self.timer.shutdown() == 0

    def end(self) -> None:
        self.timer.shutdown()


class AsyncioTimerSubject(AsyncioSubject):
    """The asyncio face: asyncio's calls and units, one `call_at` of the loop for all of them."""

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        from tarry.timer import AsyncioTimer

        super().begin(delays_ms, span_ms, is_to_advance)
        self.timer: Any = None

        async def make() -> None:
            self.timer = AsyncioTimer()

        self.loop.run_until_complete(make())

    def add(self) -> None:
        self.inside(self._add)

    def _add(self) -> None:
        self.handles = list(map(self.timer.call_later, self.delays_s, repeat(self.task)))

    def cancel(self) -> None:
        self.inside(super().cancel)

    def inside(self, act: Callable[[], None]) -> None:
        """Call from the loop to which the face belongs."""

        async def call() -> None:
            act()

        self.loop.run_until_complete(call())

    def advance(self) -> None:
        self.now_s = self.end_s

        async def drain() -> None:
            while len(self.timer):
                await asyncio.sleep(0)

        self.loop.run_until_complete(drain())

    def pauses(self) -> list[float]:
        """Return the CPU of each turn of the loop, in seconds."""
        spent: list[float] = []
        self.now_s = self.end_s

        async def drain() -> None:
            clock = time.thread_time
            started = clock()
            while len(self.timer):
                await asyncio.sleep(0)
                ended = clock()
                spent.append(ended - started)
                started = ended

        self.loop.run_until_complete(drain())
        return spent

    def end(self) -> None:
        async def close() -> None:
            self.timer.close()

        self.loop.run_until_complete(close())
        super().end()


SUBJECTS: Final[dict[str, Callable[[], Subject]]] = {
    "wheel": wheel,
    "wheel-lists": WheelOfLists,
    "heap": heap,
    "rounds": rounds,
    "system": SystemTimerSubject,
    "asyncio-timer": AsyncioTimerSubject,
}
