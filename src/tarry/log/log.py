"""The log of one partition: segments in order, a tail that waits for its write, what is durable.

`append` and `append_copy` only gather.  `write` puts the tail into the files with one gathered
write per segment, or, when that fails, leaves log, indexes and epochs as they were before the tail.
`collect_flush` names the files that make everything written durable and `flushed` hears of it; both
are driven by the broker's flush rounds.  Nothing here flushes, reads a clock or waits.

Invariants: log_start_offset <= flushed_offset <= written_end_offset <= log_end_offset; offsets of
batches only grow, without gaps unless compaction left some here or where the log was copied from;
reads never see the tail.  Hot: append is 1 µs of a produce.
"""

from __future__ import annotations

import logging

from mypy_extensions import i64

from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.open_files import OpenFiles
from tarry.log.segment import (
    GAP_SUFFIX,
    INT32_MAX,
    Segment,
    segment_path,
)
from tarry.log.state import LogListener
from tarry.log.stored_log import StoredLog
from tarry.log.tail import Tail, TailMark, TailPart
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.wire.reader import Window, window_of

logger = logging.getLogger("tarry.log")


class Log(StoredLog):
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
        super().__init__(directory, config, listener, files, segments, identity)
        self._tail = Tail()
        self._tail_parts: list[TailPart] = []

    # --- Appending.

    def append(
        self, window: Window, header: BatchHeader, leader_epoch: i64, now_wall_ms: i64
    ) -> i64:
        """Add one checked batch to the tail; return the base offset that it got."""
        base_offset = self.log_end_offset
        last_offset: i64 = base_offset + header.last_offset_delta
        mark = self.tail_mark
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

    def append_copy(self, window: Window, header: BatchHeader, now_wall_ms: i64) -> i64:
        """Add a batch copied from the leader to the tail, with its own offset and leader epoch.

        Offsets between it and the log's end stay missing, as they are where it comes from.
        `CorruptData` if it cannot follow what is here; `StorageError` as in `append`, and while a
        cut is not durable.  Either leaves the log as it was.
        """
        base_offset = header.base_offset
        leader_epoch = header.leader_epoch
        if base_offset < self.log_end_offset or leader_epoch < self.leader_epochs.latest_epoch:
            raise CorruptData(
                f"{self.directory} ends at offset {self.log_end_offset} in leader epoch "
                f"{self.leader_epochs.latest_epoch}; a batch of epoch {leader_epoch} at offset "
                f"{base_offset} cannot follow"
            )
        if self.tail_mark is None:
            if self.has_undurable_cut:
                raise StorageError(f"{self.directory} was cut, and that is not durable yet")
            self._begin_tail()
        if base_offset > self.log_end_offset:
            last_offset: i64 = base_offset + header.last_offset_delta
            segment = self._leave_gap(base_offset, last_offset)
            if segment.must_roll(header.size, last_offset, header.max_timestamp, now_wall_ms):
                # It is named by the end before the gap.
                self.roll()
            # Nothing fails from here on.
            self.log_end_offset = base_offset
        return self.append(window, header, leader_epoch, now_wall_ms)

    def _leave_gap(self, base_offset: i64, last_offset: i64) -> Segment:
        """Prepare a gap before a batch; return the segment that the batch may go to.

        The gap lies inside the segment, behind its base offset if it is a new one.  So one segment
        begins where the one before ended, and what a crash has torn off its end is not taken for a
        gap.  Only where relative offsets do not reach over it a segment begins behind it, with a
        file beside it that says so; everything before must be durable then.
        """
        if last_offset - self.log_end_offset > INT32_MAX:
            if self.is_dirty or self._tail.size > 0 or self._tail_parts:
                raise StorageError(
                    f"{self.directory} has to be flushed before it leaves out the offsets up to "
                    f"{base_offset}"
                )
            self.make_name(segment_path(self.directory, base_offset) + GAP_SUFFIX)
            segment = self._roll_at(base_offset)
            segment.is_behind_gap = True
        else:
            segment = self.active
        self.allow_gaps()
        return segment

    def append_bytes(self, data: bytes, leader_epoch: i64, now_wall_ms: i64) -> i64:
        """Append a batch that this broker built; like `append`, without a header made before."""
        return self.append(window_of(data), decode_batch_header(data, 0), leader_epoch, now_wall_ms)

    def roll(self) -> Segment:
        """Begin a new last segment; its file is made by the first write.

        Without a tail `StorageError` if there is a flaw, or if the indexes of the segment that was
        the last one cannot be read.
        """
        ended = self.active
        if self.tail_mark is not None:
            self._tail_parts.append(TailPart(ended, self._tail.take(), ended.unwritten()))
        elif self.flaw_offset >= 0:
            raise StorageError(self.refusal())
        try:
            ended.seal()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        return self._roll_at(self.log_end_offset)

    def _roll_at(self, base_offset: i64) -> Segment:
        segment = Segment(self.files, self.directory, base_offset, self.config)
        segment.has_gaps = self.has_gaps
        self.segment_order.kept.append(segment)
        self.active = segment
        return segment

    def write(self) -> None:
        """Write the tail.  `StorageError`: nothing of it was kept."""
        if self.tail_mark is None:
            return
        if self.flaw_offset >= 0:
            # Met by a reader since the tail began: a write would begin where the flaw does.
            self._undo_tail()
            raise StorageError(self.refusal())
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
        self.tail_mark = None
        if self._tail_parts:
            for part in self._tail_parts:
                part.segment.newest.clear()
            self._tail_parts = []
            self.condemn_below_start()
        self.written_end_offset = self.log_end_offset

    def _begin_tail(self) -> TailMark:
        if self.flaw_offset >= 0:
            raise StorageError(self.refusal())
        if self.is_being_cut:
            raise StorageError(f"{self.directory} is being cut")
        try:
            self.active.prepare_append()
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise StorageError(str(flaw)) from None
        mark = TailMark(self.active)
        self.tail_mark = mark
        return mark

    def _write_part(self, part: TailPart) -> None:
        segment = part.segment
        if part.size == 0:
            return
        self.unflushed.begin_write(self.disk, segment)
        segment.append_chunks(part.chunks, part.size)
        self.written_bytes += part.size
        segment.newest.forget_older()
        self.note_change(segment)

    def _undo_tail(self) -> None:
        """Restore the state before the tail, after a failed write."""
        mark = self.tail_mark
        assert mark is not None
        self.tail_mark = None
        self._tail.clear()
        self._tail_parts = []
        active = mark.active
        for later in reversed(self.segment_order.cut_behind(active)):
            self._drop(later)
        self.active = active
        active.undo(mark.segment)
        if mark.epochs is not None:
            self.leader_epochs.restore(mark.epochs)
            self.leader_epochs.truncate_start(self.log_start_offset)
        self.log_end_offset = self.written_end_offset
        if not active.has_file:
            # It could not be made, and without bytes no flush gives back what was opened before it.
            self.unflushed.identity.forget()
        else:
            # What the failed write left and was cut off may come back in a crash, and recovery
            # would stop there: the cut must be durable before anything after it is acknowledged.
            self.unflushed.cuts += 1
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
        self.unflushed.forget(segment)
        segment.remove()
        self.note_name()

    def forget_empty_epochs(self) -> None:
        """Forget leader epochs that began at the log's end and have no batch here.

        Another replica that has none of them either could not be told where they ended.
        """
        assert not self.has_tail
        self.leader_epochs.truncate_end(self.log_end_offset)

    def assign_epoch(self, epoch: i64) -> None:
        """Let a leader epoch begin at the log's end, before it has its first batch.

        So a replica that asks where an earlier epoch ended here hears it at once.  It is durable
        with the next recovery point as far as batches of it are; a crash before it has any may
        forget it: no replica has a batch of it then, and whoever leads after the crash, this
        broker too, does so in a later epoch.
        """
        assert not self.has_tail
        self.leader_epochs.assign(epoch, self.log_end_offset)
