"""The log of one partition: segments in order, a tail that waits for its write, what is durable.

`append` only gathers.  `write` puts the tail into the files with one gathered write per segment,
or, when that fails, leaves log, indexes and epochs as they were before the tail.  `collect_flush`
names the files that make everything written durable and `flushed` hears of it; both are driven by
the broker's flush rounds.  Nothing here flushes, reads a clock or waits.

Invariants: log_start_offset <= flushed_offset <= written_end_offset <= log_end_offset; segments
follow each other without a gap; reads never see the tail.  Hot: append is 1 µs of a produce.
"""

from __future__ import annotations

import logging

from mypy_extensions import i64

from tarry.base.doors import Disk, FileRegion, LogFile
from tarry.base.errors import StorageError
from tarry.log import time_search
from tarry.log.batch_walk import Flaw
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.index.epoch_index import EpochIndex
from tarry.log.open_files import OpenFiles
from tarry.log.segment import Segment, SegmentRow
from tarry.log.segments import LogPosition, Segments
from tarry.log.state import CompactionState, LogListener, RecoveryPointState, RecoveryReport
from tarry.log.tail import Tail, TailMark, TailPart
from tarry.log.time_search import FoundRecord, SearchedPart
from tarry.log.unflushed import FlushMark, Unflushed
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.wire.reader import Window, window_of

logger = logging.getLogger("tarry.log")


