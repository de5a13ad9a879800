"""Summary of the disk's refusals: a line when they begin, one a minute, one when they are over.

A full disk refuses every write of every client, and most clients retry at once.  A line for each
would hide the one that an operator must read: that the disk is full, and where.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.doors import Disk
from tarry.base.errors import DiskFull, StorageError

INTERVAL_MS: Final = 60_000


class DiskTrouble:
    """Trouble of a disk, written into a log.  `flush` must be called every `INTERVAL_MS`.

    `directory` is the name of the disk's directory for an operator.
    """

    def __init__(self, disk: Disk, logger: logging.Logger, directory: str) -> None:
        self.directory = directory
        self._disk = disk
        self._logger = logger
        # A full disk and a failing one are counted and end apart.
        self._full = _Trouble()
        self._failing = _Trouble()

    def report(self, what: str, error: StorageError) -> None:
        """Count a refusal, and log it if it is the first; `what` is a clause with the action."""
        is_full = isinstance(error, DiskFull)
        trouble = self._full if is_full else self._failing
        trouble.count += 1
        trouble.total += 1
        trouble.last = f"{what}: {error}"
        if trouble.total > 1:
            return
        trouble.is_new = True
        if is_full:
            self._logger.error(
                "%s; %s. Producers get KAFKA_STORAGE_ERROR and try again; what was acknowledged is "
                "safe. Free room on that file system: no restart is needed",
                self._fullness(),
                trouble.last,
            )
        else:
            self._logger.error("the disk failed: %s", trouble.last)

    def flush(self) -> None:
        """Log the refusals of the last minute, or the end of the trouble."""
        self._full = self._told(self._full, self._fullness(" now") if self._full.total else "")
        self._failing = self._told(self._failing, "the disk failed")

    def _told(self, trouble: _Trouble, name: str) -> _Trouble:
        if not trouble.total:
            return trouble
        if trouble.count == 0 and not trouble.is_new:
            self._logger.info(
                "the disk has refused nothing for a minute; refusals before: %d",
                trouble.total,
            )
            return _Trouble()
        told = trouble.count - 1 if trouble.is_new else trouble.count
        if told > 0:
            self._logger.error(
                "%s; it refused %d times more in the last minute, the last: %s",
                name,
                told,
                trouble.last,
            )
        trouble.is_new = False
        trouble.count = 0
        return trouble

    def _fullness(self, when: str = "") -> str:
        try:
            free = f"{self._disk.free_bytes()} bytes free{when}"
        except StorageError as error:
            free = str(error)
        return f"disk full: {self.directory} ({free})"


class _Trouble:
    """Trouble of one kind, from its first refusal until a minute without one."""

    __slots__ = ("count", "is_new", "last", "total")

    def __init__(self) -> None:
        self.last = ""
        self.total = 0
        # Number of refusals since the last line, the one that was logged at once included.
        self.count = 0
        self.is_new = False
