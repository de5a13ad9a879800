"""The turn that is under way: its time, and what else lasts no longer than a turn.

One object for the life of a broker, so that parts keep it and see every turn begin.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.limits import OPENED_BATCHES_PER_TURN_MAX, SMALL_ELEMENTS_PER_TURN_MAX


class Turn:
    """Time and budget of the turn that is under way.

    `now_ms` is attended time: the monotonic clock less the time that the process slept through,
    which `stalled_ms` sums up.  `now_wall_ms` is the calendar.
    """

    def __init__(self, now_ms: int, now_wall_ms: int) -> None:
        # open: the broker begins the turn
        self.now_ms = now_ms
        # open: the broker begins the turn
        self.now_wall_ms = now_wall_ms
        # open: the broker begins the turn
        self.stalled_ms = 0
        # Compressed batches that had to be opened whole in this turn.
        # open: work that is bounded a turn counts itself
        self.opened_batches: i64 = 0
        # Array elements of the requests that were decoded in this turn.
        # open: work that is bounded a turn counts itself
        self.elements_decoded: i64 = 0
        # Array elements of the small requests among them.
        # open: work that is bounded a turn counts itself
        self.small_elements_decoded: i64 = 0

    def monotonic_ms(self) -> int:
        """Return the monotonic clock, with the time that the process slept through."""
        return self.now_ms + self.stalled_ms

    def is_spent(self) -> bool:
        """Return true if this turn may handle no further small request.

        Large requests have a share of their own.
        """
        return (
            self.opened_batches >= OPENED_BATCHES_PER_TURN_MAX
            or self.small_elements_decoded >= SMALL_ELEMENTS_PER_TURN_MAX
        )
