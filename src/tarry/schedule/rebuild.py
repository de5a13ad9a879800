"""Rebuild of a schedule when a broker begins to lead, out of the logs S and P of a partition.

The companion log S is read whole, note by note and body by body, in its order; then the last
checkpoint that counts is taken, and P is read from there to its end.  A release counts for a body
only if its leader epoch is not below the body's: after an unclean election s-offsets are given
again.

What the checkpoint says is done was released or cancelled.  If compaction has dropped batches of S
behind such a body, its cancel may be among them, so it is not known as released.

A recurring body is not done by a release.  Its last instance is the later one of the checkpoint and
of P's releases.

A snapshot, if there is one, stands for S before its offset and for the last checkpoint before that
offset; S is read from there on.  Hot.

    rebuild.add_note(...), rebuild.add_body(...)      each batch of S
    rebuild.begin_releases(...)                       from which offset on P is to be read
    rebuild.add_release(...), rebuild.add_instance(...)    each release from there to P's end
    state = rebuild.finish(s_high_watermark)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from tarry.base.errors import CorruptData
from tarry.base.limits import (
    CHECKPOINTS_KEPT_PER_EPOCH,
    SCHEDULE_FLAWS_KEPT,
    SCHEDULE_RELEASED_KEPT,
)
from tarry.log.index.epoch_index import EpochIndex
from tarry.schedule.bodies import bodies_of
from tarry.schedule.entries import NO_POSITION
from tarry.schedule.noted_checkpoint import NotedCheckpoint, counts
from tarry.schedule.notes import (
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    ScheduleNote,
    UnreadableNote,
)
from tarry.schedule.pending import UNKNOWN, Body, PendingBodies
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.release_identity import NO_S_OFFSET
from tarry.schedule.state import OpenInstance, OpenRelease, ScheduleState
from tarry.schedule.taken_snapshot import TakenSnapshot
from tarry.schedule.watermarks import ScheduleWatermarks

_TAKEN_AT_ONCE: Final = 10_000


class Rebuild:
    """Rebuild of one schedule.  `flaws` are sentences about bodies that cannot be released: the
    first of them, `flaw_count` in all."""

    def __init__(self) -> None:
        self.flaws: list[str] = []
        self.flaw_count = 0
        # Bodies that S has, by s-offset, in the order of S, and those of them that recur.
        self._bodies: dict[int, Body] = {}
        self._recurring: dict[int, RecurringBody] = {}
        # Bodies that cannot be released, with the due time `UNKNOWN`.
        self._damaged: dict[int, Body] = {}
        # Damaged bodies, by s-offset, that recur: P has instances of them.
        self._damaged_recurring: dict[int, None] = {}
        # Offset in S of the last unreadable batch that may be a checkpoint, and of the one before.
        self.unread_offset = NO_S_OFFSET
        self._unread_before = NO_S_OFFSET
        self._cancelled: dict[int, None] = {}
        # Cancelled bodies that have recurred and ended by themselves.
        self._ended: dict[int, None] = {}
        # The last checkpoints of each epoch of c - 1, oldest first.
        self._checkpoints: dict[int, list[NotedCheckpoint]] = {}
        self._taken: NotedCheckpoint | None = None
        self._watermarks = ScheduleWatermarks([])
        self._p_high_watermark = 0
        # Releases at or past P's high watermark, in the order of P.
        self._releases: list[OpenRelease] = []
        # The last releases below P's high watermark.
        self._released: deque[OpenRelease] = deque(maxlen=SCHEDULE_RELEASED_KEPT)
        # Ids of these releases that no later body has: the s-offset of the last body of each.
        self._released_ids: dict[bytes, int] = {}
        # The state that is being filled, the bodies that are not in it yet, and S's high watermark
        # when filling began.
        self._state: ScheduleState | None = None
        self._left: Iterator[Body] = iter(())
        self._is_filled = False
        self._s_high_watermark = 0
        # The scheduled note that was read last, the offset that its body must have, and the note's
        # position in its segment.
        self._scheduled: ScheduledNote | None = None
        self._body_offset = NO_S_OFFSET
        self._note_position = NO_POSITION
        # Offset behind the batch of S that was read last, -1 before the first one; and the offset
        # behind the last hole, which compaction has left.
        self._next_offset = -1
        self.hole_end = 0
        # The snapshot that this rebuild begins with; None without one.
        self._snapshot: TakenSnapshot | None = None

    def begin_with(self, snapshot: TakenSnapshot) -> None:
        """Begin with a snapshot, which counts here (`counts`): S is read from its offset on."""
        self._snapshot = snapshot
        self._next_offset = snapshot.s_offset
        self.hole_end = snapshot.hole_end

    # -- S

    def add_note(self, offset: int, note: ScheduleNote, position: int = NO_POSITION) -> None:
        """Take the note at this offset of S, and at this position in its segment."""
        self._pass(offset, offset + 1)
        self._scheduled = None
        self._note_position = position
        self._body_offset = NO_S_OFFSET
        if isinstance(note, ScheduledNote):
            self._scheduled = note
            self._body_offset = offset + 1
        elif isinstance(note, CancelledNote):
            self._cancelled[note.s_offset] = None
            if note.has_come:
                self._ended[note.s_offset] = None
        elif isinstance(note, CheckpointNote):
            self._add_checkpoint(offset, note)
        elif isinstance(note, UnreadableNote):
            self._add_unread(offset)
            self._add_flaw(note.sentence)

    def is_body_expected(self, s_offset: int) -> bool:
        """Return whether the batch at this offset of S must be a body: its note lies before it."""
        return self._body_offset == s_offset

    def add_body(self, s_offset: int, leader_epoch: int, record_count: int, size: int) -> None:
        """Take the body at this offset of S: the batch behind its note."""
        self._pass(s_offset, s_offset + record_count)
        note = self._scheduled
        body_offset = self._body_offset
        self._scheduled = None
        self._body_offset = NO_S_OFFSET
        if note is None or body_offset != s_offset:
            if self.unread_offset == s_offset - 1:
                # The unreadable batch right before a body was its note, and no checkpoint.
                self.unread_offset = self._unread_before
            else:
                # The batch may be a checkpoint whose control bit is flipped.
                self._add_unread(s_offset)
            self._damaged[s_offset] = Body(s_offset, UNKNOWN, leader_epoch, record_count, size)
            self._add_flaw(f"the batch at offset {s_offset} has no note that says when it is due")
        else:
            self._add_noted(note, s_offset, leader_epoch, record_count, size)

    def add_emptied(self, s_offset: int) -> None:
        """Take the batch without records that compaction has left in place of a body that is done.

        The note right before it may still cancel other bodies.
        """
        # Other batches may have gone with the records, so what follows lies behind a hole.
        self._pass(s_offset, s_offset)
        note = self._scheduled
        if note is not None and self._body_offset == s_offset:
            self._take_cancelled(note)
        self._scheduled = None
        self._body_offset = NO_S_OFFSET

    def _pass(self, offset: int, next_offset: int) -> None:
        """Note that the batch at this offset of S is read, and where the next one should begin."""
        if self._next_offset not in (-1, offset):
            self.hole_end = offset
        self._next_offset = next_offset

    def _take_cancelled(self, note: ScheduledNote) -> None:
        for cancelled in note.cancelled:
            self._cancelled[cancelled] = None

    def _add_noted(
        self, note: ScheduledNote, s_offset: int, leader_epoch: int, record_count: int, size: int
    ) -> None:
        self._take_cancelled(note)
        try:
            bodies = bodies_of(
                note, s_offset, leader_epoch, record_count, size, self._note_position
            )
        except CorruptData as error:
            self._damaged[s_offset] = Body(s_offset, UNKNOWN, leader_epoch, record_count, size)
            self._add_flaw(f"the batch at offset {s_offset} cannot be released: {error}")
            return
        for body in bodies:
            self._bodies[body.s_offset] = body
            if isinstance(body, RecurringBody):
                self._recurring[body.s_offset] = body

    def _add_checkpoint(self, offset: int, checkpoint: CheckpointNote) -> None:
        kept = self._checkpoints.setdefault(checkpoint.c_epoch, [])
        kept.append(NotedCheckpoint(offset, checkpoint))
        if len(kept) > CHECKPOINTS_KEPT_PER_EPOCH:
            del kept[0]

    def _add_unread(self, offset: int) -> None:
        self._unread_before = self.unread_offset
        self.unread_offset = offset

    def _add_flaw(self, sentence: str) -> None:
        self.flaw_count += 1
        if len(self.flaws) < SCHEDULE_FLAWS_KEPT:
            self.flaws.append(sentence)

    # -- P

    def begin_releases(
        self,
        epochs: EpochIndex,
        p_start_offset: int,
        p_end_offset: int,
        p_high_watermark: int,
        *,
        is_s_whole: bool = True,
    ) -> int:
        """Take the last checkpoint that counts; return the offset from which P is to be read.

        A checkpoint counts if P has the record at c - 1 in the checkpoint's epoch.  Without a
        checkpoint, P is to be read from its start.  Releases below P's high watermark are final.
        `CorruptData` if a later checkpoint may be lost (`is_s_whole`: S was read to its end) and P
        does not reach back to the one before: P may have lost releases of bodies that seem to wait.
        """
        taken: NotedCheckpoint | None = None
        for kept in self._checkpoints.values():
            for noted in reversed(kept):
                if taken is not None and noted.offset < taken.offset:
                    break
                if counts(noted.checkpoint, epochs, p_start_offset, p_end_offset):
                    taken = noted
                    break
        if taken is None and self._snapshot is not None:
            taken = self._snapshot.checkpoint
        taken_offset = NO_S_OFFSET if taken is None else taken.offset
        taken_c = 0 if taken is None else taken.checkpoint.c
        if p_start_offset > taken_c and (not is_s_whole or self.unread_offset > taken_offset):
            raise CorruptData(
                f"the companion log is damaged behind offset {max(taken_offset, 0)}, and the "
                f"partition, which begins at offset {p_start_offset}, does not tell any more what "
                f"was released from offset {taken_c} on"
            )
        self._taken = taken
        self._p_high_watermark = p_high_watermark
        if taken is None:
            return p_start_offset
        self._watermarks = ScheduleWatermarks(taken.checkpoint.watermarks)
        if self.snapshot_c > taken.checkpoint.c:
            # The snapshot lacks what was released between the two.
            self._add_snapshot_watermarks()
        self._take_recurrences(taken)
        return max(taken.checkpoint.c, p_start_offset)

    @property
    def last_passed_over(self) -> CheckpointNote | None:
        """Return the last checkpoint of S if it does not count; None if it does, or without one."""
        last: NotedCheckpoint | None = None
        for kept in self._checkpoints.values():
            if last is None or kept[-1].offset > last.offset:
                last = kept[-1]
        if last is None or (self._taken is not None and self._taken.offset >= last.offset):
            return None
        return last.checkpoint

    @property
    def snapshot_c(self) -> int:
        """Return up to where the snapshot speaks of P; -1 without one."""
        return -1 if self._snapshot is None else self._snapshot.checkpoint.checkpoint.c

    @property
    def taken_c(self) -> int:
        """Return up to where the taken checkpoint or the snapshot speaks of P; 0 without both."""
        taken_c = 0 if self._taken is None else self._taken.checkpoint.c
        return max(taken_c, self.snapshot_c)

    @property
    def rests_on_snapshot(self) -> bool:
        """Return whether no note of S, only the snapshot, says what was released before."""
        return self._snapshot is not None and self._taken is self._snapshot.checkpoint

    def _add_snapshot_watermarks(self) -> None:
        assert self._snapshot is not None
        for each in self._snapshot.checkpoint.checkpoint.watermarks:
            if each.s_offset >= 0:
                self._watermarks.add(Body(each.s_offset, each.due_ms, 0, 1, 0))

    def _take_recurrences(self, taken: NotedCheckpoint) -> None:
        """Set each recurring body's last instance to the one that P had below c."""
        noted = {each.s_offset: each for each in taken.checkpoint.recurrences}
        for body in self._recurring.values():
            if body.s_offset > taken.offset:
                continue
            each = noted.get(body.s_offset)
            if each is not None:
                body.last_ms = each.last_ms
                body.released_count = each.count
            else:
                # A release of Tarry that knows no recurring records wrote the checkpoint.  Which
                # instances P had is not known: skip those due before, so that none comes twice.
                body.last_ms = max(body.last_ms, taken.checkpoint.noted_ms)
            body.commit(body.last_ms, body.released_count, NO_S_OFFSET)

    def add_release(
        self, s_offset: int, leader_epoch: int, base_offset: int, record_count: int
    ) -> None:
        """Take a released batch of P, with the leader epoch and the offset that it has there.

        The count of records is taken from P: the count in S may be damaged.
        """
        snapshot = self._snapshot
        if snapshot is not None and s_offset < snapshot.s_offset:
            found = snapshot.release(s_offset, leader_epoch)
            if found is not None:
                found.record_count = record_count
                if base_offset + record_count <= self._p_high_watermark:
                    snapshot.base.ids.drop(found)
                self._add_found(found, base_offset)
            return
        bodies = self._bodies if s_offset in self._bodies else self._damaged
        body = bodies.get(s_offset)
        if body is None or leader_epoch < body.leader_epoch or isinstance(body, RecurringBody):
            return
        if body.due_ms == UNKNOWN and body.record_count != record_count:
            # The release may be of the batch's first place only, while other places wait.
            return
        del bodies[s_offset]
        body.record_count = record_count
        if body.due_ms == UNKNOWN:
            # The due time is not known, so no watermark can cover the body.
            return
        self._add_found(body, base_offset)

    def _add_found(self, body: Body, base_offset: int) -> None:
        if base_offset + body.record_count <= self._p_high_watermark:
            self._watermarks.add(body)
            self._released.append(OpenRelease(body, base_offset))
        else:
            self._releases.append(OpenRelease(body, base_offset))

    def add_instance(self, s_offset: int, leader_epoch: int, base_offset: int, due_ms: int) -> None:
        """Take a batch of P that is the instance of a recurring body at this due time."""
        body = self._bodies.get(s_offset)
        if not isinstance(body, RecurringBody):
            if s_offset in self._damaged:
                self._damaged_recurring[s_offset] = None
            return
        if leader_epoch < body.leader_epoch or due_ms <= body.last_ms:
            return
        release = OpenInstance(body, base_offset, due_ms)
        body.add_instance(due_ms)
        if release.end_offset <= self._p_high_watermark:
            body.commit(due_ms, body.released_count, base_offset)
        else:
            self._releases.append(release)

    # -- the state

    def finish(self, s_high_watermark: int) -> ScheduleState:
        """Return the state of all bodies that were neither released nor cancelled; end the rebuild.

        Bodies below S's high watermark are pending, the others are parked.
        """
        self.begin_state(s_high_watermark)
        while True:
            state = self.take_on(_TAKEN_AT_ONCE)
            if state is not None:
                return state

    def begin_state(self, s_high_watermark: int) -> None:
        """Begin the state, which `take_on` fills in steps; `finish` does both at once."""
        snapshot = self._snapshot
        if snapshot is None:
            state = ScheduleState(PendingBodies(), self._watermarks)
        else:
            state = snapshot.state_with(self._watermarks)
            snapshot.begin_taking(self._cancelled, self._taken, self.hole_end)
        self._state = state
        self._s_high_watermark = s_high_watermark
        self._left = iter(self._bodies.values())
        for known in self._released:
            self._released_ids[known.body.schedule_id] = known.body.s_offset
        for release in self._releases:
            # A body that was parked later may take the id over.  A recurring body keeps its id
            # while it is alive.
            if not isinstance(release, OpenInstance):
                state.ids.restore(release.body.schedule_id, release.body.s_offset)

    def take_on(self, count_max: int) -> ScheduleState | None:
        """Take `count_max` bodies into the state; return the state once it has all, else None."""
        state = self._state
        assert state is not None
        snapshot = self._snapshot
        if snapshot is not None and snapshot.take_on(state, count_max, self._s_high_watermark):
            return None
        if not self._is_filled:
            bodies = list(islice(self._left, count_max))
            for body in bodies:
                self._take(state, body)
            if len(bodies) == count_max:
                return None
            self._take_rest(state)
            self._is_filled = True
        return None if self.free(count_max) else state

    def free(self, count_max: int) -> bool:
        """Free the memory of `count_max` bodies, which are not needed any more; return True if
        there are more.  To free a million at once takes long."""
        bodies, cancelled = self._bodies, self._cancelled
        for _ in range(min(count_max, len(bodies))):
            bodies.popitem()
        for _ in range(min(count_max, len(cancelled))):
            cancelled.popitem()
        return len(bodies) > 0 or len(cancelled) > 0

    def _take_rest(self, state: ScheduleState) -> None:
        """Take into the state what is not pending: known releases, and damaged bodies."""
        for release in self._released:
            body = release.body
            state.released.add(body, release.base_offset)
            if self._released_ids.get(body.schedule_id) != body.s_offset:
                state.released.forget_id(body.schedule_id)
        for release in self._releases:
            if isinstance(release, OpenInstance):
                state.restore_instance(release)
            else:
                state.add_release(release.body, release.base_offset)
        for s_offset, body in self._damaged.items():
            if s_offset not in self._cancelled:
                # Several records may have a due time each: a checkpoint cannot name them.
                is_unclear = (
                    body.record_count > 1
                    or s_offset in self._damaged_recurring
                    or self._is_done(body)
                )
                state.keep_damaged(body, is_unclear=is_unclear)
        self._damaged = {}
        self._recurring = {}

    def _take(self, state: ScheduleState, body: Body) -> None:
        s_offset = body.s_offset
        if s_offset in self._cancelled:
            self._take_over_id(state, body)
            if isinstance(body, RecurringBody) and s_offset in self._ended:
                state.released.add(body, body.committed_offset)
        elif isinstance(body, RecurringBody):
            # The next due time is found when the body is looked at: for all bodies it takes long.
            body.due_ms = max(body.due_ms, body.last_ms)
            self._take_over_id(state, body)
            state.restore(body, self._s_high_watermark)
        elif not self._is_done(body):
            self._take_over_id(state, body)
            state.restore(body, self._s_high_watermark)
        elif s_offset < self.hole_end:
            self._take_over_id(state, body)
        else:
            state.released.add(body, NO_S_OFFSET)

    def _take_over_id(self, state: ScheduleState, body: Body) -> None:
        """Forget the released body that had this body's id before: the id means this body now."""
        schedule_id = body.schedule_id
        state.released.forget_id(schedule_id)
        if self._released_ids.get(schedule_id, body.s_offset) < body.s_offset:
            del self._released_ids[schedule_id]

    def _is_done(self, body: Body) -> bool:
        """Return whether the checkpoint says that a body is done."""
        return self._taken is not None and self._taken.is_done(body.due_ms, body.s_offset)
