"""Loading of a partition's schedule in steps: its companion log S, then what P has released.

A snapshot, if there is one, spares reading S before the snapshot's offset.  P is read from the last
checkpoint of S that counts to P's end.  The schedule itself keeps the bodies that are parked
meanwhile.  Hot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.errors import CorruptData, StorageError
from tarry.broker.scheduling.snapshots.snapshot_load import SnapshotLoad
from tarry.log.batch_walk import UNKNOWN_OFFSET, BatchWalk, Flaw
from tarry.log.log import Log
from tarry.log.segment import Segment
from tarry.log.segments import LogPosition, limit_of
from tarry.partition.replicated_log import NOWHERE, ReplicatedLog
from tarry.records.batch import HEADER_SIZE, BatchHeader, has_valid_crc
from tarry.schedule.notes import ANY_OFFSET, UnreadableNote, read_note
from tarry.schedule.rebuild import Rebuild
from tarry.schedule.release_identity import NO_S_OFFSET, is_instance, released_s_offset
from tarry.schedule.state import ScheduleState
from tarry.schedule.taken_snapshot import TakenSnapshot

logger = logging.getLogger("tarry.broker")

# Bytes of a log that one step reads: a millisecond or two.
READ_BYTES: Final = 512 * 1024
# Cost of finding, opening and leaving a segment: it takes as long as reading so many bytes.
_SEGMENT_BYTES: Final = 32 * 1024
# Bodies that one step takes into the state: a millisecond or two.
TAKEN_BODIES: Final = 1_000


class BatchReading:
    """Reading of a log's batches, in steps, up to the position that was the log's end.

    Each batch must begin where the one before ended, also across steps and segments.  If it does
    not, the log notes a flaw, and is read up to the flaw only.
    """

    def __init__(
        self, log: Log, offset: int, end: LogPosition, *, checks_crc: bool, step_bytes: int
    ) -> None:
        self._log = log
        self._offset = offset
        self._end = end
        self._checks_crc = checks_crc
        self._step_bytes = step_bytes
        # Segment that is being read; whether a batch of it was read, and where the last one is.
        self._segment: Segment | None = None
        self._has_read = False
        self._batch_position = 0
        self._batch_offset = UNKNOWN_OFFSET
        # Position in the segment at which this step ends, and bytes that the step may still read.
        self._stop: i64 = 0
        self._left: i64 = 0

    @property
    def is_over(self) -> bool:
        if self._log.has_flaw_before(self._offset):
            return True
        return self._segment is None and self._offset >= self._end.offset

    @property
    def end_offset(self) -> int:
        """Offset at which the reading ends."""
        return int(self._end.offset)

    def begin_step(self) -> None:
        """Begin a step, which may read several segments."""
        self._left = self._step_bytes

    def may_go_on(self) -> bool:
        """Return whether the step may read more."""
        return self._left > 0 and not self.is_over

    def begin(self) -> BatchWalk:
        """Begin the step's next part: return a walk for `next`; `Flaw` if it cannot begin."""
        walk = self._begin_walk()
        self._stop = walk.position + self._left
        return walk

    def _begin_walk(self) -> BatchWalk:
        log = self._log
        segment = self._segment
        if segment is not None and self._has_read and segment in log.segment_order.kept:
            walk = self._walk(segment, self._batch_position, self._batch_offset)
            # Read the last batch again: the next batch has to begin where it ends.
            segment.next_header(walk)
            return walk
        # The log's start may have moved since.
        self._offset = max(self._offset, log.log_start_offset)
        segment = log.segment_order.holding(self._offset)
        # If the disk refuses a file before the first batch is read, the next step begins again.
        self._segment = segment
        self._has_read = False
        limit = limit_of(segment, self._end)
        position: i64 = segment.find(self._offset, limit)
        first = segment.next_header(segment.walk(position, limit))
        return self._walk(segment, position, UNKNOWN_OFFSET if first is None else first.base_offset)

    def next(self, walk: BatchWalk) -> BatchHeader | None:
        """Return the header of the walk's next batch; None at the end of the step or segment."""
        segment = self._segment
        assert segment is not None
        if walk.position >= self._stop:
            self._left = 0
            return None
        header = segment.next_header(walk)
        if header is None:
            self._left = self._stop - walk.position - _SEGMENT_BYTES
            self._end_segment(segment)
            return None
        self._has_read = True
        self._batch_position = int(walk.batch_position)
        self._batch_offset = int(header.base_offset)
        self._offset = int(header.last_offset) + 1
        return header

    def end_before(self, header: BatchHeader) -> None:
        """End the reading before this batch, which `next` has returned."""
        self._end = LogPosition(header.base_offset, NOWHERE, 0)
        self._offset = int(header.base_offset)
        self._segment = None

    def give_back(self, header: BatchHeader) -> None:
        """Let the next step begin with this batch again: the disk has refused to read it."""
        self._has_read = False
        self._offset = int(header.base_offset)

    def _walk(self, segment: Segment, position: i64, expected_offset: i64) -> BatchWalk:
        walk = BatchWalk(segment.file(), position, limit_of(segment, self._end), expected_offset)
        walk.has_gaps = segment.has_gaps
        walk.checks_crc = self._checks_crc
        walk.block_bytes = self._step_bytes
        return walk

    def _end_segment(self, segment: Segment) -> None:
        """Go on to the next segment; `Flaw` if it does not begin where this one ends."""
        order = self._log.segment_order
        self._segment = None
        if order.flaw_segment is segment:
            self._offset = max(self._offset, int(order.flaw_offset))
            return
        offset = self._end.offset
        at = order.kept.index(segment) + 1
        if segment.base_offset != self._end.segment_base_offset and at < len(order.kept):
            offset = order.kept[at].base_offset
        if self._offset > offset or (self._offset < offset and not self._may_have_gaps()):
            raise Flaw(
                f"{segment.path} ends at offset {self._offset} where it has to end at {offset}",
                max(self._batch_offset, int(segment.base_offset)),
                self._batch_position,
            )
        self._offset = int(offset)

    def _may_have_gaps(self) -> bool:
        """Return whether batches may be missing: compaction has removed some, here or on the
        replica that the log was copied from."""
        segments = self._log.segment_order.kept
        return self._log.has_gaps or any(each.has_gaps or each.is_behind_gap for each in segments)


