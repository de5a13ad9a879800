"""Memory settings of the process: freed blocks are kept, the collector is calmed.

glibc maps blocks above a threshold and unmaps them when they are freed, so each large frame would
touch new pages: 85 page faults a MiB of produce, where a fault costs more than the copy
(docs/explanation/performance.md, "Measuring").  The threshold grows to the largest mapped block
that was ever freed; one such block at the start sets it.  Other allocators do not mind.

A full collection looks at every object: 40 to 60 ms in a turn with 10,000 connections that wait.
Cycles are rare here and die young, so the young generations go on as they are and the full
collection comes a hundred times later.

What a start makes is frozen: no collection looks at it again.  So are the logs that a running
broker makes, with whatever else there is then.  References free what is frozen, as they free
everything; but a cycle among frozen objects stays for good, so a log, a connection or a request
that is over must not be part of one (`Leadership.let_go`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Twice as much free memory may stay with the process; frames are rarely larger.
KEPT_BYTES: Final = 16 * 1024 * 1024

# Logs that a running broker has made when it freezes them.  A log has some 30 objects, and to look
# at those of 500 logs takes 2 ms.
FROZEN_LOGS_MIN: Final = 500

# Collections of the middle generation between two full ones; Python's own number is 10.
FULL_COLLECTION_INTERVAL: Final = 1_000


def keep_freed_memory() -> None:
    """Once, at the start.  The block is never touched, so it costs no memory."""
    bytes(KEPT_BYTES)


@contextmanager
def calm_collector() -> Iterator[None]:
    """Off while the broker starts, since all that recovery makes is kept; then calm."""
    gc.disable()
    try:
        yield
    finally:
        # What is there now is there for good, and is not looked at again.
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, FULL_COLLECTION_INTERVAL)
        gc.enable()


class KeptLogs:
    """Logs that a running broker has made, which are there for good like those of its start.

    10,000 of them would take a full collection 140 to 285 ms, in one turn.
    """

    def __init__(self, opened: int) -> None:
        self._frozen = opened

    def count(self, opened: int) -> None:
        """Freeze all that there is if many logs were made since the last time."""
        if opened - self._frozen < FROZEN_LOGS_MIN:
            return
        self._frozen = opened
        # Cycles that are over by now would stay; a full collection may take too long, and is not
        # needed for what dies young.
        gc.collect(1)
        gc.freeze()
