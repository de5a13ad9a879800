"""Contract of the pure timers: an object with these methods can stand behind a face."""

from __future__ import annotations

from typing import Protocol

from tarry.timer.entry import TimerEntry


class PureTimer(Protocol):
    """The contract of `TimingWheel`, `HeapTimer` and `RoundsTimer`; time is an argument."""

    @property
    def current_ms(self) -> int:
        """Time of the timer, in ms."""

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry; return False if it is due already, and the caller runs it now."""

    def add_all(self, entries: list[TimerEntry]) -> list[TimerEntry]:
        """Take the entries; return those that are due already, which the caller runs now."""

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; return False if it was not pending."""

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        """Move the deadline of an entry, pending or not; return False if due, as with `add`."""

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by `now_ms`, in order of deadline, with at most `limit`
        moves.
        """

    def next_due_ms(self) -> int | None:
        """Return when `advance` has work next, in ms; None if no entry is pending."""

    def __len__(self) -> int:
        """Count the pending entries."""


def add_each(timer: PureTimer, entries: list[TimerEntry]) -> list[TimerEntry]:
    """Add the entries one after the other, all or none; return those that are due already."""
    due: list[TimerEntry] = []
    count = 0
    try:
        for entry in entries:
            if not timer.add(entry):
                due.append(entry)
            count += 1
    except ValueError:
        for entry in entries[:count]:
            timer.cancel(entry)
        raise
    return due
