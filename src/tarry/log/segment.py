"""A segment: one file of batches with its two indexes.

`size` includes the unwritten tail, `written_size` is what the file has, `flushed_size` what is
durable.  The positions of the newest batches stay in memory, so that a read at the tail uses the
disk only to send; for an older batch the sparse index leads near and a walk over headers finds it.
File and indexes are opened on first use and released when others need the room.

Invariants: flushed_size <= written_size <= size; a batch's position and offsets grow together.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.base.errors import StorageError
from tarry.log.batch_walk import UNKNOWN_OFFSET, BatchWalk, Flaw
from tarry.log.config import LogConfig
from tarry.log.index.newest_batches import UNKNOWN_POSITION, NewestBatches
from tarry.log.index.segment_indexes import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentIndexes,
)
from tarry.log.open_files import FileHolder, OpenFiles
from tarry.records.batch import NO_TIMESTAMP, BatchHeader

logger = logging.getLogger("tarry.log")

LOG_SUFFIX: Final = ".log"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
# Suffix of the file beside a segment that begins far behind the end of the one before.
GAP_SUFFIX: Final = ".gap"
# File in the directory of a log that copied a batch behind missing offsets.
GAPS_FILE: Final = "offset-gaps"

UNKNOWN_TIMESTAMP: Final = -2

# Relative offsets and positions are 32-bit in the index files.
INT32_MAX: Final = 0x7FFFFFFF


def segment_path(directory: str, base_offset: i64) -> str:
    """Return the path of a segment's files without the suffix."""
    return f"{directory}/{base_offset:020d}"


class SegmentRow:
    """A segment's part that the recovery point covers."""

    def __init__(self, numbers: list[int]) -> None:
        self.base_offset = numbers[0]
        self.size = numbers[1]
        self.max_timestamp = numbers[2]
        self.max_timestamp_offset = numbers[3]
        self.modified_wall_ms = numbers[4]
        self.offset_entries = numbers[5]
        self.time_entries = numbers[6]

    def encode(self) -> str:
        return (
            f"{self.base_offset}:{self.size}:{self.max_timestamp}:{self.max_timestamp_offset}:"
            f"{self.modified_wall_ms}:{self.offset_entries}:{self.time_entries}"
        )


def decode_segment_row(text: str) -> SegmentRow:
    return SegmentRow([int(number) for number in text.split(":")])


class SegmentMark:
    """State of a segment before a tail, so that a failed write can be undone."""

    def __init__(self, segment: Segment) -> None:
        indexes = segment.loaded()
        self.size: i64 = segment.size
        self.first_timestamp: i64 = segment.first_timestamp
        self.max_timestamp: i64 = segment.max_timestamp
        self.max_timestamp_offset: i64 = segment.max_timestamp_offset
        self.modified_wall_ms: i64 = segment.modified_wall_ms
        self.unindexed_bytes: i64 = segment.unindexed_bytes
        self.offset_entries: i64 = indexes.offsets.count
        self.time_entries: i64 = indexes.times.count


