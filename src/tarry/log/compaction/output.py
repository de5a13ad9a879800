"""Output of compaction: a new segment with batches and both indexes, under temporary names.

The files get their final names in the swap.  Until then the log does not know them, and the next
start removes files that an attempt left behind.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.base.errors import StorageError
from tarry.log.compaction.checkpoint import REPLACED_GENERATION, cleaned_name
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tarry.log.log import Log
from tarry.log.segment import INT32_MAX, LOG_SUFFIX, Segment, SegmentRow
from tarry.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader

# Pieces and bytes of one gathered write.
_CHUNKS_MAX: Final = 256
_CHUNK_BYTES_MAX: Final = 256 * 1024

# Segments that one swap replaces: each has three files, and all are removed in one turn.
SOURCES_MAX: Final = 50


class CompactedSegment:
    """New segment that replaces `sources`, which follow each other."""

    def __init__(self, log: Log, base_offset: i64, generation: i64) -> None:
        self.log = log
        self.generation: i64 = generation
        self.sources: list[Segment] = []
        self.end_offset: i64 = base_offset
        # True if batches of the sources were dropped or rebuilt.
        self.has_changed = False
        # Header of the sources' last batch, which stays without records if no other batch does.
        self.last_header: BatchHeader | None = None
        # Holds the indexes; this segment has no file.
        self.segment = Segment(log.files, log.directory, base_offset, log.config)
        self.source_bytes: i64 = 0
        # Names under which replaced files wait for their removal.
        self.replaced: list[str] = []
        self.unflushed_bytes: i64 = 0
        self._chunks: list[bytes | memoryview] = []
        self._chunk_bytes: i64 = 0
        # Consecutive batches of one block that are not a chunk yet.
        self._run_block = b""
        self._run_start: i64 = 0
        self._run_end: i64 = 0
        self.files: list[LogFile] = [self._make(LOG_SUFFIX)]

    @property
    def size(self) -> i64:
        return self.segment.size

    def try_take(self, source: Segment, end_offset: i64, size_left: i64) -> bool:
        """Try to take `source`, which ends before `end_offset` and may leave `size_left` bytes;
        False if there is no room, or if it does not follow the source before.
        """
        if len(self.sources) >= SOURCES_MAX:
            return False
        if self.sources:
            base_offset = self.segment.base_offset
            if source.base_offset != self.end_offset:
                return False
            if self.segment.size + size_left > min(i64(self.log.config.segment_bytes), INT32_MAX):
                return False
            if end_offset - base_offset > INT32_MAX:
                return False
            index_bytes: i64 = self.log.config.segment_index_bytes
            mine = self.segment.indexes
            theirs = source.indexes
            if mine.offsets.count + theirs.offset_entries() >= index_bytes // 8:
                return False
            if mine.times.count + theirs.time_entries() >= index_bytes // 12:
                return False
        self.sources.append(source)
        self.source_bytes += source.size
        self.end_offset = end_offset
        return True

    def add_stored(self, header: BatchHeader, block: bytes, at: i64) -> None:
        """Add a batch that stays unchanged, from position `at` of a block that was read."""
        size: i64 = header.size
        self._note(header, size, header.max_timestamp)
        if block is not self._run_block or at != self._run_end:
            self._end_run()
            self._run_block = block
            self._run_start = at
        self._run_end = at + size
        self._maybe_write()

    def add_encoded(self, header: BatchHeader, encoded: bytes, max_timestamp: i64) -> None:
        """Add a rebuilt batch in place of the one with this header."""
        self._add(header, encoded, max_timestamp)
        self.has_changed = True

    def add_emptied(self, header: BatchHeader, encoded: bytes) -> None:
        """Add a batch without records and without a time in place of the one with this header."""
        self._add(header, encoded, NO_TIMESTAMP)
        if header.size > HEADER_SIZE:
            self.has_changed = True

    def _add(self, header: BatchHeader, encoded: bytes, max_timestamp: i64) -> None:
        self._note(header, len(encoded), max_timestamp)
        self._end_run()
        self._chunks.append(encoded)
        self._maybe_write()

    def _note(self, header: BatchHeader, size: i64, max_timestamp: i64) -> None:
        segment = self.segment
        if segment.size + size > INT32_MAX:
            raise StorageError(f"{segment.path} would become larger than 2 GB by compaction")
        segment.note_entry(header.last_offset, max_timestamp, segment.size, size)
        segment.size += size
        self._chunk_bytes += size
        self.unflushed_bytes += size

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            self._chunks.append(memoryview(self._run_block)[self._run_start : self._run_end])
        self._run_block = b""
        self._run_start = 0
        self._run_end = 0

    def _maybe_write(self) -> None:
        if self._chunk_bytes >= _CHUNK_BYTES_MAX or len(self._chunks) >= _CHUNKS_MAX:
            self.write()

    def write(self) -> None:
        """Write the gathered batches."""
        self._end_run()
        if self._chunks:
            self.files[0].append(self._chunks)
            self._chunks = []
            self._chunk_bytes = 0

    def finish(self) -> None:
        """Write the remaining batches and the indexes; the caller must flush all files then."""
        self.write()
        segment = self.segment
        segment.seal()
        offsets = self._make(OFFSET_INDEX_SUFFIX)
        self.files.append(offsets)
        offsets.append([segment.indexes.offsets.encode_from(0)])
        times = self._make(TIME_INDEX_SUFFIX)
        self.files.append(times)
        times.append([segment.indexes.times.encode_from(0)])
        for source in self.sources:
            segment.modified_wall_ms = max(segment.modified_wall_ms, source.modified_wall_ms)

    def row(self) -> SegmentRow:
        """Return the row of the new segment as it is once it is durable."""
        segment = self.segment
        return SegmentRow(
            [
                segment.base_offset,
                segment.size,
                segment.max_timestamp,
                segment.max_timestamp_offset,
                segment.modified_wall_ms,
                segment.indexes.offsets.count,
                segment.indexes.times.count,
            ]
        )

    def rename(self) -> None:
        """Give the files their final names, in place of the first source's.

        The source's batches get another name first and are removed outside the turn: releasing a
        gigabyte takes the file system long, and renaming over the file would do it at once.
        """
        disk = self.log.disk
        path = self.segment.path + LOG_SUFFIX
        if self.sources[0].has_file and disk.exists(path):
            replaced = cleaned_name(path, REPLACED_GENERATION)
            disk.rename(path, replaced)
            self.replaced.append(replaced)
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            path = self.segment.path + suffix
            disk.rename(cleaned_name(path, self.generation), path)

    def discard(self) -> None:
        """Remove the new segment's files."""
        self._chunks = []
        self._run_block = b""
        paths = [file.path for file in self.files]
        # Close them first, so that their blocks are released by the removal.
        self.files = []
        for path in paths:
            self.log.disk.begin_remove(path)

    def _make(self, suffix: str) -> LogFile:
        path = cleaned_name(self.segment.path + suffix, self.generation)
        file = self.log.disk.open(path, create=True)
        file.truncate(0)
        return file
