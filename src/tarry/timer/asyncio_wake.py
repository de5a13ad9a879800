"""Wake-up: the one `loop.call_at` that an event loop holds for a whole timer.

Invariants: while a time is wanted, exactly one live handle of the timer lies in the loop, and it
comes no later than that time.  So a wake-up without work is possible, a missed one is not.
asyncio leaves a cancelled handle in its heap until its time comes.  Therefore the wake-up is never
moved to a later time, which would happen with every cancelled call.  Once a few cancelled handles
lie in the heap, the wake-up is set near instead of far: a near handle that is replaced leaves the
heap soon, and the next wanted time seldom comes before it.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Handle
    from collections.abc import Callable

# Values of `at_ms`: no time is wanted; and a time before which no time can be wanted.
NEVER_MS: Final = 1 << 60
ALREADY_MS: Final = -(1 << 60)

# Cancelled handles that may lie in the loop's heap before wake-ups are set near.
STALE_MAX: Final = 4

# Farthest time of a near wake-up: a day, which is what asyncio sleeps at a stretch.
REACH_MS_MAX: Final = 86_400_000


class WakeUp:
    """Wake-up that calls `callback` from the loop at or before the earliest wanted time."""

    __slots__ = (
        "_callback",
        "_context",
        "_handle",
        "_loop",
        "_reach_ms",
        "_stale",
        "at_ms",
    )

    def __init__(self, loop: AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        # An empty context, not a copy of the one that is current when the wake-up is set.
        self._context = Context()
        self._handle: Handle | None = None
        self._reach_ms = 1
        self._stale: list[int] = []
        # Time by which the callback comes; a caller that wants it earlier calls `hasten`.
        self.at_ms = NEVER_MS

    def hasten(self, at_ms: int) -> None:
        """Move the wake-up to `at_ms`, which is before `self.at_ms`."""
        handle = self._handle
        if handle is not None:
            if self.at_ms <= floor_ms(self._loop.time()):
                return  # it comes in the loop's next turn, or in this one
            self._stale.append(self.at_ms)
            # The reach is halved here and doubled by each wake-up, so it settles near the times
            # that are wanted.
            is_near = len(self._stale) > STALE_MAX
            self._reach_ms = max(1, self._reach_ms // 2) if is_near else 1
        self._set(at_ms)
        if handle is not None:
            handle.cancel()

    def begin_round(self) -> None:
        """Begin a round: the callback has come, and until `end_round` nothing can hasten it."""
        self._handle = None
        self.at_ms = ALREADY_MS
        self._reach_ms = min(2 * self._reach_ms, REACH_MS_MAX)

    def end_round(self, at_ms: int | None) -> None:
        """End a round; wake up next at `at_ms`, or when a time is wanted if that is None."""
        if at_ms is None:
            self.at_ms = NEVER_MS
        else:
            self._set(at_ms)

    def stop(self) -> None:
        """Stop all wake-ups, for good."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self.at_ms = ALREADY_MS

    def _set(self, at_ms: int) -> None:
        if self._stale:
            now_ms = floor_ms(self._loop.time())
            self._stale = [stale_ms for stale_ms in self._stale if stale_ms > now_ms]
            if len(self._stale) >= STALE_MAX:
                at_ms = min(at_ms, now_ms + self._reach_ms)
        self._handle = self._loop.call_at(at_ms / 1000.0, self._callback, context=self._context)
        self.at_ms = at_ms


def floor_ms(seconds: float) -> int:
    """Return the last whole millisecond that is not after `seconds`, exactly.

    A product alone is not exact: 1.001 * 1000 may come out below 1001, and a loop whose clock
    stands at 1.001 would then wake again and again for an entry that is due at 1001 ms.
    """
    time_ms = int(seconds * 1000.0)
    if time_ms / 1000.0 > seconds:
        return time_ms - 1
    if (time_ms + 1) / 1000.0 <= seconds:
        return time_ms + 1
    return time_ms


def ceil_ms(seconds: float) -> int:
    """Return the first whole millisecond that is not before `seconds`, exactly, so that no entry
    is early.
    """
    time_ms = int(seconds * 1000.0)
    if time_ms / 1000.0 < seconds:
        return time_ms + 1
    if (time_ms - 1) / 1000.0 >= seconds:
        return time_ms - 1
    return time_ms
