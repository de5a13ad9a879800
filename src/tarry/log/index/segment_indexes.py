"""Both indexes of a segment: in memory while in use, in their files up to the last save.

Index files are hints that can be rebuilt from the batches.  The recovery point says how many of
their entries a start may trust.  A save makes the files agree with memory again.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.doors import Disk, LogFile
from tarry.log.index.offset_index import OffsetIndex
from tarry.log.index.sparse_index import SparseIndex
from tarry.log.index.time_index import TimeIndex

OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"


class SegmentIndexes:
    """The offset index and the time index of the segment at `path`."""

    def __init__(self, disk: Disk, path: str, base_offset: i64) -> None:
        self.disk = disk
        self.path = path
        self.base_offset: i64 = base_offset
        self.offsets = OffsetIndex(base_offset)
        self.times = TimeIndex(base_offset)
        self.are_loaded = True
        # Number of entries in each file, for the time in which no entries are in memory.
        self.saved_offsets: i64 = 0
        self.saved_times: i64 = 0
        # True if the content of the files is wrong, even where the counts agree.
        self.must_save = False

    def cover(self, saved_offsets: i64, saved_times: i64) -> None:
        """Note how many entries the files hold; the first use reads them."""
        self.saved_offsets = saved_offsets
        self.saved_times = saved_times
        self.are_loaded = saved_offsets == 0 and saved_times == 0

    def try_load(self) -> bool:
        """Read the entries; return False if a file is missing or too short."""
        offsets = OffsetIndex(self.base_offset)
        times = TimeIndex(self.base_offset)
        if not self._try_load(offsets, OFFSET_INDEX_SUFFIX, self.saved_offsets):
            return False
        if not self._try_load(times, TIME_INDEX_SUFFIX, self.saved_times):
            return False
        self.offsets = offsets
        self.times = times
        self.are_loaded = True
        return True

    def _try_load(self, index: SparseIndex, suffix: str, entries: i64) -> bool:
        if entries == 0:
            return True
        path = self.path + suffix
        if not self.disk.exists(path):
            return False
        size: i64 = entries * index.entry_bytes()
        content = self.disk.open(path).read(0, size)
        if len(content) < size:
            return False
        index.load(content, entries)
        return True

    def reset(self) -> None:
        """Empty both indexes; the next save rewrites the files."""
        self.offsets = OffsetIndex(self.base_offset)
        self.times = TimeIndex(self.base_offset)
        self.are_loaded = True
        self.saved_offsets = 0
        self.saved_times = 0
        self.must_save = True

    def cut(self, offset_entries: i64, time_entries: i64) -> None:
        """Keep the first `offset_entries` and `time_entries` entries."""
        if not self.are_loaded:
            # The entries were released from memory, so none was added since the last save.
            assert self.saved_offsets <= offset_entries
            assert self.saved_times <= time_entries
            return
        self.offsets.cut(offset_entries)
        self.times.cut(time_entries)
        if self.saved_offsets > offset_entries or self.saved_times > time_entries:
            self.must_save = True
            self.saved_offsets = min(self.saved_offsets, offset_entries)
            self.saved_times = min(self.saved_times, time_entries)

    def offset_entries(self) -> i64:
        """Count the entries of the offset index, in memory or in the file."""
        return self.offsets.count if self.are_loaded else self.saved_offsets

    def time_entries(self) -> i64:
        """Count the entries of the time index, in memory or in the file."""
        return self.times.count if self.are_loaded else self.saved_times

    def last_position(self) -> i64:
        """Return where the newest indexed batch begins; 0 if there is none."""
        count = self.offsets.count
        return self.offsets.position_at(count - 1) if count > 0 else 0

    def has_unsaved(self) -> bool:
        """Return true if the files lack entries."""
        if not self.are_loaded:
            return False
        return (
            self.must_save
            or self.saved_offsets != self.offsets.count
            or self.saved_times != self.times.count
        )

    def save(self, files: list[LogFile]) -> None:
        """Write the entries that the files lack; add to `files` each file that must be flushed."""
        self._save(self.offsets, OFFSET_INDEX_SUFFIX, self.saved_offsets, files)
        self.saved_offsets = self.offsets.count
        self._save(self.times, TIME_INDEX_SUFFIX, self.saved_times, files)
        self.saved_times = self.times.count
        self.must_save = False

    def _save(self, index: SparseIndex, suffix: str, saved: i64, files: list[LogFile]) -> None:
        file = self.disk.open(self.path + suffix, create=True)
        size: i64 = saved * index.entry_bytes()
        if file.size < size:
            saved = 0
            size = 0
        if file.size > size:
            file.truncate(size)
        if index.count > saved:
            file.append([index.encode_from(saved)])
        files.append(file)

    def release(self) -> None:
        """Release the entries from memory if the files have all of them."""
        if self.are_loaded and not self.has_unsaved() and self.saved_offsets + self.saved_times > 0:
            self.offsets = OffsetIndex(self.base_offset)
            self.times = TimeIndex(self.base_offset)
            self.are_loaded = False
