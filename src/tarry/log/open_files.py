"""Descriptors of all logs, bounded: those unused for longest are given back.

A holder opens its file on first use and reports that here.  Giving back only drops the reference.
A `FileRegion` that is being sent or a flush under way still holds the file, and its finalizer
closes it when no reference is left.  A file with bytes that are not flushed is never given back.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.doors import Disk, LogFile
from tarry.base.errors import TooManyOpenFiles

# Kafka's advice for one broker is 100,000 descriptors; a soft limit of 1,024 is common on
# desktops, and connections need theirs.
OPEN_FILES_MAX: Final = 512

# Holders that may refuse in a row: many dirty ones must not make each opening slow.
_REFUSALS_MAX: Final = 8


@mypyc_attr(allow_interpreted_subclasses=True)
class FileHolder:
    """Holder of an open file, which can open it again."""

    def try_release(self) -> bool:
        """Give the file back, unless it must stay open."""
        raise NotImplementedError


class OpenFiles:
    """The holders with an open file, least recently used first."""

    def __init__(self, disk: Disk, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.disk = disk
        self.open_files_max: i64 = open_files_max
        self._holders: dict[FileHolder, None] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def open(self, path: str, create: bool = False) -> LogFile:
        """Open a file; if the system has no descriptor left, other holders release theirs first."""
        try:
            return self.disk.open(path, create=create)
        except TooManyOpenFiles:
            # The lower bound stays: the other files and sockets of the process need descriptors
            # again.
            self.open_files_max = max(len(self._holders) // 2, 1)
            self.trim()
        return self.disk.open(path, create=create)

    def opened(self, holder: FileHolder) -> None:
        """Note that `holder` has opened its file; others release theirs if there are too many."""
        self._holders[holder] = None
        self.trim(holder)

    def trim(self, keep: FileHolder | None = None) -> None:
        """Make holders release files until few enough are open, or too many holders refuse."""
        refusals: i64 = 0
        while len(self._holders) > self.open_files_max and refusals < _REFUSALS_MAX:
            oldest = next(iter(self._holders))
            del self._holders[oldest]
            if oldest is keep or not oldest.try_release():
                self._holders[oldest] = None
                refusals += 1

    def used(self, holder: FileHolder) -> None:
        """Note that `holder` was read from: it is now the most recently used one."""
        if holder in self._holders:
            del self._holders[holder]
            self._holders[holder] = None

    def forget(self, holder: FileHolder) -> None:
        """Note that `holder` has given its file up by itself."""
        self._holders.pop(holder, None)
