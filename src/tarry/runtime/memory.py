"""Memory settings of the process: freed blocks are kept, and the garbage collector runs less.

glibc maps blocks above a threshold and unmaps them when they are freed, so each large frame would
touch new pages: 85 page faults a MiB of produce, where a fault costs more than the copy
(docs/explanation/performance.md, "Measuring").  The threshold grows to the largest mapped block
that was ever freed, so allocating and freeing one such block at the start sets it.  Other
allocators are not affected.

A full collection looks at every object: 40 to 60 ms in a turn with 10,000 waiting connections.
Cycles are rare here and die young, so the young generations are collected as usual and full
collections become a hundred times rarer.

Objects made by a start are frozen: no collection looks at them again.  The logs that a running
broker makes are frozen too, with all other objects of that moment.  A frozen object is freed by its
reference count like any other.  But a cycle among frozen objects stays for good, so a log, a
connection or a request that has ended must not be part of one (`Leadership.let_go`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Size of that block; up to twice as much free memory may stay, and frames are rarely larger.
KEPT_BYTES: Final = 16 * 1024 * 1024

# Logs made by a running broker after which it freezes them.  A log has some 30 objects; a
# collection looks at those of 500 logs in 2 ms.
FROZEN_LOGS_MIN: Final = 500

# Collections of the middle generation between two full ones; Python's default is 10.
FULL_COLLECTION_INTERVAL: Final = 1_000


def keep_freed_memory() -> None:
    """Raise glibc's threshold, once at the start; the untouched block costs no memory."""
    bytes(KEPT_BYTES)


@contextmanager
def calm_collector() -> Iterator[None]:
    """Disable the collector while the broker starts, since its objects stay; then make it rarer."""
    gc.disable()
    try:
        yield
    finally:
        # Freeze all present objects: they stay for good and need no further look.
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, FULL_COLLECTION_INTERVAL)
        gc.enable()


class KeptLogs:
    """Logs that a running broker has made, and that stay for good like those of its start.

    In a full collection 10,000 of them would take 140 to 285 ms, in one turn.
    """

    def __init__(self, opened: int) -> None:
        self._frozen = opened

    def count(self, opened: int) -> None:
        """Freeze all objects if many logs were made since the last time."""
        if opened - self._frozen < FROZEN_LOGS_MIN:
            return
        self._frozen = opened
        # Collect first, because a dead cycle would be frozen too.  A full collection may take too
        # long, and short-lived cycles do not need it.
        gc.collect(1)
        gc.freeze()