class Log:
    """Log of one partition.  Made by `recovery.open_log`."""

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        listener: LogListener,
        files: OpenFiles,
        segments: list[Segment],
        identity: LogIdentity,
    ) -> None:
        self.directory = directory
        self.config = config
        self.listener = listener
        self.files = files
        self._segments = Segments(segments)
        self.active: Segment = segments[-1]
        self.identity = identity
        self.leader_epochs = EpochIndex()
        self.log_start_offset: i64 = segments[0].base_offset
        self.log_end_offset: i64 = self.active.base_offset
        self.written_end_offset: i64 = self.active.base_offset
        self.flushed_offset: i64 = self.active.base_offset
        self.flaw_offset: i64 = -1
        # Where retention lets the log begin once a recovery point says so: a log start that
        # readers have seen must not go back in a crash.
        self.coming_start_offset: i64 = self.log_start_offset
        self._flaw_segment: Segment | None = None
        self._flushed_end = LogPosition(-1, -1, -1)
        self._tail = Tail()
        self._tail_parts: list[TailPart] = []
        self._mark: TailMark | None = None
        self._unflushed = Unflushed(directory, identity)
        self.recovery_report = RecoveryReport(directory)
        self.recovery_point = RecoveryPointState()
        self.flaw_reason = ""
        # Bytes written in this life, to know when a new recovery point is due.
        self.written_bytes: i64 = 0
        self.is_closed = False
        self.compaction = CompactionState()

    @property
    def disk(self) -> Disk:
        return self.files.disk

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments in order of offsets, as they are now."""
        return tuple(self._segments.kept)

    def segments_from(self, offset: i64) -> list[Segment]:
        """Return the segment that holds `offset`, and all behind it."""
        return self._segments.kept[self._segments.index_of(offset) :]

    # --- Appending.

    def append(
        self, window: Window, header: BatchHeader, leader_epoch: i64, now_wall_ms: i64
    ) -> i64:
        """Add one checked batch to the tail; return the base offset that it got."""
        base_offset = self.log_end_offset
        last_offset: i64 = base_offset + header.last_offset_delta
        mark = self._mark
        if mark is None:
            mark = self._begin_tail()
        segment = self.active
        if segment.must_roll(header.size, last_offset, header.max_timestamp, now_wall_ms):
            segment = self.roll()
        if leader_epoch > self.leader_epochs.latest_epoch:
            mark.keep_epochs(self.leader_epochs)
            self.leader_epochs.assign(leader_epoch, base_offset)
        segment.note_batch(base_offset, header, now_wall_ms)
        self._tail.add(window, header, base_offset, leader_epoch)
        self.log_end_offset = last_offset + 1
        return base_offset

    def append_bytes(self, data: bytes, leader_epoch: i64, now_wall_ms: i64) -> i64:
        """Append a batch that this broker built; like `append`, without a header made before."""
        return self.append(window_of(data), decode_batch_header(data, 0), leader_epoch, now_wall_ms)

    def roll(self) -> Segment:
        """Begin a new last segment; its file is made by the first write.

        Without a tail `StorageError` if there is a flaw, or if the indexes of the segment that was
        the last one cannot be read.
        """
        ended = self.active
        if self._mark is not None:
            self._tail_parts.append(TailPart(ended, self._tail.take(), ended.unwritten()))
        elif self.flaw_offset >= 0:
            raise StorageError(self._refusal())
        try:
            ended.seal()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        segment = Segment(self.files, self.directory, self.log_end_offset, self.config)
        self._segments.kept.append(segment)
        self.active = segment
        return segment

    def write(self) -> None:
        """Write the tail.  `StorageError`: nothing of it was kept."""
        if self._mark is None:
            return
        if self.flaw_offset >= 0:
            # Met by a reader since the tail began: a write would begin where the flaw does.
            self._undo_tail()
            raise StorageError(self._refusal())
        try:
            for part in self._tail_parts:
                self._write_part(part)
            active = self.active
            self._write_part(TailPart(active, self._tail.take(), active.unwritten()))
        except StorageError:
            self._undo_tail()
            raise
        except Flaw as flaw:
            self._undo_tail()
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        self._mark = None
        if self._tail_parts:
            for part in self._tail_parts:
                part.segment.newest.clear()
            self._tail_parts = []
            self.condemn_below_start()
        self.written_end_offset = self.log_end_offset

    def _begin_tail(self) -> TailMark:
        if self.flaw_offset >= 0:
            raise StorageError(self._refusal())
        try:
            self.active.prepare_append()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        mark = TailMark(self.active)
        self._mark = mark
        return mark

    def _write_part(self, part: TailPart) -> None:
        segment = part.segment
        if part.size == 0:
            return
        self._unflushed.begin_write(self.disk, segment)
        segment.append_chunks(part.chunks, part.size)
        self.written_bytes += part.size
        segment.newest.forget_older()
        self.note_change(segment)

    def _undo_tail(self) -> None:
        """Restore the state before the tail, after a failed write."""
        mark = self._mark
        assert mark is not None
        self._mark = None
        self._tail.clear()
        self._tail_parts = []
        active = mark.active
        for later in reversed(self._segments.cut_behind(active)):
            self._drop(later)
        self.active = active
        active.undo(mark.segment)
        if mark.epochs is not None:
            self.leader_epochs.restore(mark.epochs)
            self.leader_epochs.truncate_start(self.log_start_offset)
        self.log_end_offset = self.written_end_offset
        if not active.has_file:
            # It could not be made, and without bytes no flush gives back what was opened before it.
            self._unflushed.identity.forget()
        else:
            # What the failed write left and was cut off may come back in a crash, and recovery
            # would stop there: the cut must be durable before anything after it is acknowledged.
            self._unflushed.cuts += 1
            self.note_change(active)
        if active.written_size == active.size or self.has_flaw_in(active):
            return
        # The tail's share of this segment was written before that of a later one failed.
        try:
            active.file().truncate(active.size)
            active.written_size = active.size
        except (StorageError, Flaw) as error:
            active.written_size = active.size
            self.note_flaw(Flaw(str(error), self.log_end_offset, active.size))

    def _drop(self, segment: Segment) -> None:
        self._unflushed.forget(segment)
        segment.remove()
        self.note_name()

    # --- Becoming durable.

    @property
    def has_tail(self) -> bool:
        """Return true if appended batches wait for their write."""
        return self._mark is not None

    @property
    def has_changed(self) -> bool:
        """Return true if the recovery point is not where it should be."""
        point = self.recovery_point
        if point.limit_offset >= 0:
            return point.offset_max > point.limit_offset
        if point.offset < 0 and self.written_end_offset == 0:
            # Nothing was ever written: without a row it is found as it is.
            return False
        return (
            self.written_end_offset != point.offset
            or self.coming_start_offset != point.log_start_offset
            or self.leader_epochs.version != point.epochs_version
            or self.compaction.swaps != point.swaps
        )

    @property
    def is_dirty(self) -> bool:
        """Return true if something that was written is not known to be durable."""
        return self.flushed_offset < self.written_end_offset or not self._unflushed.is_empty

    @property
    def has_unflushed_bytes(self) -> bool:
        """Return true if a segment's file was changed and not flushed since."""
        return len(self._unflushed.segments) > 0

    def note_name(self) -> None:
        """Count a name that was made or removed: the directory has to be flushed."""
        self._unflushed.names += 1

    def note_change(self, segment: Segment) -> None:
        """Take down that the segment's file was changed: it has to be flushed."""
        self._unflushed.add(segment)

    def mark_flush(self, files: list[LogFile], directories: dict[str, None]) -> FlushMark:
        """Name what has to be flushed; return what that flush covers, for `settle`."""
        return self._unflushed.mark(self.end_position(), files, directories)

    def collect_flush(self, files: list[LogFile], directories: dict[str, None]) -> i64:
        """Add what must be flushed to make everything below the returned offset durable."""
        self._unflushed.begin_flush(self.end_position(), files, directories)
        return self.written_end_offset

    def flush_refused(self, offset: i64) -> None:
        """Note that the flush of what `collect_flush` named was never begun."""
        self._unflushed.take_mark(offset)

    def flushed(self, offset: i64) -> None:
        """Note that the flush of what `collect_flush` named is complete."""
        mark = self._unflushed.take_mark(offset)
        if mark is None:
            # Cut off in the meantime.
            return
        self.settle(mark)
        if offset > self.flushed_offset:
            self.flushed_offset = offset
            self._flushed_end = mark.end

    def settle(self, mark: FlushMark) -> None:
        """Settle the flush that a mark was taken for: it is complete."""
        self._unflushed.settle(mark)
        self.files.trim()

    # --- Positions and reading.

    def end_position(self) -> LogPosition:
        """Return where the written bytes end."""
        last = self.active if self._mark is None else self._mark.active
        return LogPosition(self.written_end_offset, last.base_offset, last.written_size)

    def position_of(self, offset: i64) -> LogPosition:
        """Return where the batch that contains `offset` begins; the written end has its position
        too.
        """
        if offset == self.written_end_offset:
            return self.end_position()
        if offset == self._flushed_end.offset:
            return self._flushed_end
        assert self.log_start_offset <= offset
        assert offset < self.written_end_offset
        self._check_flaw(offset)
        segment = self._segments.holding(offset)
        try:
            position = segment.find(offset, segment.written_size)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise
        return LogPosition(offset, segment.base_offset, position)

    def read(
        self,
        offset: i64,
        end: LogPosition,
        size_max: i64,
        at_least_one: bool,
        start: LogPosition | None = None,
    ) -> FileRegion | None:
        """Return whole batches from the one that contains `offset` on, up to `end`, of one segment.

        The first may exceed `size_max` if `at_least_one`.  `start` is the position of `offset`, if
        the caller knows it.  Raises `CorruptData` or `StorageError` at a flaw.
        """
        self._check_flaw(offset)
        if offset >= end.offset:
            return None
        assert offset >= self.log_start_offset
        try:
            return self._segments.read(offset, end, size_max, at_least_one, start)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch <= `epoch` and where it ended here; (-1, -1) if unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    @property
    def size_bytes(self) -> i64:
        """Bytes of all segments, the tail included."""
        return sum([segment.size for segment in self._segments.kept])

    def epoch_at(self, offset: i64) -> int:
        """Return the leader epoch in which the record at `offset` was written, or -1."""
        return self.leader_epochs.epoch_of(offset)

    def offset_for_time(self, timestamp: int, end_offset: int) -> FoundRecord | None:
        """(timestamp, offset, epoch) of the first record below `end_offset` that is so late."""
        return self._search(timestamp, end_offset)

    def max_timestamp_offset(self, end_offset: int) -> FoundRecord | None:
        """(timestamp, offset, epoch) of the latest record below `end_offset`."""
        return self._search(None, end_offset)

    def _search(self, timestamp: int | None, end_offset: int) -> FoundRecord | None:
        part = SearchedPart(list(self._segments.kept), self.log_start_offset, end_offset)
        part.flaw_segment = self._flaw_segment
        part.flaw_offset = self.flaw_offset
        part.refusal = self._refusal()
        try:
            if timestamp is None:
                return time_search.max_timestamp_offset(part)
            return time_search.offset_for_time(part, timestamp)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise

    # --- The beginning.

    def ask_for_start(self, offset: i64) -> None:
        """Let the log begin at `offset` once a recovery point on the disk says so."""
        self.coming_start_offset = max(self.coming_start_offset, offset)

    def advance_log_start_offset(self, offset: i64) -> None:
        """Records below `offset` are gone for readers; files go when that is durable."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.written_end_offset
        self.log_start_offset = offset
        self.ask_for_start(offset)
        self.condemn_below_start()
        self.leader_epochs.truncate_start(offset)

    def condemn_below_start(self) -> None:
        """Give up segments below the log start; what is being compacted is kept until then."""
        if self.compaction.is_under_way:
            return
        # If the tail cannot be written, the segment in which it began is the last one again.
        stays = None if self._mark is None else self._mark.active
        for segment in self._segments.condemn_below(self.log_start_offset, stays):
            self._unflushed.forget(segment)

    @property
    def condemned(self) -> int:
        """Number of segments below the log start whose files are still there."""
        return len(self._segments.condemned)

    def release_below(self, offset: i64, named_from: int, condemned: int) -> list[Segment]:
        """Return the segments whose files may go: a recovery point has the log start `offset`.

        They are the first `condemned` ones, all that there were when the recovery point was taken,
        and those that end at or below `named_from`, where the first segment that it names begins.
        A start expects every file that is named: a named segment waits for the next recovery
        point, even if all of it lies below the log start.
        """
        before = self.condemned
        self.advance_log_start_offset(named_from)
        released = self._segments.release(condemned, before)
        self.advance_log_start_offset(offset)
        return released

    # --- Changes of the segments from elsewhere in this package.

    def note_new_directory(self) -> None:
        """Take down that the name of the directory itself may not be durable."""
        self._unflushed.is_directory_new = True

    def take_recovered(self, segment: Segment) -> None:
        """Make `segment`, which recovery found behind the last one, the last one."""
        self._segments.kept.append(segment)
        self.active = segment

    def open_at(self, start_offset: i64, end_offset: i64, flushed_offset: i64) -> None:
        """End recovery: the offsets are known, and what was durable before."""
        self.log_start_offset = start_offset
        self.coming_start_offset = start_offset
        self.log_end_offset = end_offset
        self.written_end_offset = end_offset
        self.flushed_offset = flushed_offset

    def replace_segments(self, sources: list[Segment], segment: Segment) -> None:
        """Put a compacted segment in the place of its sources, which are closed."""
        self._segments.replace(sources, segment)
        for source in sources:
            source.close()

    def cut_after(self, segment: Segment, row: SegmentRow, end_offset: i64) -> None:
        """Make `segment`, cut to what `row` says, the last one; the log ends at `end_offset`."""
        for later in self._segments.cut_behind(segment):
            self._drop(later)
        segment.cut(row)
        self.active = segment
        self.note_change(segment)
        self.leader_epochs.truncate_end(end_offset)
        self.log_end_offset = end_offset
        self.written_end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.coming_start_offset = min(self.coming_start_offset, end_offset)
        self._flushed_end = LogPosition(-1, -1, -1)
        self._unflushed.note_cut()

    def close(self) -> None:
        """Give up all files; the log is not used again."""
        self.is_closed = True
        for segment in self._segments.kept:
            segment.close()

    # --- Flaws.

    def note_flaw(self, flaw: Flaw) -> None:
        """Note a flaw: from here on the log is neither read nor appended to."""
        if 0 <= self.flaw_offset <= flaw.offset:
            return
        line = "%s is damaged at offset %d: %s; records before it are served, new ones refused"
        logger.error(line, self.directory, flaw.offset, flaw)
        self.flaw_offset = flaw.offset
        self.flaw_reason = str(flaw)
        segment = self._segments.holding(flaw.offset)
        self._flaw_segment = segment
        segment.end_at_flaw(flaw.position)

    def has_flaw_in(self, segment: Segment) -> bool:
        """Return true if the first flaw lies in this segment."""
        return self._flaw_segment is segment

    def has_flaw_before(self, offset: i64) -> bool:
        """Return true if a reader at `offset` stands at or behind a flaw."""
        return 0 <= self.flaw_offset <= offset

    def _check_flaw(self, offset: i64) -> None:
        if self.has_flaw_before(offset):
            raise StorageError(self._refusal())

    def _refusal(self) -> str:
        return f"{self.directory} has a flaw at offset {self.flaw_offset}"
