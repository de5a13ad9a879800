"""Collections of garbage by thread: finalizers run in the middle of a thread's other work.

A finalizer (`__del__`, a callback of `weakref`) that calls the object that it interrupted would
wait for ever for a lock that its own thread holds.  Python reports when a collection begins and
ends.  The check costs nothing until a lock is found taken; a collection takes half a microsecond
longer.
"""

from __future__ import annotations

import gc
import threading
from typing import Final


class Collector:
    """Listener to the garbage collector, from the first timer on."""

    __slots__ = ("_ident", "_is_listening")

    def __init__(self) -> None:
        self._ident = 0
        self._is_listening = False

    def listen(self) -> None:
        """Listen to collections; a second call does nothing."""
        if not self._is_listening:
            self._is_listening = True
            gc.callbacks.append(self._note)

    def is_here(self) -> bool:
        """Return True if this thread is in the middle of a collection, that is in a finalizer."""
        return self._ident == threading.get_ident()

    def _note(self, phase: str, info: dict[str, int]) -> None:
        self._ident = threading.get_ident() if phase == "start" else 0


COLLECTOR: Final = Collector()
