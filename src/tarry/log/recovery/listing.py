"""Listing of a log's directory, read once: a start with many logs must not read it twice."""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Disk
from tarry.log.config import INT64_MAX
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tarry.log.segment import GAP_SUFFIX, GAPS_FILE, LOG_SUFFIX

SNAPSHOT_SUFFIX: Final = ".snapshot"
_DIGITS: Final = 20


class Listing:
    """The names in one directory, and the offsets that they contain."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self.directory = directory
        self.is_there = disk.exists(directory)
        self.names: dict[str, None] = {}
        # Offsets in the names of segments and of snapshots, in increasing order.
        self.base_offsets: list[int] = []
        self.snapshot_offsets: list[int] = []
        # Base offsets of index files, which may have outlived their segment.
        self.index_offsets: dict[int, None] = {}
        # Base offsets of segments that may begin far behind the end of the one before.
        self.gap_offsets: dict[int, None] = {}
        self.read(disk)

    def read(self, disk: Disk) -> None:
        """Read the names again, after a change."""
        paths = disk.paths(self.directory) if self.is_there else []
        self.names = {path[len(self.directory) + 1 :]: None for path in paths}
        self.base_offsets = []
        self.snapshot_offsets = []
        self.index_offsets = {}
        self.gap_offsets = {}
        for name in self.names:
            digits, suffix = name[:_DIGITS], name[_DIGITS:]
            if not (digits.isascii() and digits.isdigit()) or int(digits) > INT64_MAX:
                continue
            if suffix == LOG_SUFFIX:
                self.base_offsets.append(int(digits))
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshot_offsets.append(int(digits))
            elif suffix == GAP_SUFFIX:
                self.gap_offsets[int(digits)] = None
            elif suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                self.index_offsets[int(digits)] = None

    def has(self, name: str) -> bool:
        return name in self.names

    @property
    def has_gaps(self) -> bool:
        """True if offsets may be missing wherever batches were copied."""
        return GAPS_FILE in self.names
