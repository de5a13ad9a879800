"""The two clocks, read once a turn and handed down as arguments."""

from __future__ import annotations

import time

from mypy_extensions import mypyc_attr


def now_ms() -> int:
    """Return the monotonic clock in ms, for deadlines and intervals."""
    return time.monotonic_ns() // 1_000_000


def now_wall_ms() -> int:
    """Return the calendar time in ms, for timestamps and retention."""
    return time.time_ns() // 1_000_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """Clocks of the machine as an object; a subclass may give a broker another time."""

    def now_ms(self) -> int:
        """Return the monotonic clock, in ms."""
        return now_ms()

    def now_wall_ms(self) -> int:
        """Return the calendar, in ms since 1970."""
        return now_wall_ms()
