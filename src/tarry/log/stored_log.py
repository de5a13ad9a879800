"""Stored part of a log: segments, their offsets and epochs, positions, flaws, where it begins.

`Log`, which appends, stands on it; recovery, compaction and truncation change the segments by what
is here.  Invariants: log_start_offset <= flushed_offset <= written_end_offset <= log_end_offset;
reads never see the tail.  Hot: every fetch reads here.
"""

from __future__ import annotations

import logging

from mypy_extensions import i64

from tarry.base.doors import FileRegion
from tarry.base.errors import StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.index import time_search
from tarry.log.index.epoch_index import EpochIndex
from tarry.log.index.time_search import FoundRecord, SearchedPart
from tarry.log.open_files import OpenFiles
from tarry.log.segment import GAPS_FILE, Segment, SegmentRow
from tarry.log.segments import LogPosition, Segments
from tarry.log.state import (
    CompactionState,
    CutState,
    LogListener,
    RecoveryPointState,
    RecoveryReport,
)
from tarry.log.unflushed import WrittenLog

logger = logging.getLogger("tarry.log")


class StoredLog(WrittenLog):
    """Segments of one log and what is known of them."""

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        listener: LogListener,
        files: OpenFiles,
        segments: list[Segment],
        identity: LogIdentity,
    ) -> None:
        super().__init__(directory, files, segments[-1], identity)
        self.config = config
        self.listener = listener
        self.segment_order = Segments(segments)
        self.identity = identity
        self.leader_epochs = EpochIndex()
        self.log_start_offset: i64 = segments[0].base_offset
        self.log_end_offset: i64 = segments[-1].base_offset
        self.flaw_offset: i64 = -1
        # Where retention lets the log begin once a recovery point says so: a log start that
        # readers have seen must not go back in a crash.
        self.coming_start_offset: i64 = self.log_start_offset
        self._flaw_segment: Segment | None = None
        self.recovery_report = RecoveryReport(directory)
        self.recovery_point = RecoveryPointState()
        self.flaw_reason = ""
        # Bytes written in this life, to know when a new recovery point is due.
        self.written_bytes: i64 = 0
        self.is_closed = False
        self.compaction = CompactionState()
        self.cut = CutState()
        # The cut that took the last segment behind a gap.
        self._gap_cut: i64 = 0
        # Offsets may be missing between batches, because they were where the log was copied from.
        self.has_gaps = False
        # How far the records of the log were known to be committed; -1: that was never known.
        # Recovery points keep it.
        self.high_watermark_hint: i64 = -1

    def hint_high_watermark(self, offset: i64) -> None:
        """Have recovery points keep how far the records are known to be committed."""
        self.high_watermark_hint = offset

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
        return self.tail_mark is not None

    @property
    def has_changed(self) -> bool:
        """Return true if the recovery point is not where it should be."""
        point = self.recovery_point
        if point.restart_offset >= 0:
            return not point.is_restart
        if point.limit_offset >= 0:
            return point.offset_max > point.limit_offset or point.voids_compaction
        if point.offset < 0 and self.written_end_offset == 0:
            # Nothing was ever written: without a row it is found as it is.
            return False
        return (
            self.written_end_offset != point.offset
            or self.coming_start_offset != point.log_start_offset
            or self.leader_epochs.version != point.epochs_version
            or self.compaction.swaps != point.swaps
            or self.high_watermark_hint != point.high_watermark_hint
        )

    @property
    def is_being_cut(self) -> bool:
        """Return true if a cut is under way or not durable: nothing may be appended."""
        unflushed = self.unflushed
        return self.cut.is_under_way or unflushed.last_truncation > unflushed.flushed_cuts

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
        self._check_flaw(offset)
        segment = self.segment_order.holding(offset)
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
            return self.segment_order.read(offset, end, size_max, at_least_one, start)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch <= `epoch` and where it ended here; (-1, -1) if unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    @property
    def size_bytes(self) -> i64:
        """Bytes of all segments, the tail included."""
        return sum([segment.size for segment in self.segment_order.kept])

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
        part = SearchedPart(list(self.segment_order.kept), self.log_start_offset, end_offset)
        part.flaw_segment = self._flaw_segment
        part.flaw_offset = self.flaw_offset
        part.refusal = self.refusal()
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

    def follow_start(self, offset: i64) -> None:
        """Let the log begin where the leader's does, as far as it has come there itself."""
        self.ask_for_start(min(offset, self.written_end_offset))

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
        stays = None if self.tail_mark is None else self.tail_mark.active
        for segment in self.segment_order.condemn_below(self.log_start_offset, stays):
            self.unflushed.forget(segment)

    @property
    def condemned_segments(self) -> tuple[Segment, ...]:
        """Segments below the log start whose files are still there."""
        return tuple(self.segment_order.condemned)

    @property
    def condemned(self) -> int:
        """Number of segments below the log start whose files are still there."""
        return len(self.segment_order.condemned)

    def release_below(self, offset: i64, named_from: int, condemned: int) -> list[Segment]:
        """Return the segments whose files may go: a recovery point has the log start `offset`.

        They are the first `condemned` ones, all that there were when the recovery point was taken,
        and those that end at or below `named_from`, where the first segment that it names begins.
        A start expects every file that is named: a named segment waits for the next recovery
        point, even if all of it lies below the log start.
        """
        before = self.condemned
        self.advance_log_start_offset(named_from)
        released = self.segment_order.release(condemned, before)
        self.advance_log_start_offset(offset)
        return released

    # --- Changes of the segments from elsewhere in this package.

    def note_new_directory(self) -> None:
        """Take down that the name of the directory itself may not be durable."""
        self.unflushed.is_directory_new = True

    def allow_gaps(self) -> None:
        """Take offsets that are missing for missing where the log was copied from, from now on."""
        if not self.has_gaps:
            self.make_name(f"{self.directory}/{GAPS_FILE}")
            self.has_gaps = True
        for segment in self.segment_order.kept:
            segment.has_gaps = True

    def make_name(self, path: str) -> None:
        """Make an empty file, durable with the log's next flush."""
        self.disk.open(path, create=True).close()
        self.note_name()

    def take_recovered(self, segment: Segment) -> None:
        """Make `segment`, which recovery found behind the last one, the last one."""
        self.segment_order.kept.append(segment)
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
        segment.is_behind_gap = sources[0].is_behind_gap
        self.segment_order.replace(sources, segment)
        for source in sources:
            source.close()

    def cut_after(self, segment: Segment, row: SegmentRow, end_offset: i64) -> None:
        """Make `segment`, the last one, end as `row` says; the log ends at `end_offset`."""
        assert segment is self.active
        segment.cut(row)
        if segment.has_file:
            self.note_change(segment)
        self._end_at(end_offset)

    def drop_last(self) -> None:
        """Give up the last segment, whose files are gone; the one before becomes the last."""
        dropped = self.segment_order.kept.pop()
        if dropped.is_behind_gap:
            self._gap_cut = self.unflushed.cuts + 1
        self.unflushed.forget(dropped)
        dropped.close()
        self.active = self.segment_order.last
        self.note_name()
        self._end_at(dropped.base_offset)

    @property
    def has_undurable_gap_cut(self) -> bool:
        """Return true if a segment behind a gap was given up, and may come back in a crash."""
        return self._gap_cut > self.unflushed.flushed_cuts

    def begin_anew(self, offset: i64) -> list[Segment]:
        """Forget everything and begin, empty, at `offset`; return the segments that are left over,
        closed.
        """
        left = self.segment_order.kept + self.segment_order.condemned
        for segment in left:
            self.unflushed.forget(segment)
            segment.close()
        self.active = Segment(self.files, self.directory, offset, self.config)
        self.active.has_gaps = self.has_gaps
        self.segment_order = Segments([self.active])
        self.leader_epochs.clear()
        self.flaw_offset = -1
        self.flaw_reason = ""
        self._flaw_segment = None
        self.log_start_offset = offset
        self.coming_start_offset = offset
        self.high_watermark_hint = -1
        self.note_name()
        self._end_at(offset)
        self.flushed_offset = offset
        return left

    def _end_at(self, end_offset: i64) -> None:
        self.leader_epochs.truncate_end(end_offset)
        self.log_end_offset = end_offset
        self.written_end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.coming_start_offset = min(self.coming_start_offset, end_offset)
        self.flushed_end = LogPosition(-1, -1, -1)
        self.unflushed.note_cut()

    def close(self) -> None:
        """Give up all files; the log is not used again."""
        self.is_closed = True
        for segment in self.segment_order.kept:
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
        segment = self.segment_order.holding(flaw.offset)
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
            raise StorageError(self.refusal())

    def refusal(self) -> str:
        """Return why nothing is read or appended at the flaw."""
        return f"{self.directory} has a flaw at offset {self.flaw_offset}"
