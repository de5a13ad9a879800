"""Schedule of a partition that is led here: the bodies in its companion log, and their due times.

A client's batch is parked through it: it says what to write, and `partition/leader` writes it.
While the bodies of an earlier life are being read, batches are parked as usual, and nothing is
released.  Hot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.scheduling.body_reader import BodyReader
from tarry.broker.scheduling.checkpoints import ScheduleCheckpoints
from tarry.broker.scheduling.header_wishes import HeaderWishes, IdWishes, RecordWishes, refuse_early
from tarry.broker.scheduling.instances import PartitionInstances, renewed_note
from tarry.broker.scheduling.loading import ScheduleLoad, is_written
from tarry.broker.scheduling.opened_bodies import OpenedBodies
from tarry.broker.scheduling.quota import PendingQuota, PendingTotal
from tarry.broker.scheduling.snapshots.snapshots import ScheduleSnapshots
from tarry.broker.scheduling.waiting_read import WaitingRead, WalkBudget
from tarry.log.segments import LogPosition
from tarry.partition.leader import AppendResult, append_of_any_size
from tarry.partition.leadership import BatchWishes, ParkingDoor
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import BatchCheck, BatchHeader, decode_batch_header
from tarry.schedule.bodies import bodies_of
from tarry.schedule.counts import TopicCounts, UncountedWrites
from tarry.schedule.due import NOT_DELAYED, due_ms
from tarry.schedule.notes import CancelledNote, CheckpointNote, ScheduledNote, ScheduleNote
from tarry.schedule.pending import NEVER, Body
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.release_identity import (
    NO_S_OFFSET,
    instance_batch,
    release_fault,
    released_batch,
)
from tarry.schedule.state import ScheduleState
from tarry.wire.writer import ChunkList

# Steps of a recurring record's release: to find its next time takes as long as so many releases.
_INSTANCE_STEPS: Final = 5


class PartitionSchedule(ParkingDoor):
    """Schedule of one partition, for as long as this broker leads it in one epoch.

    `changed` are the schedules to settle after the turn's write, `opened` the cache of batches
    whose places are released, `budget` the work that this turn may do for consumers, `times` the
    cron expressions, `total` the bytes that wait in all partitions, `snapshots` the hints for the
    next start, `counts` the topic's counts; `on_start_asked` moves the log's start.
    """

    def __init__(
        self,
        companion: ReplicatedLog,
        turn: Turn,
        flushes: Flushes,
        changed: dict[PartitionSchedule, None],
        opened: OpenedBodies,
        *,
        budget: WalkBudget,
        times: RecurringTimes,
        total: PendingTotal,
        on_start_asked: Callable[[ReplicatedLog], None],
        snapshots: ScheduleSnapshots,
        counts: TopicCounts,
    ) -> None:
        self.partition = companion.leadership.records
        self.companion = companion
        self.counts = counts
        self.uncounted = UncountedWrites(counts)
        self._turn = turn
        self._flushes = flushes
        self._changed = changed
        self.reader = BodyReader(companion, opened)
        self._budget = budget
        self._instances = PartitionInstances(companion, turn, times)
        self._quota = PendingQuota(total, self.partition.config, companion.log)
        self._checkpoints = ScheduleCheckpoints(companion, turn, flushes, on_start_asked)
        self.snapshots = snapshots
        self._load: ScheduleLoad | None = None
        # Ends of the two logs when this broker began to lead.  Batches that it had just copied as a
        # follower may not be written yet: they cannot be read until then.
        self._p_end_at_begin: int = self.partition.log.log_end_offset
        self._s_end_at_begin: int = companion.log.log_end_offset
        self.state: ScheduleState | None = None
        # Bodies that were parked while the load is under way.
        self._early: list[Body] = []
        # Sentence why nothing is released and nothing more is parked; "" if there is no reason.
        self._refusal = ""
        # End of this turn's last note that a client's request has appended; -1 without one.
        self._noted_end = -1
        # Note of the batch that is being parked, and the note's size in bytes.
        self._note = ScheduledNote(NEVER)
        self._note_size = 0
        # Effort of the last release; 1 is that of an ordinary batch.
        self.release_steps = 1
        # Offset in P behind the last release.
        self._released_end = 0
        # Due time of the schedule's entry in the queue, in ms since 1970; `NEVER` without one.
        # open: scheduling has the queue
        self.queued_ms = NEVER
        # True if another broker leads now, or the topic is gone.
        self.is_ended = False

    def end(self) -> None:
        """Drop the state; the schedule's entries may stay in the queue until they are due."""
        self.is_ended = True
        if self._load is not None:
            self._load.end()
        self.state = None
        self._load = None
        self._early = []
        self.count_waiting()
        self.reader.forget()

    # -- parking

    def reads_headers(self) -> bool:
        config = self.partition.config
        if config.has_delay_by_header or (config.has_delay and config.is_named_by_key):
            return True
        if self._refusal:
            # The companion log cannot be read: the waiting ids are not known, none is released.
            return False
        return self.state is None or len(self.state.ids) > 0

    def wishes_in(self, header: BatchHeader, content: bytes) -> BatchWishes:
        config = self.partition.config
        now_wall_ms = self._turn.now_wall_ms
        if config.has_delay_by_header:
            return HeaderWishes(header, content, config, now_wall_ms, self._instances.times)
        state = self.state
        waiting = None if state is None else state.ids
        return IdWishes(header, content, config, waiting, now_wall_ms)

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
            assert isinstance(wishes, RecordWishes)
            note = wishes.note_for(check, config, self.state, now_wall_ms)
        elif config.has_delay_by_header or (config.has_delay and config.is_named_by_key):
            refuse_early(check)
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
        if self._names_uncommitted(note):
            check.refuse(
                errors.KAFKA_STORAGE_ERROR,
                "a record with an id of the batch is just being released; send it again",
            )
            return b""
        if not self._quota.may_park(check, note, self.state):
            return b""
        self._begin_companion()
        self._note = note
        data = note.encode(now_wall_ms)
        self._note_size = len(data)
        return data

    def throttle_ms(self) -> int:
        return self._quota.throttle_ms()

    def count_waiting(self) -> None:
        """Report the bytes that wait to the quota."""
        self._quota.count(self.state, is_given_up=self.is_ended or self._refusal != "")

    def on_refused(self, header: BatchHeader) -> None:
        self.counts.add_refused(header.record_count)

    def on_parked(self, header: BatchHeader, s_offset: int) -> None:
        gone = 0 if self.state is None else self.state.records_at(self._note.cancelled)
        self.uncounted.add(s_offset, parked=int(header.record_count), cancelled=gone)
        self._take_parked(header, s_offset)

    def _take_parked(self, header: BatchHeader, s_offset: int) -> None:
        note = self._note
        bodies = bodies_of(
            note,
            s_offset,
            self.companion.leadership.leader_epoch,
            int(header.record_count),
            int(header.size),
            # Position of the note in the segment; negative if note and batch lie in two segments.
            int(self.companion.log.active.size - header.size - self._note_size),
        )
        self._turn.parked += len(bodies)
        state = self.state
        if state is None:
            # Until the load has ended, batches with ids or recurring records are refused.
            assert not note.cancelled
            self._early += bodies
        else:
            if note.cancelled:
                self._checkpoints.note_cancel()
            for cancelled in note.cancelled:
                # The note counts with its batch: without the batch it cancels nothing.
                state.cancel(cancelled, s_offset, s_offset - 1)
            for body in bodies:
                state.park(body, self._turn.now_wall_ms)
        self.count_waiting()
        self._changed[self] = None

    def _names_uncommitted(self, note: ScheduledNote) -> bool:
        """Return whether a batch names a record whose release may still be lost.

        With followers, the batch could be committed and acknowledged before the release.  The next
        leader could then have the batch without the release, though consumers have seen the record.
        Without followers, all writes before the batch are committed before it.
        """
        state = self.state
        if state is None or self.companion.leadership.followers is None:
            return False
        return any(
            state.is_being_released(each.schedule_id) for each in note.places if each.schedule_id
        )

    # -- changes

    @property
    def refusal(self) -> str:
        """Sentence why nothing is released, listed or changed; "" if there is no reason."""
        return self._refusal

    def append_note(self, note: ScheduleNote) -> AppendResult:
        """Append the note of a decision to the companion log."""
        self._begin_companion()
        data = note.encode(self._turn.now_wall_ms)
        result = append_of_any_size(self.companion, data, self._turn)
        if result.error_code == errors.NONE:
            self._checkpoints.note_cancel()
            self._noted_end = result.required_offset
            self._note_size = len(data)
            self._flushes.touch(self.companion)
            self._changed[self] = None
        return result

    def append_witness(self) -> AppendResult:
        """Append a note without content, or use this turn's last note: once it is committed, it
        proves that this broker led at its append."""
        if self._noted_end < 0:
            return self.append_note(CancelledNote(NO_S_OFFSET))
        result = AppendResult(errors.NONE)
        result.required_offset = self._noted_end
        return result

    def park_again(self, note: ScheduledNote, batch: bytes) -> AppendResult:
        """Park a waiting batch again; its note cancels the body that it was until now."""
        result = self.append_note(note)
        if result.error_code != errors.NONE:
            return result
        result = append_of_any_size(self.companion, batch, self._turn)
        if result.error_code == errors.NONE:
            self._noted_end = result.required_offset
            self._note = note
            self._take_parked(decode_batch_header(batch, 0), result.base_offset)
        return result

    def _begin_companion(self) -> None:
        log = self.companion.log
        if log.log_end_offset == log.log_start_offset:
            # None of the batches that P has now is a release of this log: a checkpoint says so.
            self.append_checkpoint(self._checkpoints.first())

    # -- what consumers see

    def reading_code(self) -> int:
        if self.state is not None:
            return errors.NONE
        # Clients refresh their metadata and retry; some of them report a storage error.
        return errors.KAFKA_STORAGE_ERROR if self._refusal else errors.NOT_LEADER_OR_FOLLOWER

    def read_waiting(
        self, offset: int, end: LogPosition, size_max: int, *, at_least_one: bool
    ) -> ChunkList | None:
        state = self.state
        assert state is not None
        read = WaitingRead(self.companion, state, self._budget, self._turn.now_wall_ms)
        return read.run(offset, end, size_max, at_least_one=at_least_one)

    # -- loading

    def can_load(self) -> bool:
        """Return whether both logs can be read: copied batches are written, no cut is under way."""
        if self._load is not None or self.state is not None:
            return True
        p_end, s_end = self._p_end_at_begin, self._s_end_at_begin
        return is_written(self.partition.log, p_end) and is_written(self.companion.log, s_end)

    def load(self) -> bool:
        """Read on the bodies of an earlier life, once `can_load`; return True when all are read."""
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
            # The bodies wait on the disk for a start that can read the log.
            self._early = []
            self._load = None
            self.count_waiting()
            raise
        state = load.state
        assert state is not None
        for body in self._early:
            state.park(body, self._turn.now_wall_ms)
        self._early = []
        state.commit_parked(self.companion.high_watermark)
        load.tell_flaws()
        state.count_in(self.counts)
        self._checkpoints.begin(load)
        self.snapshots.lead(state, load.snapshot_offset)
        self._released_end = load.released_end
        self.state = state
        self._load = None
        self.count_waiting()
        return True

    # -- what becomes of appends

    def settle(self) -> bool:
        """Undo what this turn's write has lost; return False if a release, or the note that a
        recurring record has ended, has to be repeated.
        """
        self._noted_end = -1
        s_end: int = self.companion.log.written_end_offset
        p_end: int = self.partition.log.written_end_offset
        early = self._early
        while early and early[-1].s_offset >= s_end:
            early.pop()
        self._checkpoints.rollback(s_end)
        self.uncounted.settle(s_end)
        state = self.state
        if state is None:
            return True
        has_lost_end = state.rollback_parked(s_end)
        # S's high watermark may have passed a body meanwhile that waits again: its cancel is lost.
        state.commit_parked(self.companion.high_watermark)
        if self._released_end <= p_end:
            return not has_lost_end
        self._released_end = p_end
        state.rollback_released(p_end)
        return False

    def on_moved(self, log: ReplicatedLog) -> None:
        """Commit releases or parked bodies: the high watermark of one of the two logs has moved."""
        state = self.state
        if state is None:
            return
        high_watermark = log.high_watermark
        if log is self.partition:
            state.commit_released(high_watermark)
            return
        state.commit_parked(high_watermark)
        self._checkpoints.commit(state, high_watermark)

    # -- releasing

    def next_due_ms(self) -> int:
        """Return when the next body is due, in ms since 1970; `NEVER` if none may be released."""
        if self.companion.is_behind_epoch() and self.companion.log.flaw_offset < 0:
            # A body that an earlier leader acknowledged may be due first, and is not pending here.
            return NEVER
        return NEVER if self.state is None else self.state.next_due_ms()

    def release_next(self) -> int:
        """Release the body that is due first, or set it aside if it is damaged.

        Return its size, or the bytes that were read for it if they are more; 0 if none is due, -1
        if the partition refuses the append now.
        `StorageError` or `CorruptData`: it cannot be read or appended now, and still waits.
        """
        state = self.state
        assert state is not None
        body = state.take_due(self._turn.now_wall_ms)
        if body is None:
            return 0
        read_before = self.reader.bytes_read
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
        return max(size, self.reader.bytes_read - read_before)

    def _release(self, state: ScheduleState, body: Body) -> bool:
        is_told = body.batch_offset in self.reader.damaged_batches
        if is_told or self.companion.log.has_flaw_before(body.s_offset):
            # The damage was reported before.
            state.set_aside(body)
            return True
        self._changed[self] = None
        try:
            if isinstance(body, RecurringBody) and not self._instances.is_due(
                state, body, self.append_note
            ):
                return True
            data = self.reader.read_due(body)
        except CorruptData as error:
            # One damaged batch must not hold back those that are due after it.
            state.set_aside(body)
            self.reader.tell_damaged(error)
            return True
        # The count from the companion log was read without a CRC; the batch's header was checked.
        body.record_count = int(decode_batch_header(data, 0).record_count)
        make = instance_batch if isinstance(body, RecurringBody) else released_batch
        batch = make(data, body.s_offset)
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

    # -- checkpoints

    def covered_offset(self) -> int:
        state = self.state
        covered_offset = self._checkpoints.covered_offset
        if state is None or self._released_end > covered_offset:
            return covered_offset
        if state.count and not self._checkpoints.is_last_known:
            # A later checkpoint may be lost: the next start has to read P from this one on.
            return covered_offset
        return self.partition.log.log_end_offset

    def needs_checkpoint(self) -> bool:
        """Return whether a checkpoint is needed, for releases behind the last or to free room in S.

        Behind a flaw of the companion log no checkpoint can be written.
        """
        if self.companion.log.flaw_offset >= 0:
            return False
        checkpoints = self._checkpoints
        is_behind = self._released_end > checkpoints.up_to
        return is_behind or (self.state is not None and checkpoints.holds_cancelled(self.state))

    def checkpoint(self) -> CheckpointNote | None:
        """Return a checkpoint of the committed releases; None if none is needed or possible now."""
        return None if self.state is None else self._checkpoints.take(self.state)

    def append_checkpoint(self, checkpoint: CheckpointNote) -> None:
        """Append a checkpoint to the companion log, unless the disk refuses it."""
        if self._checkpoints.append(checkpoint):
            self._changed[self] = None

    def renew_recurring(self) -> None:
        """Park the recurring records again that keep the first segment of S."""
        state = self.state
        may_act = self.partition.leadership.may_act()
        if state is None or not may_act or self.companion.log.flaw_offset >= 0:
            return
        for body in self._instances.holders(state, self._checkpoints.first_needed(state)):
            try:
                batch = self.reader.read_uncompressed(body)
            except (CorruptData, StorageError):
                continue  # The release of the body reports the damage.
            if self.park_again(renewed_note(body), batch).error_code != errors.NONE:
                return
