"""Outcomes of waits: one machine for each key, that reads its events in order of event time.

A start begins a wait unless one is open.  The first until at or after it, at most `within` later,
completes it; if there is none, it expires.  An until without an open wait is nobody's.  Events are
read when the watermark has passed them, so the order in which they came makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

COMPLETED: Final = "completed"
EXPIRED: Final = "expired"

# An event as one number that orders events: its time in microseconds times four, plus what it is.
# At one time a start comes before an until.
STARTS: Final = 1
ENDS: Final = 2
KINDS: Final = 4


class WaitOutcome(NamedTuple):
    """End of a wait; times in microseconds."""

    outcome: str
    began: int
    ended: int


class OpenWait(NamedTuple):
    """State of a key: the begin of an open wait (None: none), events not yet read."""

    began: int | None
    events: tuple[int, ...]

    def next_time(self, within: int) -> int | None:
        """Return the time at which the watermark may change it; None: never."""
        times = [self.events[0] // KINDS] if self.events else []
        if self.began is not None:
            times.append(self.began + within)
        return min(times, default=None)


def event_code(time: int, *, starts: bool, ends: bool) -> int:
    """Return an event as a number."""
    return time * KINDS + (STARTS if starts else 0) + (ENDS if ends else 0)


def settle(
    known: OpenWait, came: Iterable[int], watermark: int, within: int
) -> tuple[OpenWait, list[WaitOutcome]]:
    """Read what the watermark has passed; return what is left, and the waits that ended."""
    events = sorted([*known.events, *came])
    began = known.began
    outcomes: list[WaitOutcome] = []
    read = 0
    for code in events:
        time, kind = divmod(code, KINDS)
        if time > watermark:
            break
        read += 1
        if began is not None and time > began + within:
            outcomes.append(WaitOutcome(EXPIRED, began, began + within))
            began = None
        if began is None and kind & STARTS:
            began = time
        if began is not None and kind & ENDS:
            outcomes.append(WaitOutcome(COMPLETED, began, time))
            began = None
    if began is not None and watermark >= began + within:
        outcomes.append(WaitOutcome(EXPIRED, began, began + within))
        began = None
    left: Sequence[int] = events[read:]
    return OpenWait(began, tuple(left)), outcomes
