"""Entries of a timer, which have a deadline, and the mark that tells where an entry lies.

Invariant: an entry lies in one timer at most, and only that timer moves it.  `Holder` is the
timers' own: part of one timer's inside that an entry lies in, which makes cancelling a matter of
one look and lets a timer recognise what belongs to another.
"""

from __future__ import annotations

from functools import partial
from operator import index
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, SupportsIndex

from mypy_extensions import mypyc_attr

# As `inspect` has them, whose import takes longer than that of all the rest of a client's timers.
CO_COROUTINE: Final = 0x80
CO_ASYNC_GENERATOR: Final = 0x200

# What makes an object one that can be called, and what a function of Python has.
CALL: Final = "__call__"
CODE: Final = "__code__"


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
    """Entry that is due at `deadline_ms`, an int on the clock of its timer.

    To be subclassed: what is to be done at the deadline is `expire`.  The deadline of a pending
    entry is moved by its timer's `reschedule`, not by assigning to it.
    """

    __slots__ = ("_holder", "_place", "deadline_ms")

    def __init__(self, deadline_ms: SupportsIndex) -> None:
        # The common case without a call: making an entry costs more than adding it.
        self.deadline_ms: int = deadline_ms if isinstance(deadline_ms, int) else ms_of(deadline_ms)
        self._holder: Holder | None = None
        self._place = 0

    @property
    def is_pending(self) -> bool:
        """True while the entry lies in a timer."""
        return self._holder is not None

    def expire(self) -> None:
        """Do what is to be done at the deadline; called by whoever advances the timer."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._described()}>"

    def _described(self) -> str:
        """Return what `repr` says besides the class."""
        return f"due at {self.deadline_ms} ms, {'' if self.is_pending else 'not '}pending"

    def __reduce__(self) -> str:
        # A copy would say that it lies where the original does, and a pickle would take the
        # whole timer along.
        raise TypeError(
            "an entry belongs to its timer and is not copied or pickled; make a new one with the "
            "same deadline"
        )


def ms_of(time_ms: SupportsIndex) -> int:
    """Return the time as an int; refuses what is none.

    Parameters are declared by a protocol because the compiled form refuses an int's own before
    any of our code runs, and in words that help nobody.
    """
    if isinstance(time_ms, int):
        return time_ms
    try:
        return index(time_ms)
    except TypeError:
        raise TypeError(
            f"a time is an int of milliseconds, not {time_ms!r}; round it, up for a deadline"
        ) from None


def round_up(time_ms: int, tick_ms: int) -> int:
    """Return the first multiple of the tick that is not before the time.

    Without a product: compiled, ints from 2^31 on are multiplied by a function that looks for
    signals, and a Ctrl-C in it is taken for want of memory and ends the process.
    """
    if tick_ms == 1:
        return time_ms
    return time_ms + -time_ms % tick_ms


def deadline_of(entry: TimerEntry) -> int:
    """Return the deadline, as a key to sort by."""
    return entry.deadline_ms


def check_callable(function: object) -> None:
    """Refuse at once what could only fail later, where nobody sees who asked for it."""
    if not callable(function):
        raise TypeError(
            f"{function!r} cannot be called; give the function itself and its arguments after it, "
            "not what calling it returned"
        )


def check_plain(function: object) -> None:
    """Refuse, besides what cannot be called, what would only make a coroutine in a thread."""
    kind = type(function)
    if kind is BuiltinFunctionType:
        return
    code: Any = None
    if kind is FunctionType or kind is MethodType:
        # To ask what has no code for it takes longer than all the rest of a call_later.
        code = getattr(function, CODE, None)
    else:
        check_callable(function)
        code = _code_behind(function)
    if code is not None and code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise TypeError(
            f"{function!r} is a coroutine function, and no event loop runs in the thread that "
            "would call it; give a plain function, or use AsyncioTimer in the loop's thread"
        )


def _code_behind(function: object) -> Any:
    """Return the code of a partial's function, or of an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, CODE, None)
    if code is not None or isinstance(function, type):
        return code
    return getattr(getattr(type(function), CALL, None), CODE, None)


def why_not_added(entry: TimerEntry, timer: object) -> ValueError:
    """Make the error for adding an entry that is pending already."""
    holder = entry._holder
    if holder is not None and holder.owner is timer:
        return ValueError("the entry is pending already; reschedule() moves it")
    return ValueError("the entry is pending in another timer; cancel it there first")


def why_not_moved() -> ValueError:
    """Make the error for cancelling or moving an entry of another timer."""
    return ValueError("the entry is pending in another timer; only that one cancels or moves it")
