"""Contract of the pure timers: whatever has these methods can stand behind a face."""

from __future__ import annotations

from typing import Protocol

from tarry.timer.entry import TimerEntry


class PureTimer(Protocol):
    """The contract of `TimingWheel`, `HeapTimer` and `RoundsTimer`; time is an argument."""

    @property
    def current_ms(self) -> int:
        """The timer's time."""

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry in; False: it is due already and the caller runs it now."""

    def add_all(self, entries: list[TimerEntry]) -> list[TimerEntry]:
        """Take the entries in; return those that are due already, which the caller runs now."""

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; False: it was not pending."""

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        """Move the deadline of an entry, pending or not; False: it is due, as with `add`."""

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by now, in order of deadline, with at most so many
        moves.
        """

    def next_due_ms(self) -> int | None:
        """Return when `advance` has something to do next; None if nothing is pending."""

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
