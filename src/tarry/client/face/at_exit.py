"""Calls at the end of the process, also of one that multiprocessing has started."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Final

# Priority that puts the calls before multiprocessing's ends of its own threads and queues.
PRIORITY: Final = 100

# Calls in the order of their registration.  They are not given to `atexit` one by one, because it
# never frees an entry.
_CALLS: Final[dict[Callable[[], None], None]] = {}


def at_exit(call: Callable[[], None]) -> Callable[[], None]:
    """Have this called when the process ends; return a function that cancels it.

    A process that multiprocessing has started ends without the calls of `atexit`; it has a list of
    its own.
    """
    _CALLS[call] = None
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return lambda: _CALLS.pop(call, None)
    from multiprocessing.util import Finalize

    finalizer = Finalize(None, call, exitpriority=PRIORITY)

    def take_back() -> None:
        _CALLS.pop(call, None)
        finalizer.cancel()

    return take_back


def has_end_begun() -> bool:
    """Return true if the process is about to end."""
    return not threading.main_thread().is_alive() or sys.is_finalizing()


def calls_waiting() -> int:
    """Return the number of registered calls."""
    return len(_CALLS)


@atexit.register
def _make_all() -> None:
    with contextlib.ExitStack() as stack:
        # Every call is made, even if another one raises.
        for call in list(_CALLS):
            stack.callback(call)
