"""A segment: one file of batches with its two indexes.

`size` counts the unwritten tail, `written_size` what the file has, `flushed_size` what is durable.
The positions of the newest batches are kept in memory, so that reads at the tail touch no disk
but to send; for older ones the sparse index leads near, and hops from header to header the rest
of the way.  File and indexes are opened on first use and given back when others need the room.

Invariants: flushed_size <= written_size <= size; a batch's position and offsets grow together.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.log.batch_walk import BatchWalk
from tarry.log.config import LogConfig
from tarry.log.flaw import Flaw
from tarry.log.offset_index import OffsetIndex
from tarry.log.open_files import FileHolder, OpenFiles
from tarry.log.segment_row import SegmentRow
from tarry.log.sparse_index import SparseIndex
from tarry.log.time_index import TimeIndex
from tarry.records.batch import BatchHeader

logger = logging.getLogger("tarry.log")

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"

# Batches whose positions stay in memory: enough for readers that keep up, 10 KB a log.
RECENT_BATCHES: Final = 128

UNKNOWN_TIMESTAMP: Final = -2
NO_TIMESTAMP: Final = -1

# Relative offsets and positions are 32-bit in the index files.
INT32_MAX: Final = 0x7FFFFFFF


def segment_path(directory: str, base_offset: i64) -> str:
    """Path of a segment's files without the suffix."""
    return f"{directory}/{base_offset:020d}"


