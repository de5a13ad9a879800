"""Delayed operation: a request that waits for a condition, until a deadline at most.

Invariant: pending, then completed, once, by whoever gets there first.  What the condition is
and what completion means are the subclass's; where it waits is the purgatory's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from tarry.timer.entry import TimerEntry

if TYPE_CHECKING:
    from tarry.purgatory.purgatory import Purgatory


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerEntry):
    """A timer entry with a condition.  A subclass defines `try_complete` and `on_complete`.

    A completed operation lingers under its other watch keys until these are checked or purged,
    so `on_complete` (or `on_expiration`, which comes last) drops what it answered with:
    KAFKA-19389 and KAFKA-19763 leaked whole fetches.
    """

    __slots__ = ("is_completed", "is_delayed", "purgatory", "watch_count")

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.is_completed = False
        # The purgatory's notes: where it waits, whether in the timer, under how many keys.
        self.purgatory: Purgatory | None = None
        self.is_delayed = False
        self.watch_count = 0

    def try_complete(self) -> bool:
        """Return `self.force_complete()` when the condition holds, else False."""
        return False

    def force_complete(self) -> bool:
        """Complete without asking the condition; True for the first caller only."""
        if self.is_completed:
            return False
        self.is_completed = True
        purgatory = self.purgatory
        if purgatory is not None:
            purgatory.release(self)
        self.on_complete()
        return True

    def on_complete(self) -> None:
        """Answer.  Runs exactly once, after the operation has left the timer."""

    def on_expiration(self) -> None:
        """Runs after `on_complete` when the deadline, not the condition, completed it."""

    def expire(self) -> None:
        # The condition may hold while its key still waits to be checked: what has arrived counts.
        if self.is_completed or self.try_complete():
            return
        purgatory = self.purgatory
        if self.force_complete():
            if purgatory is not None:
                purgatory.expired_total += 1
            self.on_expiration()
