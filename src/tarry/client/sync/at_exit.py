"""The end of the process: what is called then, wherever the process came from."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Final

# Before multiprocessing ends its own threads and queues.
PRIORITY: Final = 100


def at_exit(call: Callable[[], None]) -> Callable[[], None]:
    """Have this called when the process ends; returns what takes that back.

    A process that multiprocessing made ends without what stands in `atexit`; it has a list of its
    own.
    """
    atexit.register(call)
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return lambda: atexit.unregister(call)
    from multiprocessing.util import Finalize

    finalizer = Finalize(None, call, exitpriority=PRIORITY)

    def take_back() -> None:
        atexit.unregister(call)
        finalizer.cancel()

    return take_back
