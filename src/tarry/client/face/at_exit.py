"""The end of the process: what is called then, wherever the process came from."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Final

# Before multiprocessing ends its own threads and queues.
PRIORITY: Final = 100

# An ordered set.  `atexit` keeps a place for whatever it was ever given.
_CALLS: Final[dict[Callable[[], None], None]] = {}


def at_exit(call: Callable[[], None]) -> Callable[[], None]:
    """Have this called when the process ends; returns what takes that back.

    A process that multiprocessing made ends without what stands in `atexit`; it has a list of its
    own.
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
    """Return true if the process ends."""
    return not threading.main_thread().is_alive() or sys.is_finalizing()


def calls_waiting() -> int:
    """Return how many calls wait for the end."""
    return len(_CALLS)


@atexit.register
def _make_all() -> None:
    with contextlib.ExitStack() as stack:
        # Each is made, whatever another one raises.
        for call in list(_CALLS):
            stack.callback(call)
