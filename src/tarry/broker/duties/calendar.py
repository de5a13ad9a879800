"""Calendar watch: a clock that was set wrong for a minute must delete nothing."""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn

# The wall clock moved so much more or less than the monotonic one: it was set.
CLOCK_JUMP_MS: Final = 3_600_000


class CalendarWatch:
    """Compares the two clocks each time it is asked."""

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
