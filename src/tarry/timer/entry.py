"""Entries of a timer, which have a deadline, and `Holder`, which says where an entry lies.

Invariant: an entry lies in one timer at most, and only that timer moves it.  `Holder` is internal
to the timers: the list of one timer that an entry lies in.  It makes cancelling a single step, and
by it a timer recognises the entries of another.
"""

from __future__ import annotations

from functools import partial
from operator import index
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, SupportsIndex

from mypy_extensions import mypyc_attr

# Flags as in `inspect`, whose import takes longer than the rest of a client's timers together.
CO_COROUTINE: Final = 0x80
CO_ASYNC_GENERATOR: Final = 0x200

# Attribute of an object that can be called, and attribute of a Python function.
CALL: Final = "__call__"
CODE: Final = "__code__"


@mypyc_attr(native_class=False)
class TimerShutDown(RuntimeError):
    """The timer was shut down or closed, and takes no more entries."""


class Holder:
    """List in which entries of one timer lie, each at `entry._place - taken`; None is a hole.

    `taken` counts the entries taken from the front, so that the places of the others stay valid.
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

    A subclass defines `expire`, the work at the deadline.  The deadline of a pending entry is moved
    by its timer's `reschedule`, not by assigning to it.
    """

    __slots__ = ("_holder", "_place", "deadline_ms")

    def __init__(self, deadline_ms: SupportsIndex) -> None:
        # Avoid a call in the common case: making an entry costs more than adding it.
        self.deadline_ms: int = deadline_ms if isinstance(deadline_ms, int) else ms_of(deadline_ms)
        self._holder: Holder | None = None
        self._place = 0

    @property
    def is_pending(self) -> bool:
        """True while the entry lies in a timer."""
        return self._holder is not None

    def expire(self) -> None:
        """Do the work that is due at the deadline; the caller of `advance` calls this."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._described()}>"

    def _described(self) -> str:
        """Return the text of `repr` behind the class."""
        return f"due at {self.deadline_ms} ms, {'' if self.is_pending else 'not '}pending"

    def __reduce__(self) -> str:
        # A copy would claim the place of the original, and a pickle would include the whole timer.
        raise TypeError(
            "an entry belongs to its timer and is not copied or pickled; make a new one with the "
            "same deadline"
        )


def ms_of(time_ms: SupportsIndex) -> int:
    """Return the time as an int; refuse anything else.

    Parameters are declared with a protocol, because compiled code checks a parameter of type int
    before any of this code runs, and its error text helps nobody.
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

    Without a product: compiled code multiplies ints from 2^31 on by a function that checks for
    signals, and a Ctrl-C in it is taken for a lack of memory and ends the process.
    """
    if tick_ms == 1:
        return time_ms
    return time_ms + -time_ms % tick_ms


def deadline_of(entry: TimerEntry) -> int:
    """Return the deadline, as a key to sort by."""
    return entry.deadline_ms


def check_callable(function: object) -> None:
    """Refuse an object that cannot be called, before it fails later and out of sight."""
    if not callable(function):
        raise TypeError(
            f"{function!r} cannot be called; give the function itself and its arguments after it, "
            "not what calling it returned"
        )


def check_plain(function: object) -> None:
    """Refuse a coroutine function, or an object that cannot be called at all."""
    kind = type(function)
    if kind is BuiltinFunctionType:
        return
    code: Any = None
    if kind is FunctionType or kind is MethodType:
        # Asking an object without code for its code takes longer than the rest of a call_later.
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
    """Return the code of a partial's function, or of a callable object; None if it has none."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, CODE, None)
    if code is not None or isinstance(function, type):
        return code
    return getattr(getattr(type(function), CALL, None), CODE, None)


def why_not_added(entry: TimerEntry, timer: object) -> ValueError:
    """Return the error for adding an entry that is pending already."""
    holder = entry._holder
    if holder is not None and holder.owner is timer:
        return ValueError("the entry is pending already; reschedule() moves it")
    return ValueError("the entry is pending in another timer; cancel it there first")


def why_not_moved() -> ValueError:
    """Return the error for cancelling or moving an entry of another timer."""
    return ValueError("the entry is pending in another timer; only that one cancels or moves it")
