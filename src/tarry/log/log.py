"""The log of one partition: segments in order, a tail that waits for its write, what is durable.

`append` only gathers batches in the tail; `copying` does the same for a follower.  `write` puts the
tail into the files with one gathered write per segment.  If that fails, log, indexes and epochs are
as they were before the tail.
`collect_flush` names the files whose flush makes all written bytes durable; `flushed` notes that
the flush is complete.  The broker's flush rounds call both.  Recovery, compaction and truncation
change the segments by methods of this class.  A log never flushes, reads a clock or waits.

Parts: `Segments` (files, reading, the first flaw), `Tail` (batches not written), `Unflushed` (what
is not durable), and the states of `log/state`.  Invariants: log_start_offset <= flushed_offset <=
written_end_offset <= log_end_offset; offsets of batches only grow, without gaps unless compaction
left some, here or in the log that was copied; reads never see the tail.  Hot: append is 1 us of a
produce.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.doors import Disk, FileRegion, LogFile
from tarry.base.errors import StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.index import time_search
from tarry.log.index.epoch_index import EpochIndex
from tarry.log.index.time_search import FoundRecord, SearchedPart
from tarry.log.open_files import OpenFiles
from tarry.log.segment import GAPS_FILE, Segment, SegmentRow
from tarry.log.segments import NO_POSITION, LogPosition, Segments
from tarry.log.state import CompactionState, Cut, LogListener, RecoveryPointState, RecoveryReport
from tarry.log.tail import Tail, TailMark
from tarry.log.unflushed import FlushMark, Unflushed
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.wire.reader import Window, window_of


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
        self.identity = identity
        self.segment_order = Segments(directory, segments)
        self.tail = Tail()
        self.unflushed = Unflushed(directory, identity)
        self.leader_epochs = EpochIndex()
        self.log_start_offset: i64 = segments[0].base_offset
        self.log_end_offset: i64 = segments[-1].base_offset
        self.written_end_offset: i64 = self.log_end_offset
        self.flushed_offset: i64 = self.log_end_offset
        self.flushed_end = NO_POSITION
        # The log start that the next recovery points hold.  Retention moves `log_start_offset` only
        # when a recovery point is durable: a start that readers have seen must not go back in a
        # crash.
        self.coming_start_offset: i64 = self.log_start_offset
        self.recovery_report = RecoveryReport(directory)
        self.recovery_point = RecoveryPointState()
        # Bytes written by this process, by which the next recovery point becomes due.
        self.written_bytes: i64 = 0
        self.is_closed = False
        self.compaction = CompactionState()
        self.cut = Cut()
        # True if offsets may be missing because they are missing in the log that was copied.
        self.has_gaps = False
        # Offset up to which the records are known to be committed; -1 if unknown.  Recovery points
        # keep it.
        self.high_watermark_hint: i64 = -1

    @property
    def disk(self) -> Disk:
        return self.files.disk

    @property
    def active(self) -> Segment:
        """The last segment, to which batches are appended."""
        return self.segment_order.kept[-1]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments in order of offsets, as they are now."""
        return tuple(self.segment_order.kept)

    def segments_from(self, offset: i64) -> list[Segment]:
        """Return the segment that holds `offset`, and all behind it."""
        return self.segment_order.kept[self.segment_order.index_of(offset) :]

    @property
    def has_tail(self) -> bool:
        """Return true if appended batches wait for their write."""
        return self.tail.mark is not None

    @property
    def is_being_cut(self) -> bool:
        """True if a cut is under way or not durable: no batch may be appended."""
        return self.cut.is_under_way or self.unflushed.has_truncation

    @property
    def flaw_offset(self) -> i64:
        """Offset of the first flaw; -1 if none is known."""
        return self.segment_order.flaw_offset

    @property
    def flaw_reason(self) -> str:
        return self.segment_order.flaw_reason

    def hint_high_watermark(self, offset: i64) -> None:
        """Note for the recovery points up to which offset the records are known to be committed."""
        self.high_watermark_hint = offset

    # --- Appending.

    def append(
        self, window: Window, header: BatchHeader, leader_epoch: i64, now_wall_ms: i64
    ) -> i64:
        """Add one checked batch to the tail; return the base offset that it got."""
        base_offset = self.log_end_offset
        last_offset: i64 = base_offset + header.last_offset_delta
        mark = self.tail.mark
        if mark is None:
            mark = self.begin_tail()
        segment = self.active
        if segment.must_roll(header.size, last_offset, header.max_timestamp, now_wall_ms):
            segment = self.roll()
        if leader_epoch > self.leader_epochs.latest_epoch:
            mark.keep_epochs(self.leader_epochs)
            self.leader_epochs.assign(leader_epoch, base_offset)
        segment.note_batch(base_offset, header, now_wall_ms)
        self.tail.add(window, header, base_offset, leader_epoch)
        self.log_end_offset = last_offset + 1
        return base_offset

    def append_bytes(self, data: bytes, leader_epoch: i64, now_wall_ms: i64) -> i64:
        """Append a batch that this broker built; like `append`, but decode the header here."""
        return self.append(window_of(data), decode_batch_header(data, 0), leader_epoch, now_wall_ms)

    def roll(self) -> Segment:
        """Begin a new last segment; the first write makes its file.

        If there is no tail: `StorageError` if the log has a flaw, or if the indexes of the segment
        that was the last one cannot be read.
        """
        ended = self.active
        if self.tail.mark is not None:
            self.tail.end_part(ended)
        elif self.flaw_offset >= 0:
            raise StorageError(self.segment_order.refusal())
        try:
            ended.seal()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        return self.roll_at(self.log_end_offset)

    def roll_at(self, base_offset: i64) -> Segment:
        """Begin a new last segment at `base_offset`, which may lie behind a gap."""
        segment = Segment(self.files, self.directory, base_offset, self.config)
        segment.has_gaps = self.has_gaps
        self.segment_order.kept.append(segment)
        return segment

    def write(self) -> None:
        """Write the tail.  On `StorageError` the log is as it was before the tail."""
        tail = self.tail
        if tail.mark is None:
            return
        if self.flaw_offset >= 0:
            # A reader found the flaw after the tail began; a write would overwrite the flaw.
            self._undo_tail()
            raise StorageError(self.segment_order.refusal())
        tail.end_part(self.active)
        try:
            for part in tail.parts:
                if part.size > 0:
                    self.unflushed.write(self.disk, part)
                    self.written_bytes += part.size
        except StorageError:
            self._undo_tail()
            raise
        except Flaw as flaw:
            self._undo_tail()
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        ended = tail.parts[:-1]
        tail.clear()
        for part in ended:
            part.segment.newest.clear()
        if ended:
            self.condemn_below_start()
        self.written_end_offset = self.log_end_offset

    def begin_tail(self) -> TailMark:
        """Prepare for the first batch of a tail; `StorageError` if no batch may be appended."""
        if self.flaw_offset >= 0:
            raise StorageError(self.segment_order.refusal())
        if self.is_being_cut:
            raise StorageError(f"{self.directory} is being cut")
        try:
            self.active.prepare_append()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        mark = TailMark(self.active)
        self.tail.mark = mark
        return mark

    def _undo_tail(self) -> None:
        """Restore the state before the tail, after a failed write."""
        mark = self.tail.mark
        assert mark is not None
        self.tail.clear()
        active = mark.active
        for later in reversed(self.segment_order.cut_behind(active)):
            self.unflushed.forget(later)
            later.remove()
            self.unflushed.note_name()
        active.undo(mark.segment)
        if mark.epochs is not None:
            self.leader_epochs.restore(mark.epochs)
            self.leader_epochs.truncate_start(self.log_start_offset)
        self.log_end_offset = self.written_end_offset
        if not active.has_file:
            # The segment's file could not be made, so no flush will settle the identity file
            # either.
            self.unflushed.identity.forget()
        else:
            self.unflushed.note_undone_write(active)
        if active.written_size == active.size or self.segment_order.flaw_segment is active:
            return
        # This segment's share of the tail was written; the write of a later segment failed.
        try:
            active.file().truncate(active.size)
            active.written_size = active.size
        except (StorageError, Flaw) as error:
            active.written_size = active.size
            self.note_flaw(Flaw(str(error), self.log_end_offset, active.size))

    # --- Leader epochs.

    def forget_empty_epochs(self) -> None:
        """Forget leader epochs that began at the log's end and have no batch here.

        A replica that has none of these epochs either could not be told where they ended.
        """
        assert not self.has_tail
        self.leader_epochs.truncate_end(self.log_end_offset)

    def assign_epoch(self, epoch: i64) -> None:
        """Let a leader epoch begin at the log's end, before it has its first batch.

        A replica that asks where an earlier epoch ended here then gets the answer at once.  A crash
        before its first batch may forget the epoch.  That is safe: no replica has a batch of it,
        and every leader after the crash, this broker too, has a later epoch.
        """
        assert not self.has_tail
        self.leader_epochs.assign(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch <= `epoch` and where it ended here; (-1, -1) if unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_at(self, offset: i64) -> int:
        """Return the leader epoch in which the record at `offset` was written, or -1."""
        return self.leader_epochs.epoch_of(offset)

    # --- Positions and reading.

    def position_of(self, offset: i64) -> LogPosition:
        """Return where the batch that contains `offset` begins; the written end has its position
        too.
        """
        if offset == self.written_end_offset:
            return self.end_position()
        if offset == self.flushed_end.offset:
            return self.flushed_end
        assert self.log_start_offset <= offset
        assert offset < self.written_end_offset
        return self.segment_order.position_of(offset)

    def end_position(self) -> LogPosition:
        """Return where the written bytes end."""
        mark = self.tail.mark
        last = self.active if mark is None else mark.active
        return LogPosition(self.written_end_offset, last.base_offset, last.written_size)

    def read(
        self,
        offset: i64,
        end: LogPosition,
        size_max: i64,
        at_least_one: bool,
        start: LogPosition | None = None,
    ) -> FileRegion | None:
        """Return whole batches of one segment, from the one that contains `offset` up to `end`.

        The first may exceed `size_max` if `at_least_one`.  `start` is the position of `offset`, if
        the caller knows it.  Raises `CorruptData` or `StorageError` at a flaw.
        """
        assert offset >= min(self.log_start_offset, end.offset)
        return self.segment_order.read(offset, end, size_max, at_least_one, start)

    @property
    def size_bytes(self) -> i64:
        """Bytes of all segments, the tail included."""
        return sum([segment.size for segment in self.segment_order.kept])

    def offset_for_time(self, timestamp: int, end_offset: int) -> FoundRecord | None:
        """Find the first record below `end_offset` that is at `timestamp` or later."""
        part = SearchedPart(self.segment_order, self.log_start_offset, end_offset)
        return time_search.offset_for_time(part, timestamp)

    def max_timestamp_offset(self, end_offset: int) -> FoundRecord | None:
        """Find the record below `end_offset` with the largest timestamp."""
        part = SearchedPart(self.segment_order, self.log_start_offset, end_offset)
        return time_search.max_timestamp_offset(part)

    def has_flaw_before(self, offset: i64) -> bool:
        """Return True if `offset` lies at or behind a flaw."""
        return self.segment_order.has_flaw_before(offset)

    def note_flaw(self, flaw: Flaw) -> None:
        """Note a flaw: from here on reads at or behind it are refused, and all appends."""
        self.segment_order.note_flaw(flaw)

    # --- Flushing.

    @property
    def has_undurable_cut(self) -> bool:
        """True if bytes that were cut off may come back in a crash."""
        return self.unflushed.has_cut

    @property
    def is_dirty(self) -> bool:
        """True if something was written that may not be durable."""
        return self.flushed_offset < self.written_end_offset or not self.unflushed.is_empty

    @property
    def has_unflushed_bytes(self) -> bool:
        """True if a segment's file was changed and not flushed since."""
        return len(self.unflushed.segments) > 0

    def collect_flush(self, files: list[LogFile], directories: dict[str, None]) -> i64:
        """Collect what a flush needs to make all below the returned offset durable."""
        self.unflushed.begin_flush(self.end_position(), files, directories)
        return self.written_end_offset

    def flush_refused(self, offset: i64) -> None:
        """Forget the flush mark of a `collect_flush` whose flush was never begun."""
        self.unflushed.take_mark(offset)

    def flushed(self, offset: i64) -> None:
        """Note that the flush of what `collect_flush` named is complete."""
        mark = self.unflushed.take_mark(offset)
        if mark is None:
            # The bytes were cut off during the flush.
            return
        self.settle(mark)
        if offset > self.flushed_offset:
            self.flushed_offset = offset
            self.flushed_end = mark.end

    def settle(self, mark: FlushMark) -> None:
        """Settle what `mark` covers: its flush is complete."""
        self.unflushed.settle(mark)
        self.files.trim()

    # --- The beginning.

    def ask_for_start(self, offset: i64) -> None:
        """Let the log begin at `offset` once a recovery point on the disk says so."""
        self.coming_start_offset = max(self.coming_start_offset, offset)

    def follow_start(self, offset: i64) -> None:
        """Let the log begin where the leader's log does, but not behind the written end here."""
        self.ask_for_start(min(offset, self.written_end_offset))

    def advance_log_start_offset(self, offset: i64) -> None:
        """Hide records below `offset` from readers; a recovery point releases their files later."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.written_end_offset
        self.log_start_offset = offset
        self.cut.follow_start(offset)
        self.ask_for_start(offset)
        self.condemn_below_start()
        self.leader_epochs.truncate_start(offset)

    def condemn_below_start(self) -> None:
        """Give up segments below the log start; do nothing while a compaction runs."""
        if self.compaction.is_under_way:
            return
        # If the write of the tail fails, the segment in which it began is the last one again.
        stays = None if self.tail.mark is None else self.tail.mark.active
        for segment in self.segment_order.condemn_below(self.log_start_offset, stays):
            self.unflushed.forget(segment)

    def release_below(self, offset: i64, named_from: int, condemned: int) -> list[Segment]:
        """Return the segments whose files may go now that a recovery point has log start `offset`.

        These are the first `condemned` ones, all that there were when the recovery point was taken,
        and those that end at or below `named_from`, where the first segment that it names begins.
        A start expects every file that is named: a named segment waits for the next recovery
        point, even if all of it lies below the log start.
        """
        before = len(self.segment_order.condemned)
        self.advance_log_start_offset(named_from)
        released = self.segment_order.release(condemned, before)
        self.advance_log_start_offset(offset)
        return released

    # --- Changes of the segments from elsewhere in this package.

    def allow_gaps(self) -> None:
        """Accept missing offsets from now on, because the log that is copied lacks them."""
        if not self.has_gaps:
            self.unflushed.make_name(self.disk, f"{self.directory}/{GAPS_FILE}")
            self.has_gaps = True
        for segment in self.segment_order.kept:
            segment.has_gaps = True

    def open_at(self, start_offset: i64, end_offset: i64, flushed_offset: i64) -> None:
        """End recovery: set the offsets that it found."""
        self.log_start_offset = start_offset
        self.coming_start_offset = start_offset
        self.log_end_offset = end_offset
        self.written_end_offset = end_offset
        self.flushed_offset = flushed_offset

    def replace_segments(self, sources: list[Segment], segment: Segment) -> None:
        """Put a compacted segment in the place of its sources, which are closed."""
        segment.is_behind_gap = sources[0].is_behind_gap
        self.segment_order.replace(sources, segment)
        for source in sources:
            source.close()

    def cut_after(self, segment: Segment, row: SegmentRow, end_offset: i64) -> None:
        """Make `segment`, the last one, end as `row` says; the log ends at `end_offset`."""
        assert segment is self.active
        segment.cut(row)
        if segment.has_file:
            self.unflushed.add(segment)
        self._end_at(end_offset)

    def drop_last(self) -> None:
        """Give up the last segment, whose files are removed; the one before becomes the last."""
        dropped = self.segment_order.kept.pop()
        if dropped.is_behind_gap:
            self.unflushed.note_gap_cut()
        self.unflushed.forget(dropped)
        dropped.close()
        self.unflushed.note_name()
        self._end_at(dropped.base_offset)

    def begin_anew(self, offset: i64) -> list[Segment]:
        """Forget everything and begin an empty log at `offset`; return the old segments, closed."""
        segment = Segment(self.files, self.directory, offset, self.config)
        segment.has_gaps = self.has_gaps
        left = self.segment_order.begin_anew(segment)
        for each in left:
            self.unflushed.forget(each)
            each.close()
        self.leader_epochs.clear()
        self.log_start_offset = offset
        self.coming_start_offset = offset
        self.high_watermark_hint = -1
        self.unflushed.note_name()
        self._end_at(offset)
        self.flushed_offset = offset
        return left

    def _end_at(self, end_offset: i64) -> None:
        self.leader_epochs.truncate_end(end_offset)
        self.log_end_offset = end_offset
        self.written_end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.coming_start_offset = min(self.coming_start_offset, end_offset)
        self.flushed_end = NO_POSITION
        self.unflushed.note_cut()

    def close(self) -> None:
        """Give up all files; the log is not used again."""
        self.is_closed = True
        for segment in self.segment_order.kept:
            segment.close()
