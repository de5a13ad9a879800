"""The turn under way: its time, and other state that lasts one turn.

There is one object for the life of a broker: parts keep it and see every turn begin.  Hot.
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
        # Number of requests handled in this turn.  Fetches do not count: they may wait.
        # open: the dispatch counts, and the broker begins the turn
        self.requests: i64 = 0
        # Number of batches and places that were parked in this turn.
        # open: a schedule counts what it parks, and the broker begins the turn
        self.parked: i64 = 0
        # Number of compressed batches that were decompressed whole in this turn.
        # open: work that is bounded a turn counts itself
        self.opened_batches: i64 = 0
        # Number of array elements of the requests decoded in this turn.
        # open: work that is bounded a turn counts itself
        self.elements_decoded: i64 = 0
        # Number of array elements of the small requests among them.
        # open: work that is bounded a turn counts itself
        self.small_elements_decoded: i64 = 0

    def monotonic_ms(self) -> int:
        """Return the monotonic time in ms, including the time that the process slept through."""
        return self.now_ms + self.stalled_ms

    def is_spent(self) -> bool:
        """Return True if this turn may handle no further small request.

        Large requests have a share of their own.
        """
        return (
            self.opened_batches >= OPENED_BATCHES_PER_TURN_MAX
            or self.small_elements_decoded >= SMALL_ELEMENTS_PER_TURN_MAX
        )
