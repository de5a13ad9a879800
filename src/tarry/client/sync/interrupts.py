"""Interrupts: Ctrl-C, and exceptions of a SIGTERM handler, delayed until no turn is half done.

Python runs the handlers of signals in the main thread between any two instructions, and their
exceptions are raised there.  In the middle of a turn that would leave the core half changed, or
lose bytes that were read.  So a call holds these signals while it works, and lets them through
while it waits.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], Any]

# The C module below `signal`.  `signal` converts each number and handler to an enumeration, which
# costs 3 to 6 µs, and a client's call does so eight times.
_plain: Final[Any] = import_module("_signal")


class Interrupts:
    """Signals of one call: `hold` them, `release` them.  Does nothing outside of the main thread,
    where Python runs no handler, and for signals whose handler is not a function."""

    __slots__ = ("_came", "_handlers", "_is_held")

    def __init__(self) -> None:
        self._is_held = False
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    @property
    def has_come(self) -> bool:
        """True if a signal was held back, whose handler `release` runs."""
        return bool(self._came)

    def hold(self) -> None:
        """Hold the signals from now on.

        If a signal arrives during this call, its handler may raise here; the signals are held then,
        too.
        """
        if self._is_held or threading.get_ident() != threading.main_thread().ident:
            return
        try:
            self._take_handlers()
        except BaseException:
            self._take_handlers()
            raise

    def _take_handlers(self) -> None:
        """Replace each handler that was not replaced yet."""
        self._is_held = True
        for number in SIGNALS:
            handler = _plain.getsignal(number)
            if callable(handler) and handler != self._note:
                self._handlers[number] = handler
                _plain.signal(number, self._note)

    def release(self) -> None:
        """Let the signals through.  The handlers of signals that arrived meanwhile run now, and may
        raise."""
        if not self._is_held:
            return
        for number, handler in self._handlers.items():
            replaced = _plain.signal(number, handler)
            if replaced != self._note:
                # The user's code, which the core has called, has set another handler.
                _plain.signal(number, replaced)
        came, handlers = self._came, self._handlers
        self._is_held, self._came, self._handlers = False, [], {}
        for number, frame in came:
            handlers[number](number, frame)

    def release_or(self, give_back: Callable[[], None]) -> None:
        """Release the signals; if a handler raises, call `give_back` first to undo the call's
        taking."""
        try:
            self.release()
        except BaseException:
            again = Interrupts()
            again.hold()
            try:
                give_back()
            finally:
                again.release()
            raise

    def handler_of(self, number: int) -> Any:
        """Return the handler that this object has replaced."""
        return self._handlers.get(number, signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))


def _let_go() -> None:
    """Restore the handlers in the child of a fork, where the thread that held them is missing."""
    for number in SIGNALS:
        handler: Any = _plain.getsignal(number)
        while isinstance(holder := getattr(handler, "__self__", None), Interrupts):
            handler = holder.handler_of(number)
            _plain.signal(number, handler)


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