@mypyc_attr(allow_interpreted_subclasses=True)
class ScheduleLoad:
    """Loading of one partition's schedule; `state` is None until a step has returned True.

    A step reads up to `step_bytes` of a log, or takes up to `step_bodies` into the state.
    """

    def __init__(self, partition: ReplicatedLog, companion: ReplicatedLog) -> None:
        self.step_bytes = READ_BYTES
        self.step_bodies = TAKEN_BODIES
        self._partition = partition
        self._companion = companion
        self._rebuild = Rebuild()
        log = companion.log
        self._start_offset: int = log.log_start_offset
        end = log.end_position()
        # This load does not read batches of the companion log from this offset on.
        self.s_end_offset: int = end.offset
        self._end = end
        # Releases in P of bodies from this s-offset on, which this load does not read: none.
        self._foreign_offset = ANY_OFFSET
        self.snapshot = SnapshotLoad(companion)
        # Offset from which on S is read, the snapshot's; 0 without a snapshot.
        self.snapshot_offset = 0
        self._bodies: BatchReading | None = None
        self._releases: BatchReading | None = None
        # Epoch of the batch of S that was read last.
        self._note_epoch = -1
        # Offset from which on P is read: a checkpoint covers the releases before it.
        self.read_from = partition.log.log_start_offset
        # Offset in P behind the last release that was found.
        self.released_end = 0
        # True when both logs were read, and the state is being filled.
        self._is_all_read = False
        self.state: ScheduleState | None = None

    def end(self) -> None:
        """Read no more."""
        self.snapshot.end()

    def tell_flaws(self) -> None:
        """Report the flaws in the broker's log."""
        for sentence in self.flaws:
            logger.error("the scheduled records of %s: %s", self._partition.name, sentence)
        if self.flaw_count:
            logger.error(
                "the scheduled records of %s: %d faults in all; the log of what waits keeps what "
                "they hold back, and all that came after it, until a start can read it. Deleting "
                "the topic frees that",
                self._partition.name,
                self.flaw_count,
            )

    @property
    def flaws(self) -> list[str]:
        """Sentences about the first bodies and notes that cannot be read."""
        return self._rebuild.flaws

    @property
    def flaw_count(self) -> int:
        """Number of bodies and notes that cannot be read."""
        return self._rebuild.flaw_count

    @property
    def rests_on_snapshot(self) -> bool:
        """True if a snapshot, and no note of S, says what was released before `read_from`."""
        return self._rebuild.rests_on_snapshot

    @property
    def unread_offset(self) -> int:
        """Offset of the last batch that cannot be read and may have been a checkpoint, or -1."""
        return self._rebuild.unread_offset

    def step(self) -> bool:
        """Read on; return True when the state is complete.  After a `StorageError` the same step
        may succeed later."""
        releases = self._releases
        if self._bodies is None:
            self._read_snapshot()
        elif not self._bodies.is_over:
            self._read_on(self._companion.log, self._take_bodies)
        elif releases is None and self._partition.log.flaw_offset < 0:
            self._releases = self._begin_releases()
        elif releases is not None and not releases.is_over:
            self._read_on(self._partition.log, self._take_releases)
        elif not self._is_all_read:
            if self._partition.log.flaw_offset >= 0:
                raise CorruptData(self._partition.log.flaw_reason)
            self._is_all_read = True
            self._rebuild.begin_state(self._companion.high_watermark)
        else:
            self.state = self._rebuild.take_on(self.step_bodies)
        return self.state is not None

    def _read_snapshot(self) -> None:
        """Read the snapshot on.  At its end begin to read S: behind the snapshot's offset, or from
        its start if no snapshot counts."""
        snapshot = self.snapshot
        snapshot.step()
        if not snapshot.is_over:
            return
        log = self._companion.log
        found = snapshot.found
        if found is not None:
            header = found.header
            assert header is not None
            self._rebuild.begin_with(
                TakenSnapshot(found.base, header, log.leader_epochs, self._start_offset)
            )
            self._start_offset = max(self._start_offset, header.s_offset)
            self.snapshot_offset = header.s_offset
        self._bodies = self._begin_bodies()

    def _begin_bodies(self) -> BatchReading:
        """Begin to read S to the end that it had when the load began."""
        return self._reading(self._companion.log, self._start_offset, self._end)

    def _reading(self, log: Log, offset: int, end: LogPosition) -> BatchReading:
        # The CRCs of bodies are checked when they are released, those of notes one by one.
        checks_crc = log is self._partition.log
        return BatchReading(log, offset, end, checks_crc=checks_crc, step_bytes=self.step_bytes)

    def _read_on(self, log: Log, take: Callable[[], None]) -> None:
        reading = self._bodies if self._releases is None else self._releases
        assert reading is not None
        reading.begin_step()
        try:
            while reading.may_go_on():
                take()
        except Flaw as flaw:
            # From now on the log ends before the flaw.
            log.note_flaw(flaw)
            if log.flaw_offset < 0:
                raise

    def _take_bodies(self) -> None:
        bodies = self._bodies
        assert bodies is not None
        walk = bodies.begin()
        while (header := bodies.next(walk)) is not None:
            if header.is_control:
                self._take_note(walk, header)
            elif header.size == HEADER_SIZE:
                self._rebuild.add_emptied(int(header.base_offset))
            elif header.base_offset > self._start_offset:
                # A body at the start, whose note was in a removed segment, is not needed.  The CRC
                # of any other body is checked when it is released.
                self._add_body(header)
            self._note_epoch = int(header.leader_epoch)

    def _take_note(self, walk: BatchWalk, header: BatchHeader) -> None:
        rebuild = self._rebuild
        offset = int(header.base_offset)
        try:
            data = walk.batch_bytes(header)
        except StorageError:
            assert self._bodies is not None
            self._bodies.give_back(header)
            raise
        if has_valid_crc(data, 0, header):
            rebuild.add_note(offset, read_note(data, 0, header), int(walk.batch_position))
        elif rebuild.is_body_expected(offset):
            # The batch is a body whose control bit is flipped.
            self._add_body(header)
        else:
            sentence = f"the note at offset {offset} does not match its CRC"
            rebuild.add_note(offset, UnreadableNote(sentence, is_newer=False))

    def _add_body(self, header: BatchHeader) -> None:
        # Note and body have the same epoch.  The CRC does not cover the epoch: if damage made it
        # larger, the body's release would not count.
        epoch = min(self._note_epoch, int(header.leader_epoch))
        self._rebuild.add_body(
            int(header.base_offset), epoch, int(header.record_count), int(header.size)
        )

    def _begin_releases(self) -> BatchReading:
        """Begin to read P from the last checkpoint on, to its end: a leader never cuts its log."""
        log = self._partition.log
        end = log.end_position()
        self._take_checkpoint(self._partition.high_watermark)
        # The snapshot knows of releases up to there, of which S may have no note yet.
        self.released_end = max(self.released_end, self._rebuild.snapshot_c)
        return self._reading(log, self.read_from, end)

    def _take_checkpoint(self, p_high_watermark: int) -> None:
        """Find the last checkpoint that counts; releases below `p_high_watermark` are final."""
        log = self._partition.log
        self.read_from = self._rebuild.begin_releases(
            log.leader_epochs,
            log.log_start_offset,
            log.written_end_offset,
            p_high_watermark,
            is_s_whole=self._companion.log.flaw_offset < 0,
        )

    def _take_releases(self) -> None:
        releases = self._releases
        assert releases is not None
        log = self._partition.log
        walk = releases.begin()
        while (header := releases.next(walk)) is not None:
            s_offset: i64 = released_s_offset(header)
            if s_offset >= self._foreign_offset:
                releases.end_before(header)
                return
            if s_offset != NO_S_OFFSET:
                offset = int(header.base_offset)
                # The CRC does not cover the epoch: if damage made it smaller, the release would
                # not count.
                epoch = max(int(header.leader_epoch), log.epoch_at(offset))
                if is_instance(header):
                    self._rebuild.add_instance(
                        int(s_offset), epoch, offset, int(header.base_timestamp)
                    )
                else:
                    self._rebuild.add_release(
                        int(s_offset), epoch, offset, int(header.last_offset_delta) + 1
                    )
                self.released_end = max(self.released_end, int(header.last_offset) + 1)


def is_written(log: Log, end_offset: int) -> bool:
    """Return whether all batches below `end_offset` are written, or were lost with the tail."""
    if log.is_being_cut:
        return False
    written_end: int = log.written_end_offset
    return written_end >= end_offset or not log.has_tail