class Segment(FileHolder):
    """The batches from `base_offset` on, up to the next segment's."""

    def __init__(self, files: OpenFiles, directory: str, base_offset: i64, config: LogConfig):
        self.files = files
        self.path = segment_path(directory, base_offset)
        self.base_offset: i64 = base_offset
        self.config = config
        self.size: i64 = 0
        self.written_size: i64 = 0
        self.flushed_size: i64 = 0
        # True if the file exists; an empty segment gets one with its first write.
        self.has_file = False
        # True if offsets may be missing between its batches: compaction took them, here or in the
        # log that was copied.
        self.has_gaps = False
        # True if the segment before may end far below `base_offset`; a file says so.
        self.is_behind_gap = False
        # True if `Unflushed` lists the segment among those with bytes to flush.
        self.is_dirty = False
        # Largest timestamp of the first batch, by which the segment rolls by time.
        self.first_timestamp: i64 = UNKNOWN_TIMESTAMP
        self.max_timestamp: i64 = NO_TIMESTAMP
        # Last offset of the batch that has the largest timestamp.
        self.max_timestamp_offset: i64 = base_offset
        self.created_wall_ms: i64 = UNKNOWN_TIMESTAMP
        self.modified_wall_ms: i64 = UNKNOWN_TIMESTAMP
        self.unindexed_bytes: i64 = 0
        self.newest = NewestBatches()
        self.indexes = SegmentIndexes(files.disk, self.path, base_offset)
        self._file: LogFile | None = None

    def cover(self, row: SegmentRow) -> None:
        """Take over the state that a row of the recovery point describes."""
        self.size = row.size
        self.written_size = row.size
        self.flushed_size = row.size
        self.max_timestamp = row.max_timestamp
        self.max_timestamp_offset = row.max_timestamp_offset
        self.modified_wall_ms = row.modified_wall_ms
        self.unindexed_bytes = row.size
        self.indexes.cover(row.offset_entries, row.time_entries)

    def row(self) -> SegmentRow:
        """Return the row for a recovery point, with the written bytes and the saved entries."""
        return SegmentRow(
            [
                self.base_offset,
                self.written_size,
                self.max_timestamp,
                self.max_timestamp_offset,
                self.modified_wall_ms,
                self.indexes.saved_offsets,
                self.indexes.saved_times,
            ]
        )

    # --- Appending.

    def must_roll(self, size: i64, last_offset: i64, max_timestamp: i64, now_wall_ms: i64) -> bool:
        """Return True if a batch has to go to a new segment, by Kafka's rules."""
        if self.size == 0:
            return False
        if self.size + size > self.config.segment_bytes or self.size + size > INT32_MAX:
            return True
        if last_offset - self.base_offset > INT32_MAX:
            return True
        roll_ms: i64 = self.config.segment_ms
        if self.config.has_compaction:
            # A record that must be compacted by then may not be in the last segment any more.
            roll_ms = min(roll_ms, self.config.max_compaction_lag_ms)
        roll_ms = max(roll_ms - self.config.segment_jitter_ms, 0)
        if self.waited_ms(max_timestamp, now_wall_ms) > roll_ms:
            return True
        index_bytes: i64 = self.config.segment_index_bytes
        indexes = self.loaded()
        return indexes.offsets.count >= index_bytes // 8 or indexes.times.count >= index_bytes // 12

    def prepare_append(self) -> None:
        """Load everything that an append needs from the disk, so that appends cannot fail."""
        self.loaded()
        self.load_first_timestamp()

    def load_first_timestamp(self) -> i64:
        """Load the first batch's timestamp from the file if it is not known."""
        if self.first_timestamp == UNKNOWN_TIMESTAMP and self.size > 0:
            header = self.next_header(self.walk(0, self.written_size))
            assert header is not None
            self.first_timestamp = header.max_timestamp
        return self.first_timestamp

    def waited_ms(self, max_timestamp: i64, now_wall_ms: i64) -> i64:
        """Return how long the segment has been open in ms: of record time if its first batch has a
        timestamp, else of the calendar.
        """
        if self.first_timestamp >= 0:
            return max_timestamp - self.first_timestamp
        if self.created_wall_ms == UNKNOWN_TIMESTAMP:
            self.created_wall_ms = now_wall_ms
        return now_wall_ms - self.created_wall_ms

    def note_batch(self, base_offset: i64, header: BatchHeader, now_wall_ms: i64) -> None:
        """Note a batch that now ends the segment: positions, timestamps and indexes follow."""
        position = self.size
        size: i64 = header.size
        last_offset: i64 = base_offset + header.last_offset_delta
        max_timestamp: i64 = header.max_timestamp
        if position == 0:
            self.first_timestamp = max_timestamp
            self.created_wall_ms = now_wall_ms
        self.modified_wall_ms = now_wall_ms
        self.newest.add(base_offset, position)
        self.note_entry(last_offset, max_timestamp, position, size)
        self.size = position + size

    def note_entry(self, last_offset: i64, max_timestamp: i64, position: i64, size: i64) -> None:
        """Update largest timestamp and indexes for a batch; a rebuild of indexes calls it alone."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.unindexed_bytes > self.config.index_interval_bytes:
            indexes = self.loaded()
            indexes.offsets.append(last_offset, position)
            indexes.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.unindexed_bytes = 0
        self.unindexed_bytes += size

    def note_recovered(self, header: BatchHeader, position: i64) -> None:
        """Note a batch that recovery found beyond the recovery point, as the last one."""
        if position == 0:
            self.first_timestamp = header.max_timestamp
        # The batch was appended after the recovery point, at an unknown time.
        self.modified_wall_ms = UNKNOWN_TIMESTAMP
        self.note_entry(header.last_offset, header.max_timestamp, position, header.size)
        self.size = position + header.size
        self.written_size = self.size

    def append_chunks(self, chunks: list[bytes | memoryview], size: i64) -> None:
        """Write the tail; `StorageError` leaves the file as it was."""
        file = self.file() if self.has_file else self._make_file()
        if file.size > self.written_size:
            # A crash left these bytes, or a failed write that could not be cut off then.
            file.truncate(self.written_size)
        file.append(chunks)
        self.written_size += size

    def unwritten(self) -> i64:
        """Return the bytes of the tail that belong to this segment."""
        return self.size - self.written_size

    def undo(self, mark: SegmentMark) -> None:
        """Restore the state of `mark`, but not the file."""
        self.size = mark.size
        self.first_timestamp = mark.first_timestamp
        self.max_timestamp = mark.max_timestamp
        self.max_timestamp_offset = mark.max_timestamp_offset
        self.modified_wall_ms = mark.modified_wall_ms
        self.unindexed_bytes = mark.unindexed_bytes
        self.indexes.cut(mark.offset_entries, mark.time_entries)
        # Cut by position and not by count: `forget_older` may have removed entries since.
        self.newest.cut(mark.size)

    def cut(self, row: SegmentRow) -> None:
        """Cut the file where the row ends, and take over the row's state."""
        if self.has_file:
            self.file().truncate(row.size)
        self.size = row.size
        self.written_size = row.size
        self.flushed_size = min(self.flushed_size, self.size)
        self.max_timestamp = row.max_timestamp
        self.max_timestamp_offset = row.max_timestamp_offset
        self.loaded()
        self.indexes.cut(row.offset_entries, row.time_entries)
        self.unindexed_bytes = self.size - self.indexes.last_position()
        self.newest.clear()

    # --- Finding batches.  `end` is a position that no walk passes: the written end, or a flaw.

    def find(self, offset: i64, end: i64) -> i64:
        """Find the position of the batch that contains `offset` or follows it; `end` if none."""
        position = self.newest.position_of(offset)
        if position >= end or (position != UNKNOWN_POSITION and not self.has_gaps):
            return min(position, end)
        if end == 0:
            return 0
        if position == UNKNOWN_POSITION:
            walk = self.walk_from_entry(self.loaded().offsets.entry_of_offset(offset), end)
        else:
            # A gap may lie behind this batch, with the offset in it.
            walk = self.walk(position, end)
        while self.step(walk):
            if walk.last_offset >= offset:
                return walk.batch_position
        return end

    def boundary_before(self, start: i64, position_max: i64, end: i64) -> i64:
        """Return the last position in (start, position_max] where a batch ends, or `start`."""
        boundary = self.newest.boundary_before(position_max)
        if boundary != UNKNOWN_POSITION:
            return max(boundary, start)
        index = self.loaded().offsets
        entry = index.entry_of_position(position_max)
        if entry >= 0 and index.position_at(entry) > start:
            walk = self.walk_from_entry(entry, end)
        else:
            walk = self.walk(start, end)
        boundary = walk.position
        while self.step(walk) and walk.position <= position_max:
            boundary = walk.position
        return boundary

    def end_of_batch(self, position: i64, end: i64) -> i64:
        """Return where the batch that begins at `position` ends."""
        walk = self.walk(position, end)
        self.step(walk)
        return walk.position

    def walk_from_entry(self, entry: i64, end: i64) -> BatchWalk:
        """Begin a walk at an entry of the offset index (-1: at the segment's begin).

        If the batch there is not the one that the entry names, the index is rebuilt.
        """
        if entry < 0:
            return self.walk(0, end)
        index = self.loaded().offsets
        offset = index.offset_at(entry)
        position = index.position_at(entry)
        walk = self.walk(position, end)
        if end <= position < self.size:
            # The entry belongs to the tail, or lies behind the reader's end.
            return walk
        if position >= 0 and walk.step() and walk.last_offset == offset:
            walk.step_back()
            return walk
        if not self.try_rebuild_indexes():
            return self.walk(0, end)
        index = self.loaded().offsets
        entry = index.entry_of_offset(offset)
        return self.walk(index.position_at(entry) if entry >= 0 else 0, end)

    def is_time_entry_true(self, entry: i64) -> bool:
        """Return True if an entry of the time index agrees with its batch."""
        index = self.loaded().times
        offset = index.offset_at(entry)
        position = self.find(offset, self.written_size)
        if position >= self.written_size:
            return position < self.size
        header = self.next_header(self.walk(position, self.written_size))
        return (
            header is not None
            and header.last_offset == offset
            and header.max_timestamp == index.timestamp_at(entry)
        )

    def walk(self, position: i64, end: i64) -> BatchWalk:
        """Begin a walk over the headers at a batch's position."""
        expected_offset: i64 = self.base_offset if position == 0 else UNKNOWN_OFFSET
        walk = BatchWalk(self.file(), position, end, expected_offset)
        walk.has_gaps = self.has_gaps
        return walk

    def step(self, walk: BatchWalk) -> bool:
        """Take the walk's next step; raise its flaw, since these bytes were durable."""
        if walk.step():
            return True
        self._raise_flaw(walk)
        return False

    def next_header(self, walk: BatchWalk) -> BatchHeader | None:
        """Return the walk's next header; raise its flaw, since these bytes were durable."""
        header = walk.next()
        if header is None:
            self._raise_flaw(walk)
        return header

    def _raise_flaw(self, walk: BatchWalk) -> None:
        if not walk.flaw:
            return
        if walk.flaw_offset == UNKNOWN_OFFSET:
            # The flaw is at the walk's first batch: only a walk from the begin knows its offset.
            position = walk.flaw_position
            walk = self.walk(0, self.written_size)
            while walk.position < position and walk.step():
                pass
            walk.step()
        raise Flaw(
            f"{self.path}{LOG_SUFFIX} at {walk.flaw_position}: {walk.flaw}",
            walk.flaw_offset,
            walk.flaw_position,
        )

    # --- Files.

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def file(self) -> LogFile:
        """Return the open file of batches."""
        file = self._file
        if file is None:
            file = self._open()
            self._file = file
            self.files.opened(self)
        return file

    def _make_file(self) -> LogFile:
        file = self.files.open(self.path + LOG_SUFFIX, create=True)
        self.has_file = True
        self._file = file
        self.files.opened(self)
        return file

    def _open(self) -> LogFile:
        path = self.path + LOG_SUFFIX
        disk = self.files.disk
        if not self.has_file or not disk.exists(path):
            raise Flaw(f"{path} is missing", self.base_offset, 0)
        file = self.files.open(path)
        if file.size < self.written_size:
            walk = BatchWalk(file, 0, file.size, self.base_offset)
            walk.has_gaps = self.has_gaps
            while walk.step():
                pass
            raise Flaw(
                f"{path} has {file.size} bytes, {self.written_size} were durable",
                walk.expected_offset,
                walk.position,
            )
        return file

    def end_at_flaw(self, position: i64) -> None:
        """End the readable bytes at a flaw, and close the file, which may be shorter."""
        self._file = None
        self.written_size = min(self.written_size, position)

    def file_paths(self) -> list[str]:
        """Return the paths of all files that the segment can have."""
        paths = [self.path + suffix for suffix in SEGMENT_SUFFIXES]
        return [*paths, self.path + GAP_SUFFIX] if self.is_behind_gap else paths

    def remove(self) -> None:
        """Remove all files at once."""
        self.files.forget(self)
        try:
            for path in self.file_paths():
                self.files.disk.remove(path)
        except StorageError as error:
            # An empty file that stays is harmless: recovery and the next roll expect it.
            logger.warning("%s could not be removed: %s", self.path, error)

    def try_release(self) -> bool:
        if self.is_dirty or self.size != self.written_size:
            return False
        self.close()
        return True

    def close(self) -> None:
        """Close the file, and release the indexes if their files have all entries."""
        self.files.forget(self)
        self._file = None
        self.indexes.release()

    # --- Indexes.

    def loaded(self) -> SegmentIndexes:
        """Return the indexes in memory: loaded from their files, or rebuilt if these are wrong."""
        indexes = self.indexes
        if indexes.are_loaded:
            return indexes
        if not indexes.try_load():
            self.rebuild_indexes()
            return indexes
        # Open the file too: the indexes are released together with it.
        self.file()
        self.unindexed_bytes = self.size - indexes.last_position()
        return indexes

    def try_rebuild_indexes(self) -> bool:
        """Rebuild wrong indexes; not under a tail, because its undo counts their entries."""
        if self.size != self.written_size:
            return False
        self.rebuild_indexes()
        return True

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes and the largest timestamp from the written batches."""
        logger.warning("the indexes of %s are missing or wrong and are rebuilt", self.path)
        self.reset_indexes()
        if self.written_size == 0:
            return
        walk = self.walk(0, self.written_size)
        while True:
            header = self.next_header(walk)
            if header is None:
                break
            self.note_entry(
                header.last_offset, header.max_timestamp, walk.batch_position, header.size
            )
        self.seal()

    def reset_indexes(self) -> None:
        """Empty the indexes; `note_entry` then fills them."""
        self.indexes.reset()
        self.unindexed_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    def seal(self) -> None:
        """Add the largest timestamp as last entry of the time index, as Kafka does on rolling."""
        self.loaded().times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
