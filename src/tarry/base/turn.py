"""The turn that is under way: its time, and what else lasts no longer than a turn.

One object for the life of a broker, so that parts keep it and see every turn begin.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64


class Turn:
    """Time and budget of the turn that is under way.

    `now_ms` is attended time: the monotonic clock less the time that the process slept through,
    which `stalled_ms` sums up.  `now_wall_ms` is the calendar.
    """

    def __init__(self, now_ms: int, now_wall_ms: int) -> None:
        self.now_ms = now_ms
        self.now_wall_ms = now_wall_ms
        self.stalled_ms = 0
        # Compressed batches that had to be opened whole in this turn.
        self.opened_batches: i64 = 0

    def monotonic_ms(self) -> int:
        """Return the monotonic clock, with the time that the process slept through."""
        return self.now_ms + self.stalled_ms
