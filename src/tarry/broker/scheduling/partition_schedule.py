"""Schedule of a partition that is led here: what waits in its companion log, and until when.

It is the door through which a client's batch is parked.  While what an earlier life has left is
being read, batches are parked as ever, and nothing is released.  Hot.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.limits import SCHEDULE_FLAWS_KEPT
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.scheduling.header_wishes import HeaderWishes
from tarry.broker.scheduling.instances import PartitionInstances, renewed_note
from tarry.broker.scheduling.loading import ScheduleLoad
from tarry.broker.scheduling.opened_bodies import OpenedBodies
from tarry.log.batch_walk import Flaw
from tarry.log.log import Log
from tarry.partition.leader import append_of_any_size
from tarry.partition.leadership import BatchWishes, ParkingDoor
from tarry.partition.reader import CONSUMER
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import BatchCheck, BatchHeader, checked_header, decode_batch_header
from tarry.schedule.bodies import bodies_of
from tarry.schedule.due import NOT_DELAYED, due_ms
from tarry.schedule.notes import CheckpointNote, ScheduledNote
from tarry.schedule.opened import OpenedBody
from tarry.schedule.pending import NEVER, WHOLE, Body
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.release import instance_batch, release_fault, released_batch
from tarry.schedule.state import ScheduleState

# A region of one batch, whatever its size.
WHOLE_BATCH: Final = 0
# Batches that are released in the time in which the next time of a recurring record is found.
_INSTANCE_STEPS: Final = 5

logger = logging.getLogger("tarry.broker")


class PartitionSchedule(ParkingDoor):
    """Schedule of one partition, for as long as this broker leads it in one epoch.

    `changed` has the schedules that are to be settled after the turn's write, `opened` the batches
    that were read to release places of them, `times` the cron expressions.
    """

    def __init__(
        self,
        companion: ReplicatedLog,
        turn: Turn,
        flushes: Flushes,
        changed: dict[PartitionSchedule, None],
        opened: OpenedBodies,
        times: RecurringTimes,
    ) -> None:
        self.partition = companion.leadership.records
        self.companion = companion
        self._turn = turn
        self._flushes = flushes
        self._changed = changed
        self._opened = opened
        self._instances = PartitionInstances(companion, turn, flushes, times)
        self._load: ScheduleLoad | None = None
        # Ends of the two logs when this broker began to lead.  Batches that it had just copied as a
        # follower may not be written yet, and cannot be read before.
        self._p_end_at_begin: int = self.partition.log.log_end_offset
        self._s_end_at_begin: int = companion.log.log_end_offset
        self.state: ScheduleState | None = None
        # Parked while the load is under way.
        self._early: list[Body] = []
        # Why nothing is released and nothing more is parked; "" if that is not so.
        self._refusal = ""
        # Of the batch that is being parked.
        self._note = ScheduledNote(NEVER)
        # Bytes of the companion log that the release under way has read.
        self._read_bytes = 0
        # Effort of the last release, in those of ordinary batches.
        self.release_steps = 1
        # Where the last release ends in P.
        self._released_end = 0
        self._covered_offset = self.partition.log.log_start_offset
        # The note of the last checkpoint that counts, which S has to keep.
        self._kept_offset = companion.log.log_start_offset
        # Where another one may have stood that cannot be read.
        self._unread_offset = -1
        # The last checkpoint: up to where it speaks of P, and where its note ends in S.
        self._checkpoint_c = -1
        self._checkpoint_end = 0
        # Damaged batches of which the broker's log was told.
        self._told = 0
        # When it stands in the queue of what is due; the clock of the calendar.
        # open: scheduling has the queue
        self.queued_ms = NEVER
        # Another broker leads, or the topic is gone.
        self.is_ended = False

    def end(self) -> None:
        """Give up what is known: the queue may have the schedule until its batches were due."""
        self.is_ended = True
        self.state = None
        self._load = None
        self._early = []
        self._opened.forget(self.companion)

    # -- parking

    def wishes_in(self, header: BatchHeader, content: bytes) -> BatchWishes:
        return HeaderWishes(
            header,
            content,
            self.partition.config,
            self._turn.now_wall_ms,
            self._instances.times,
        )

    def note_for(self, check: BatchCheck, wishes: BatchWishes | None, now_wall_ms: int) -> bytes:
        header = check.header
        assert header is not None
        fault = release_fault(header)
        if fault:
            check.record_errors = [(0, fault)]
            check.refuse(errors.INVALID_RECORD, fault)
            return b""
        config = self.partition.config
        note: ScheduledNote | None = None
        if wishes is not None:
            assert isinstance(wishes, HeaderWishes)
            note = wishes.note_for(check, config, self.state, now_wall_ms)
        elif config.has_delay_by_header:
            check.refuse(
                errors.KAFKA_STORAGE_ERROR,
                "the batch was on its way when the topic began to delay records by their headers; "
                "send it again",
            )
            return b""
        else:
            due = int(due_ms(config, header, now_wall_ms))
            if due != NOT_DELAYED:
                note = ScheduledNote(due)
        if note is None:
            return b""
        if self._refusal:
            check.refuse(errors.KAFKA_STORAGE_ERROR, self._refusal)
            return b""
        log = self.companion.log
        if log.log_end_offset == log.log_start_offset:
            # The batches that P holds by now have released nothing of this log: note that.
            self.append_checkpoint(self._first_checkpoint())
        self._note = note
        return note.encode(now_wall_ms)

    def on_parked(self, header: BatchHeader, s_offset: int) -> None:
        note = self._note
        bodies = bodies_of(
            note,
            s_offset,
            self.companion.leadership.leader_epoch,
            int(header.record_count),
            int(header.size),
        )
        state = self.state
        if state is None:
            # Batches with ids, and those with records that recur, were refused.
            assert not note.cancelled
            self._early += bodies
        else:
            for cancelled in note.cancelled:
                # The note stands right before its batch.
                state.cancel(cancelled, s_offset - 1)
            for body in bodies:
                state.park(body, self._turn.now_wall_ms)
        self._changed[self] = None

    # -- loading

    def can_load(self) -> bool:
        """Return whether both logs can be read: what was just copied is written, no cut goes on."""
        if self._load is not None or self.state is not None:
            return True
        p_end, s_end = self._p_end_at_begin, self._s_end_at_begin
        return _is_written(self.partition.log, p_end) and _is_written(self.companion.log, s_end)

    def load(self) -> bool:
        """Read on what an earlier life has left, once `can_load`; True when all is known."""
        if self.state is not None:
            return True
        load = self._load
        if load is None:
            load = self._load = ScheduleLoad(self.partition, self.companion)
            # The load reads the batches below `s_end_offset`, also those parked meanwhile.
            self._early = [body for body in self._early if body.s_offset >= load.s_end_offset]
        try:
            if not load.step():
                return False
        except CorruptData as error:
            self._refusal = (
                f"the scheduled records of {self.partition.name} cannot be read, none of them is "
                f"released: {error}"
            )
            # They wait on the disk for a start that can read it.
            self._early = []
            raise
        state = load.state
        assert state is not None
        for body in self._early:
            state.park(body, self._turn.now_wall_ms)
        self._early = []
        state.commit_parked(self.companion.high_watermark)
        for sentence in load.flaws:
            logger.error("the scheduled records of %s: %s", self.partition.name, sentence)
        if load.flaw_count:
            logger.error(
                "the scheduled records of %s: %d faults in all; the log of what waits keeps what "
                "they hold back, and all that came after it, until a start can read it. Deleting "
                "the topic frees that",
                self.partition.name,
                load.flaw_count,
            )
        self._covered_offset = load.read_from
        self._unread_offset = load.unread_offset
        self._released_end = load.released_end
        self.state = state
        self._load = None
        return True

    # -- what becomes of appends

    def settle(self) -> bool:
        """Take back what this turn's write has not kept; False if a release, or the note that a
        recurring record has ended, is to be repeated."""
        s_end: int = self.companion.log.written_end_offset
        p_end: int = self.partition.log.written_end_offset
        early = self._early
        while early and early[-1].s_offset >= s_end:
            early.pop()
        if self._checkpoint_end > s_end:
            self._checkpoint_c = -1
        state = self.state
        if state is None:
            return True
        has_lost_end = state.rollback_parked(s_end)
        # The companion log may have passed, meanwhile, what waits again since its cancel is lost.
        state.commit_parked(self.companion.high_watermark)
        if self._released_end <= p_end:
            return not has_lost_end
        self._released_end = p_end
        state.rollback_released(p_end)
        return False

    def on_moved(self, log: ReplicatedLog) -> None:
        """Go on with what counts by now of one of the two logs."""
        state = self.state
        if state is None:
            return
        high_watermark = log.high_watermark
        if log is self.partition:
            state.commit_released(high_watermark)
            return
        state.commit_parked(high_watermark)
        if self._checkpoint_c >= 0 and self._checkpoint_end <= high_watermark:
            self._covered_offset = max(self._covered_offset, self._checkpoint_c)
            self._kept_offset = self._checkpoint_end - 1
            self._checkpoint_c = -1
            self._free_room(state)

    # -- releasing

    def next_due_ms(self) -> int:
        """Return when the next batch is due, by the calendar."""
        return NEVER if self.state is None else self.state.next_due_ms()

    def release_next(self) -> int:
        """Release the batch that is due first, or set it aside if it is damaged.

        Return its size, or that of the batch which was read for it; 0 if none is due, -1 if the
        partition does not take it now.
        `StorageError` or `CorruptData`: it cannot be read or appended now, and still waits.
        """
        state = self.state
        assert state is not None
        body = state.take_due(self._turn.now_wall_ms)
        if body is None:
            return 0
        self._read_bytes = 0
        self.release_steps = _INSTANCE_STEPS if isinstance(body, RecurringBody) else 1
        is_settled = False
        try:
            is_settled = self._release(state, body)
        finally:
            if not is_settled:
                state.put_back(body)
        if not is_settled:
            return -1
        size = 0 if isinstance(body, RecurringBody) else body.size
        return max(size, self._read_bytes)

    def _release(self, state: ScheduleState, body: Body) -> bool:
        if self.companion.log.has_flaw_before(body.s_offset):
            # The log has said so.
            state.set_aside(body)
            return True
        self._changed[self] = None
        try:
            if isinstance(body, RecurringBody) and not self._instances.is_due(state, body):
                return True
            data = self._read(body) if body.place == WHOLE else self._read_place(body)
        except CorruptData as error:
            # One damaged batch must not hold back those that are due after it.
            state.set_aside(body)
            self._tell_damaged(error)
            return True
        # The count in the companion log was read without its CRC; that of the checked batch counts.
        body.record_count = int(decode_batch_header(data, 0).record_count)
        if isinstance(body, RecurringBody):
            batch = instance_batch(data, body.s_offset)
        else:
            batch = released_batch(data, body.s_offset)
        result = append_of_any_size(self.partition, batch, self._turn)
        if result.error_code != errors.NONE:
            return False
        if isinstance(body, RecurringBody):
            self._instances.note_release(state, body, result.base_offset)
        else:
            state.add_release(body, result.base_offset)
        self._released_end = result.required_offset
        self._flushes.touch(self.partition)
        return True

    def _tell_damaged(self, error: CorruptData) -> None:
        self._told += 1
        if self._told <= SCHEDULE_FLAWS_KEPT:
            logger.error(
                "the scheduled records of %s: a batch that is due is damaged and was not released: "
                "%s. It is tried again when the broker starts anew, and until then the log of what "
                "waits keeps it and all that came after it; deleting the topic frees that",
                self.partition.name,
                error,
            )
        elif self._told == SCHEDULE_FLAWS_KEPT + 1:
            logger.error(
                "the scheduled records of %s: more batches are damaged; no more of them are named",
                self.partition.name,
            )

    def _read(self, body: Body) -> bytes:
        data = self._read_batch(body.s_offset, body.size)
        header = checked_header(data, 0)
        if header.base_offset != body.s_offset or header.size != len(data):
            raise CorruptData(f"another batch lies at offset {body.s_offset}")
        return data

    def _read_place(self, body: Body) -> bytes:
        """Read a place of a batch, as the batch that it is released in."""
        opened = self._open(body)
        config = self.partition.config
        codec, level = config.compression_codec, config.compression_level
        if isinstance(body, RecurringBody):
            return opened.instance_of(body.place, body.instance_ms, codec, level)
        return opened.batch_of(body.place, body.record_count, body.due_ms, codec, level)

    def _open(self, body: Body) -> OpenedBody:
        """Read the batch of which a body is a place."""
        opened = self._opened.get(self.companion, body.batch_offset)
        if opened is None:
            opened = OpenedBody(self._read_batch(body.batch_offset, WHOLE_BATCH))
            if opened.base_offset != body.batch_offset:
                raise CorruptData(f"another batch lies at offset {body.batch_offset}")
            self._opened.keep(self.companion, opened)
        return opened

    def _read_batch(self, offset: int, size: int) -> bytes:
        companion = self.companion
        log = companion.log
        end = companion.readable_end(CONSUMER)
        try:
            region = log.read(offset, end, size, True)
        except Flaw:
            if log.has_flaw_before(offset):
                raise
            # It lies behind the batch, and the log is read up to there now.
            region = log.read(offset, end, size, True)
        if region is None:
            raise CorruptData(f"the batch at offset {offset} is not there")
        region_size: int = region.size
        data = region.file.read(region.position, min(region_size, size) if size else region_size)
        self._read_bytes += len(data)
        return data

    # -- checkpoints

    def covered_offset(self) -> int:
        state = self.state
        if state is None or self._released_end > self._covered_offset:
            return self._covered_offset
        is_whole = self.companion.log.flaw_offset < 0 and self._unread_offset <= self._kept_offset
        if state.count and not is_whole:
            # A later checkpoint may be lost.  The next start has to see for itself that nothing
            # was released behind this one.
            return self._covered_offset
        return self.partition.log.log_end_offset

    def needs_checkpoint(self) -> bool:
        """Return whether something was released that the last checkpoint does not speak of.

        Behind a flaw of the companion log no checkpoint can be written.
        """
        has_flaw = self.companion.log.flaw_offset >= 0
        return not has_flaw and self._released_end > self._checkpointed()

    def _checkpointed(self) -> int:
        """Return up to where the last checkpoint speaks of the partition."""
        return max(self._covered_offset, self._checkpoint_c)

    def checkpoint(self) -> CheckpointNote | None:
        """Return a checkpoint of what is released for good by now; None if there is none."""
        state = self.state
        if state is None or not self.partition.leadership.may_act():
            return None
        if self.companion.log.flaw_offset >= 0:
            # It could not be written, and what lies behind the flaw is not known.
            return None
        c = self.partition.high_watermark
        if c <= self._checkpointed():
            return None
        state.commit_released(c)
        return state.checkpoint(c, self._epoch_before(c))

    def append_checkpoint(self, checkpoint: CheckpointNote) -> None:
        """Append a checkpoint to the companion log; what the disk refuses is left out."""
        note = checkpoint.encode(self._turn.now_wall_ms)
        result = append_of_any_size(self.companion, note, self._turn)
        if result.error_code == errors.NONE:
            self._checkpoint_c = checkpoint.c
            self._checkpoint_end = result.required_offset
            self._flushes.touch(self.companion)
            self._changed[self] = None

    def renew_recurring(self) -> None:
        """Park recurring records anew that hold the first segment of S."""
        state = self.state
        log = self.companion.log
        if state is None or not self.partition.leadership.may_act() or log.flaw_offset >= 0:
            return
        first = min(state.first_offset() - 1, self._kept_offset)
        for body in self._instances.holders(state, first):
            try:
                batch = self._open(body).batch_of(body.place, 1, None, 0, 0)
            except (CorruptData, StorageError):
                # Its release will tell.
                continue
            note = renewed_note(body)
            for each in (note.encode(self._turn.now_wall_ms), batch):
                result = append_of_any_size(self.companion, each, self._turn)
                if result.error_code != errors.NONE:
                    return
            self._note = note
            self.on_parked(decode_batch_header(batch, 0), result.base_offset)
            self._flushes.touch(self.companion)

    def _free_room(self, state: ScheduleState) -> None:
        """Let S begin with the first segment that has a body which is still needed, or the last
        checkpoint.
        """
        log = self.companion.log
        if log.flaw_offset >= 0:
            return
        # A body stands behind its note.
        first = min(state.first_offset() - 1, self._kept_offset)
        segment = log.segment_order.holding(first)
        if segment.base_offset > log.coming_start_offset:
            log.ask_for_start(segment.base_offset)

    def _first_checkpoint(self) -> CheckpointNote:
        c = self.partition.high_watermark
        return CheckpointNote(c, self._epoch_before(c), [], [])

    def _epoch_before(self, c: int) -> int:
        return self.partition.log.epoch_at(c - 1) if c > 0 else -1


def _is_written(log: Log, end_offset: int) -> bool:
    """Return whether each batch below this offset is written, or was lost with the tail."""
    if log.is_being_cut:
        return False
    written_end: int = log.written_end_offset
    return written_end >= end_offset or not log.has_tail
