"""Loading of a followed partition's schedule as far as both logs count, to write a snapshot of it.

What a snapshot says has to stay true: a follower's logs may be cut, but not below their high
watermarks, except after an unclean election (then the epochs in the snapshot do not fit).  Let X be
the offset of S up to which this load reads, and c the offset of P.  A later load that begins with
the snapshot finds each body at its place only if

1. X is at or below S's high watermark, and not between a note and its body;
2. the last checkpoint of S before X counts here: the partition's start may have passed releases
   that only this checkpoint knows of, and the later load does not read it;
3. no release below c is of a body at or behind X: the later load would read the body from S, and
   not its release.  The follower copies the two logs one by one, so P may be ahead;
4. nothing else than S below X and P below c says what waits: c is not below that of the checkpoint,
   or of the last snapshot.  Else an unclean election might take back a release, and leave the
   snapshot that rests on it.

Hot.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import CorruptData
from tarry.broker.scheduling.loading import BatchReading, ScheduleLoad
from tarry.log.batch_walk import Flaw
from tarry.log.segments import LogPosition
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.notes import CheckpointNote

# Bytes of a log that one step reads, and bodies that it takes: this load is never urgent.
_STEP_BYTES: Final = 64 * 1024
_STEP_BODIES: Final = 250


class CountedLoad(ScheduleLoad):
    """Loading of a followed partition's schedule, which reads at most `grown_max` offsets of S
    behind the last snapshot.  `CorruptData` from a step: not now."""

    def __init__(
        self, partition: ReplicatedLog, companion: ReplicatedLog, *, grown_max: int
    ) -> None:
        super().__init__(partition, companion)
        self.step_bytes = _STEP_BYTES
        self.step_bodies = _STEP_BODIES
        self._grown_max = grown_max
        self.s_end_offset = companion.high_watermark
        self._p_high_watermark = partition.high_watermark
        # Offset of P up to which the state speaks if P begins behind it; -1 otherwise.
        self._c_before_start = -1
        self._unclean_epoch = companion.leadership.row.unclean_epoch
        self._swaps = self._count_swaps()
        # True if the last checkpoint of what was read does not count here; a later one may.
        self.is_short = False

    def _count_swaps(self) -> int:
        logs = (self._companion.log, self._partition.log)
        return sum([int(log.compaction.swaps) for log in logs])

    def step(self) -> bool:
        if self.is_cut:
            # Replication and recovery points take their steps behind the look of the line.
            raise CorruptData("a log was cut or compacted, or begins behind what is read")
        is_over = super().step()
        if self.flaw_count:
            raise CorruptData(self.flaws[0])
        for log in (self._companion.log, self._partition.log):
            if log.flaw_offset >= 0:
                # Nothing is read behind a flaw, so the state does not speak of what lies there.
                raise CorruptData(log.flaw_reason)
        return is_over

    def free(self, count_max: int) -> bool:
        """Free the memory of some bodies after the end; return True if there are more."""
        return self._rebuild.free(count_max)

    @property
    def is_cut(self) -> bool:
        """Return whether a log is closed, or may have been cut where this load has read it."""
        companion, partition = self._companion, self._partition
        if companion.is_closed or companion.log.is_being_cut or partition.log.is_being_cut:
            return True
        if companion.log.log_start_offset >= self.s_end_offset:
            return True
        if companion.leadership.row.unclean_epoch != self._unclean_epoch:
            # The last snapshot, with which this load began, may speak of what is lost.
            return True
        releases = self._releases
        if releases is not None and not releases.is_over:
            covered = max(self.read_from, self._rebuild.taken_c)
            if partition.log.log_start_offset > covered:
                # Releases are gone that this load has not read.
                return True
        return (
            self._count_swaps() != self._swaps
            or companion.high_watermark < self.s_end_offset
            or partition.high_watermark < self._p_high_watermark
        )

    @property
    def s_offset(self) -> int:
        """Return the offset of S up to which the state speaks: X."""
        # A note at the end counts once its body does.
        is_between = self._rebuild.is_body_expected(self.s_end_offset)
        return self.s_end_offset - 1 if is_between else self.s_end_offset

    @property
    def c(self) -> int:
        """Return the offset of P up to which the state speaks, once both logs are read."""
        assert self._releases is not None
        if self._c_before_start >= 0:
            return self._c_before_start
        return self._releases.end_offset

    @property
    def hole_end(self) -> int:
        """Return the offset of S behind the last hole that compaction has left; 0 without one."""
        return self._rebuild.hole_end

    def _begin_bodies(self) -> BatchReading:
        if self.snapshot.has_failed:
            raise CorruptData("the last snapshot cannot be read now")
        log = self._companion.log
        start_offset = max(self._start_offset, int(log.log_start_offset))
        if self.s_end_offset <= start_offset:
            raise CorruptData(f"nothing counts behind offset {start_offset}")
        end = self._batch_at(min(self.s_end_offset, start_offset + self._grown_max))
        self.s_end_offset = int(end.offset)
        return self._reading(log, start_offset, end)

    def _batch_at(self, offset: int) -> LogPosition:
        """Return where the batch of S with this offset begins, as an offset and a position."""
        log = self._companion.log
        at = log.position_of(offset)
        if offset == log.written_end_offset:
            return at
        segment = log.segment_order.holding(offset)
        if at.segment_base_offset != segment.base_offset:
            # The flushed end is known as the end of the segment before.
            return at
        try:
            header = segment.next_header(segment.walk(at.position, segment.written_size))
        except Flaw as flaw:
            log.note_flaw(flaw)
            raise
        if header is None or header.base_offset >= offset:
            return at
        return LogPosition(header.base_offset, at.segment_base_offset, at.position)

    def _begin_releases(self) -> BatchReading:
        partition = self._partition
        log = partition.log
        # What the last snapshot speaks of counts, also if this process does not know that yet.
        counted = max(partition.high_watermark, self._rebuild.snapshot_c)
        self._p_high_watermark = partition.high_watermark
        self._take_checkpoint(counted)
        last = self._rebuild.last_passed_over
        if last is not None:
            self.is_short = True
            raise CorruptData(_uncounted(last))
        if log.log_start_offset > self._rebuild.taken_c:
            # A later checkpoint tells what was released before the start, if anything was: the
            # later load reads that one, or finds it damaged.
            self._c_before_start = self._rebuild.taken_c
            start_offset = int(log.log_start_offset)
            return self._reading(log, start_offset, log.position_of(start_offset))
        if counted > log.written_end_offset:
            raise CorruptData(f"the partition is not written up to offset {counted}")
        self._foreign_offset = self.s_end_offset
        return self._reading(log, self.read_from, log.position_of(max(self.read_from, counted)))


def _uncounted(checkpoint: CheckpointNote) -> str:
    return f"the last checkpoint, at offset {checkpoint.c} of the partition, does not count here"
