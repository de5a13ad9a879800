"""Calendar watch: notices that the wall clock was set, after which nothing may be deleted by
age.
"""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn

# If the wall clock has run so much more or less than the monotonic clock, it was set.
CLOCK_JUMP_MS: Final = 3_600_000


class CalendarWatch:
    """Comparison of the two clocks, made each time it is asked for."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._checked_ms = turn.monotonic_ms()
        self._checked_wall_ms = turn.now_wall_ms

    def jump_ms(self) -> int:
        """Return by how many ms the wall clock was set since the last time; 0 if it ran on."""
        now_ms = self._turn.monotonic_ms()
        now_wall_ms = self._turn.now_wall_ms
        jump_ms = (now_wall_ms - self._checked_wall_ms) - (now_ms - self._checked_ms)
        self._checked_ms = now_ms
        self._checked_wall_ms = now_wall_ms
        return jump_ms if abs(jump_ms) > CLOCK_JUMP_MS else 0
