"""Simulated time and what is to happen in it.

`now_ms` is monotonic and moves only by `advance_to`; `now_wall_ms` follows it at an offset that
may jump.  Actions due at the same millisecond run in the order in which they were planned.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

# 2026-01-01T00:00:00Z: a wall clock must look like one, since records carry it.
WALL_START_MS: Final = 1_767_225_600_000

Action = Callable[[], None]


class SimulatedClock:
    """Monotonic time, wall time and the agenda."""

    def __init__(self) -> None:
        # A machine has been up for a while: zero would hide a forgotten `now_ms`.
        self.now_ms = 1_000_000
        self.wall_offset_ms = WALL_START_MS
        # How long the broker's process has been stopped so far.
        self.stalled_ms = 0
        self.stalls = 0
        self._agenda: list[tuple[int, int, Action]] = []
        self._planned = 0

    @property
    def now_wall_ms(self) -> int:
        return self.now_ms + self.wall_offset_ms

    @property
    def alive_ms(self) -> int:
        """Monotonic time that passes only while the broker's process runs."""
        return self.now_ms - self.stalled_ms

    def after(self, delay_ms: int, action: Action) -> None:
        """Plan an action."""
        assert delay_ms >= 0
        self._planned += 1
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, self._planned, action))

    def next_due_ms(self) -> int | None:
        return self._agenda[0][0] if self._agenda else None

    def advance_to(self, now_ms: int) -> None:
        """Move on, without running what becomes due."""
        assert now_ms >= self.now_ms
        self.now_ms = now_ms

    def run_due(self) -> int:
        """Run what is due now, and what that plans for now; return how many ran."""
        count = 0
        while self._agenda and self._agenda[0][0] <= self.now_ms:
            action = heapq.heappop(self._agenda)[2]
            action()
            count += 1
        return count
