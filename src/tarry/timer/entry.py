"""What a timer holds: entries with a deadline, and the mark that tells where an entry lies.

Invariant: an entry lies in one timer at most, and only that timer moves it.  `Holder` is the
timers' own: part of one timer's inside that an entry lies in, which makes cancelling a matter of
one look and lets a timer recognise what belongs to another.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(native_class=False)
class TimerShutDown(RuntimeError):
    """The timer was shut down or closed, and takes nothing any more."""


class Holder:
    """A list that entries of one timer lie in, at `entry._place - taken`; None is a hole.

    `taken` counts what has left at the front, so that the places of the others stay right.
    """

    __slots__ = ("entries", "holes", "owner", "taken")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.entries: list[TimerEntry | None] = []
        self.holes = 0
        self.taken = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerEntry:
    """Something that is due at `deadline_ms`, an int on the clock of its timer.

    To be subclassed: what is to be done at the deadline is `expire`.  The deadline of a pending
    entry is moved by its timer's `reschedule`, not by assigning to it.
    """

    __slots__ = ("_holder", "_place", "deadline_ms")

    def __init__(self, deadline_ms: int) -> None:
        check_ms(deadline_ms)
        self.deadline_ms = deadline_ms
        self._holder: Holder | None = None
        self._place = 0

    @property
    def is_pending(self) -> bool:
        """True while the entry lies in a timer."""
        return self._holder is not None

    def expire(self) -> None:
        """What is to be done at the deadline; called by whoever advances the timer."""

    def __reduce__(self) -> str:
        # A copy would say that it lies where the original does, and a pickle would take the
        # whole timer along.
        raise TypeError(
            "an entry belongs to its timer and is not copied or pickled; make a new one with the "
            "same deadline"
        )


def check_ms(time_ms: int) -> None:
    """Refuse a time that is no int.  The compiled form refuses it before it gets here."""
    if not isinstance(time_ms, int):
        raise TypeError(
            f"a time is an int of milliseconds, not {time_ms!r}; round it, up for a deadline"
        )


def round_up(time_ms: int, tick_ms: int) -> int:
    """The first multiple of the tick that is not before the time.

    Without a product: compiled, ints from 2^31 on are multiplied by a function that looks for
    signals, and a Ctrl-C in it is taken for want of memory and ends the process.
    """
    if tick_ms == 1:
        return time_ms
    return time_ms + -time_ms % tick_ms


def deadline_of(entry: TimerEntry) -> int:
    """To sort by."""
    return entry.deadline_ms


def check_callable(function: object) -> None:
    """Refuse at once what could only fail later, where nobody sees who asked for it."""
    if not callable(function):
        raise TypeError(
            f"{function!r} cannot be called; give the function itself and its arguments after it, "
            "not what calling it returned"
        )


def why_not_added(entry: TimerEntry, timer: object) -> ValueError:
    """The error for adding an entry that is pending already."""
    holder = entry._holder
    if holder is not None and holder.owner is timer:
        return ValueError("the entry is pending already; reschedule() moves it")
    return ValueError("the entry is pending in another timer; cancel it there first")


def why_not_moved() -> ValueError:
    """The error for cancelling or moving an entry of another timer."""
    return ValueError("the entry is pending in another timer; only that one cancels or moves it")
