"""Readers of a log by kind: how far each may read, and what its answers must hold."""

from __future__ import annotations

from typing import Final


class LogReader:
    """Reader of one of three kinds.

    A consumer reads to the high watermark, a committed consumer to the last stable offset, a
    replica to the written end, even while its leader may not act.
    """

    __slots__ = ("is_committed", "is_replica")

    def __init__(self, *, is_committed: bool = False, is_replica: bool = False) -> None:
        self.is_committed = is_committed
        self.is_replica = is_replica


CONSUMER: Final = LogReader()
COMMITTED_CONSUMER: Final = LogReader(is_committed=True)
REPLICA: Final = LogReader(is_replica=True)