class SegmentMark:
    """What a segment was before a tail, so that a failed write can be undone."""

    def __init__(self, segment: Segment) -> None:
        segment.load_indexes()
        self.size: i64 = segment.size
        self.first_timestamp: i64 = segment.first_timestamp
        self.max_timestamp: i64 = segment.max_timestamp
        self.max_timestamp_offset: i64 = segment.max_timestamp_offset
        self.modified_wall_ms: i64 = segment.modified_wall_ms
        self.unindexed_bytes: i64 = segment.unindexed_bytes
        self.offset_entries: i64 = segment.offset_index().count
        self.time_entries: i64 = segment.time_index().count
        self.recent: i64 = len(segment.recent_offsets)


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
        # Whether the file has a name already; an empty segment gets one with its first write.
        self.has_file = False
        # Whether the log has noted it among those with bytes to flush.
        self.is_dirty = False
        # The first batch's timestamp decides on rolling by time.
        self.first_timestamp: i64 = UNKNOWN_TIMESTAMP
        self.max_timestamp: i64 = NO_TIMESTAMP
        # Last offset of the batch that has the largest timestamp.
        self.max_timestamp_offset: i64 = base_offset
        self.created_wall_ms: i64 = UNKNOWN_TIMESTAMP
        self.modified_wall_ms: i64 = UNKNOWN_TIMESTAMP
        self.unindexed_bytes: i64 = 0
        self.recent_offsets: list[int] = []
        self.recent_positions: list[int] = []
        # How many index entries the files hold, for when the indexes are not in memory.
        self.saved_offset_entries: i64 = 0
        self.saved_time_entries: i64 = 0
        # The index files are not what they should be, whatever the counts say.
        self.must_save_indexes = False
        self._file: LogFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None

    def cover(self, row: SegmentRow) -> None:
        """Be what the recovery point says."""
        self.size = row.size
        self.written_size = row.size
        self.flushed_size = row.size
        self.max_timestamp = row.max_timestamp
        self.max_timestamp_offset = row.max_timestamp_offset
        self.modified_wall_ms = row.modified_wall_ms
        self.saved_offset_entries = row.offset_entries
        self.saved_time_entries = row.time_entries

    def row(self) -> SegmentRow:
        """What a recovery point says of the segment: all that is written and saved."""
        return SegmentRow(
            [
                self.base_offset,
                self.written_size,
                self.max_timestamp,
                self.max_timestamp_offset,
                self.modified_wall_ms,
                self.saved_offset_entries,
                self.saved_time_entries,
            ]
        )

    # --- Appending.

    def must_roll(self, size: i64, last_offset: i64, max_timestamp: i64, now_wall_ms: i64) -> bool:
        """Whether a batch has to go to a new segment, by Kafka's rules."""
        if self.size == 0:
            return False
        if self.size + size > self.config.segment_bytes or self.size + size > INT32_MAX:
            return True
        if last_offset - self.base_offset > INT32_MAX:
            return True
        roll_ms: i64 = self.config.segment_ms - self.config.segment_jitter_ms
        if self.waited_ms(max_timestamp, now_wall_ms) > roll_ms:
            return True
        index_bytes: i64 = self.config.segment_index_bytes
        return (
            self.offset_index().count >= index_bytes // 8
            or self.time_index().count >= index_bytes // 12
        )

    def waited_ms(self, max_timestamp: i64, now_wall_ms: i64) -> i64:
        """How long the segment has been open, in record time if its records have one."""
        if self.first_timestamp == UNKNOWN_TIMESTAMP:
            self._load_first_timestamp()
        if self.first_timestamp >= 0:
            return max_timestamp - self.first_timestamp
        if self.created_wall_ms == UNKNOWN_TIMESTAMP:
            self.created_wall_ms = now_wall_ms
        return now_wall_ms - self.created_wall_ms

    def note_batch(self, base_offset: i64, header: BatchHeader, now_wall_ms: i64) -> None:
        """A batch now ends the segment: positions, timestamps and indexes follow."""
        position = self.size
        size: i64 = header.size
        last_offset: i64 = base_offset + header.last_offset_delta
        max_timestamp: i64 = header.max_timestamp
        if position == 0:
            self.first_timestamp = max_timestamp
            self.created_wall_ms = now_wall_ms
        self.modified_wall_ms = now_wall_ms
        self.recent_offsets.append(base_offset)
        self.recent_positions.append(position)
        self.note_entry(last_offset, max_timestamp, position, size)
        self.size = position + size

    def note_entry(self, last_offset: i64, max_timestamp: i64, position: i64, size: i64) -> None:
        """The indexes' share of a batch; when they are rebuilt, all there is to do."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.unindexed_bytes > self.config.index_interval_bytes:
            self.offset_index().append(last_offset, position)
            self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.unindexed_bytes = 0
        self.unindexed_bytes += size

    def note_recovered(self, header: BatchHeader, position: i64) -> None:
        """A batch that recovery found past what was known ends the segment."""
        if position == 0:
            self.first_timestamp = header.max_timestamp
        self.note_entry(header.last_offset, header.max_timestamp, position, header.size)
        self.size = position + header.size
        self.written_size = self.size

    def append_chunks(self, chunks: list[bytes | memoryview], size: i64) -> None:
        """Write the tail; `StorageError` leaves the file as it was."""
        file = self.file()
        if file.size > self.written_size:
            # Left behind by a write that failed and could not be cut off then.
            file.truncate(self.written_size)
        file.append(chunks)
        self.written_size += size

    def unwritten(self) -> i64:
        """Bytes of the tail that belong to this segment."""
        return self.size - self.written_size

    def forget_older_positions(self) -> None:
        """Called after a write: the positions kept in memory are bounded."""
        surplus: i64 = len(self.recent_offsets) - RECENT_BATCHES
        if surplus > RECENT_BATCHES:
            del self.recent_offsets[:surplus]
            del self.recent_positions[:surplus]

    def undo(self, mark: SegmentMark) -> None:
        """Be as when `mark` was taken, except for the file."""
        self.size = mark.size
        self.first_timestamp = mark.first_timestamp
        self.max_timestamp = mark.max_timestamp
        self.max_timestamp_offset = mark.max_timestamp_offset
        self.modified_wall_ms = mark.modified_wall_ms
        self.unindexed_bytes = mark.unindexed_bytes
        self.offset_index().cut(mark.offset_entries)
        self.time_index().cut(mark.time_entries)
        del self.recent_offsets[mark.recent :]
        del self.recent_positions[mark.recent :]

    # --- Finding batches.  `end` is a position that no hop passes: what is written, or a flaw.

    def find(self, offset: i64, end: i64) -> i64:
        """Position of the batch that contains `offset` or else follows it; `end` if none does."""
        recent = self.recent_offsets
        if recent and recent[0] <= offset:
            low: i64 = 0
            high: i64 = len(recent)
            while low < high:
                middle: i64 = (low + high) >> 1
                if recent[middle] <= offset:
                    low = middle + 1
                else:
                    high = middle
            position: i64 = self.recent_positions[low - 1]
            return min(position, end)
        start = self._indexed_position(self.offset_index().entry_of_offset(offset))
        if start >= end:
            return end
        walk = self.walk(start, end)
        while True:
            header = self.next_header(walk)
            if header is None:
                return end
            if header.base_offset + header.last_offset_delta >= offset:
                return walk.batch_position

    def boundary_before(self, start: i64, position_max: i64, end: i64) -> i64:
        """The last position in (start, position_max] where a batch ends; `start` if none does."""
        recent = self.recent_positions
        if recent and recent[0] <= position_max:
            low: i64 = 0
            high: i64 = len(recent)
            while low < high:
                middle: i64 = (low + high) >> 1
                if recent[middle] <= position_max:
                    low = middle + 1
                else:
                    high = middle
            boundary: i64 = recent[low - 1]
            return max(boundary, start)
        near = self._indexed_position(self.offset_index().entry_of_position(position_max))
        walk = self.walk(max(start, near), end)
        boundary = walk.position
        while True:
            header = self.next_header(walk)
            if header is None or walk.position > position_max:
                return boundary
            boundary = walk.position

    def end_of_batch(self, position: i64, end: i64) -> i64:
        """Where the batch that begins at `position` ends."""
        walk = self.walk(position, end)
        self.next_header(walk)
        return walk.position

    def _indexed_position(self, entry: i64) -> i64:
        """The position of an entry of the offset index (-1: the segment's begin).

        The batch there must be the one that the entry names; if it is not, the index is wrong
        and made anew from the batches.
        """
        if entry < 0:
            return 0
        index = self.offset_index()
        position = index.position_at(entry)
        if position < self.written_size:
            header = self.walk(position, self.written_size).next()
            if header is not None and header.last_offset == index.offset_at(entry):
                return position
        logger.warning("%s%s is wrong and is rebuilt", self.path, OFFSET_INDEX_SUFFIX)
        offset = index.offset_at(entry)
        self.rebuild_indexes()
        index = self.offset_index()
        entry = index.entry_of_offset(offset)
        return index.position_at(entry) if entry >= 0 else 0

    def walk(self, position: i64, end: i64) -> BatchWalk:
        """A walk over the headers from a batch's position on."""
        walk = BatchWalk(self.file(), position, end, self.base_offset)
        walk.allows_gaps = True
        return walk

    def next_header(self, walk: BatchWalk) -> BatchHeader | None:
        """The walk's next header; a flaw there is raised, since these bytes were durable."""
        header = walk.next()
        if header is None and walk.flaw:
            raise Flaw(
                f"{self.path}{LOG_SUFFIX} at {walk.position}: {walk.flaw}",
                walk.expected_offset,
                walk.position,
            )
        return header

    def _load_first_timestamp(self) -> None:
        header = self.next_header(self.walk(0, self.written_size))
        assert header is not None
        self.first_timestamp = header.max_timestamp

    # --- Files.

    def file(self) -> LogFile:
        """The open file of batches, for reading."""
        file = self._file
        if file is None:
            file = self._open()
            self._file = file
            self.files.opened(self)
        return file

    def _open(self) -> LogFile:
        path = self.path + LOG_SUFFIX
        disk = self.files.disk
        if not self.has_file:
            file = disk.open(path, create=True)
            self.has_file = True
            if file.size > 0:
                # A name that an earlier crash or a failed write left behind.
                file.truncate(0)
            return file
        if not disk.exists(path):
            raise Flaw(f"{path} is missing", self.base_offset, 0)
        file = disk.open(path)
        if file.size < self.written_size:
            walk = BatchWalk(file, 0, file.size, self.base_offset)
            walk.allows_gaps = True
            while walk.next() is not None:
                pass
            raise Flaw(
                f"{path} has {file.size} bytes, {self.written_size} were durable",
                walk.expected_offset,
                walk.position,
            )
        return file

    def end_at_flaw(self, position: i64) -> None:
        """What lies at or past a flaw is not asked for any more; the file may be shorter."""
        self._file = None
        self.written_size = min(self.written_size, position)

    def file_paths(self) -> list[str]:
        """Paths of all files that a segment can have."""
        return [
            self.path + LOG_SUFFIX,
            self.path + OFFSET_INDEX_SUFFIX,
            self.path + TIME_INDEX_SUFFIX,
        ]

    def try_release(self) -> bool:
        if self.size != self.flushed_size:
            return False
        self.close()
        return True

    def close(self) -> None:
        """Give up the file, and the indexes as far as their files have them."""
        self._file = None
        offset_index = self._offset_index
        time_index = self._time_index
        if offset_index is None or time_index is None or self.has_unsaved_entries():
            return
        self._offset_index = None
        self._time_index = None

    # --- Indexes.

    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self.load_indexes()
        index = self._offset_index
        assert index is not None
        return index

    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self.load_indexes()
        index = self._time_index
        assert index is not None
        return index

    def load_indexes(self) -> None:
        """Have the indexes in memory: from their files, or made anew if those are wrong."""
        if self._offset_index is not None:
            return
        offset_index = OffsetIndex(self.base_offset)
        time_index = TimeIndex(self.base_offset)
        is_sound = self._load(offset_index, OFFSET_INDEX_SUFFIX, self.saved_offset_entries)
        if is_sound:
            is_sound = self._load(time_index, TIME_INDEX_SUFFIX, self.saved_time_entries)
        if not is_sound:
            logger.warning("an index of %s is missing or too short and is rebuilt", self.path)
            self.rebuild_indexes()
            return
        if self.has_file:
            # So that the indexes are given back together with the file.
            self.file()
        self._offset_index = offset_index
        self._time_index = time_index
        self.unindexed_bytes = self.size
        if offset_index.count > 0:
            self.unindexed_bytes -= offset_index.position_at(offset_index.count - 1)

    def _load(self, index: SparseIndex, suffix: str, entries: i64) -> bool:
        if entries == 0:
            return True
        path = self.path + suffix
        size: i64 = entries * index.entry_bytes()
        if not self.files.disk.exists(path):
            return False
        content = self.files.disk.open(path).read(0, size)
        if len(content) < size:
            return False
        index.load(content, entries)
        return True

    def rebuild_indexes(self) -> None:
        """Make both indexes and the largest timestamp anew from the batches that are written."""
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
        """Empty indexes, which the files do not have."""
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self.saved_offset_entries = 0
        self.saved_time_entries = 0
        self.must_save_indexes = True
        self.unindexed_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    def seal(self) -> None:
        """Let the time index end with the largest timestamp, as Kafka does on rolling."""
        self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def has_unsaved_entries(self) -> bool:
        offset_index = self._offset_index
        time_index = self._time_index
        if self.must_save_indexes:
            return True
        if offset_index is None or time_index is None:
            return False
        return (
            offset_index.saved_entries != offset_index.count
            or time_index.saved_entries != time_index.count
        )

    def save_indexes(self, files: list[LogFile]) -> None:
        """Write what the index files lack; adds to `files` what has to be flushed."""
        offset_index = self.offset_index()
        time_index = self.time_index()
        self._save(offset_index, OFFSET_INDEX_SUFFIX, files)
        self.saved_offset_entries = offset_index.count
        self._save(time_index, TIME_INDEX_SUFFIX, files)
        self.saved_time_entries = time_index.count
        self.must_save_indexes = False

    def _save(self, index: SparseIndex, suffix: str, files: list[LogFile]) -> None:
        file = self.files.disk.open(self.path + suffix, create=True)
        size = index.saved_entries * index.entry_bytes()
        if file.size < size:
            index.saved_entries = 0
            size = 0
        if file.size > size:
            file.truncate(size)
        content = index.encode_unsaved()
        if content:
            file.append([content])
        index.saved_entries = index.count
        files.append(file)
