"""Simulated time: one agenda for a world, and one clock for each of its nodes.

`now_ms` is monotonic and moves only by `Agenda.advance_to`, on all clocks at once.  Each clock has
a calendar of its own, `now_wall_ms`, which may jump, and counts by itself how long its process was
stopped.  Actions due at the same millisecond run in the order in which they were planned.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

# 2026-01-01T00:00:00Z: a wall clock must look like one, since records carry it.
WALL_START_MS: Final = 1_767_225_600_000
# Monotonic time at which a run begins.  With 0, a forgotten `now_ms` would go unnoticed.
_START_MS: Final = 1_000_000

Action = Callable[[], None]


class Agenda:
    """Planned actions by time, and the clocks that show this time."""

    def __init__(self) -> None:
        self.now_ms = _START_MS
        self._clocks: list[SimulatedClock] = []
        self._planned: list[tuple[int, int, Action]] = []
        self._count = 0

    def new_clock(self) -> SimulatedClock:
        """Return a clock that moves with this agenda."""
        clock = SimulatedClock(self)
        self._clocks.append(clock)
        return clock

    def after(self, delay_ms: int, action: Action) -> None:
        """Plan an action."""
        assert delay_ms >= 0
        self._count += 1
        heapq.heappush(self._planned, (self.now_ms + delay_ms, self._count, action))

    def next_due_ms(self) -> int | None:
        """Return when the next action is due."""
        return self._planned[0][0] if self._planned else None

    def advance_to(self, now_ms: int) -> None:
        """Move all clocks on, without running what becomes due."""
        assert now_ms >= self.now_ms
        self.now_ms = now_ms
        for clock in self._clocks:
            clock.now_ms = now_ms

    def run_due(self) -> int:
        """Run what is due now, and what that plans for now; return how many ran."""
        count = 0
        while self._planned and self._planned[0][0] <= self.now_ms:
            action = heapq.heappop(self._planned)[2]
            action()
            count += 1
        return count


class SimulatedClock:
    """Monotonic and wall clock of one node.  Made by `Agenda.new_clock`."""

    def __init__(self, agenda: Agenda) -> None:
        self.now_ms = agenda.now_ms
        self.wall_offset_ms = WALL_START_MS
        # Time for which the node's process has been stopped so far, in ms.
        self.stalled_ms = 0
        self.stalls = 0
        self.after = agenda.after
        # Speed of the node's own clock against the world's: faster by so many per mille, or slower.
        self.drift_per_mille = 0
        self._start_ms = agenda.now_ms

    @property
    def now_wall_ms(self) -> int:
        """Calendar time, in ms since 1970."""
        return self.now_ms + self.wall_offset_ms

    @property
    def own_ms(self) -> int:
        """Monotonic time as the node's own clock shows it."""
        return self.now_ms + (self.now_ms - self._start_ms) * self.drift_per_mille // 1_000

    @property
    def own_wall_ms(self) -> int:
        """Calendar time as the node's own clock shows it."""
        return self.own_ms + self.wall_offset_ms

    def world_ms(self, own_ms: int) -> int:
        """Return the first moment of the world at which the node's own clock shows `own_ms`."""
        if not self.drift_per_mille:
            return own_ms
        own = own_ms - self._start_ms
        return self._start_ms + -(-own * 1_000 // (1_000 + self.drift_per_mille))

    @property
    def alive_ms(self) -> int:
        """Monotonic time that passes only while the node's process runs."""
        return self.now_ms - self.stalled_ms
