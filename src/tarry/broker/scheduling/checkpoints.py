"""Checkpoints of a partition's schedule: what they say of P, what S has to keep for them.  Hot."""

from __future__ import annotations

from collections.abc import Callable

from tarry.base import errors
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.scheduling.loading import ScheduleLoad
from tarry.partition.leader import append_of_any_size
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.state import ScheduleState


class ScheduleCheckpoints:
    """Checkpoints of one partition, for as long as this broker leads it in one epoch.

    Up to `covered_offset` the last one that counts speaks of P.
    """

    def __init__(
        self,
        companion: ReplicatedLog,
        turn: Turn,
        flushes: Flushes,
        on_start_asked: Callable[[ReplicatedLog], None],
    ) -> None:
        self._partition = companion.leadership.records
        self._companion = companion
        self._turn = turn
        self._flushes = flushes
        self._on_start_asked = on_start_asked
        self.covered_offset: int = self._partition.log.log_start_offset
        # The note of the last checkpoint that counts, which S has to keep.
        self._kept_offset: int = companion.log.log_start_offset
        # Where another one may have stood that cannot be read.
        self._unread_offset = -1
        # The last checkpoint: up to where it speaks of P, and where its note ends in S.
        self._c = -1
        self._end = 0
        # Something was cancelled since the last checkpoint.
        self._has_cancelled = False

    def begin(self, load: ScheduleLoad) -> None:
        """Begin with what an earlier life has left.

        Only a note of S covers P: a snapshot may be gone when another replica leads.
        """
        if not load.rests_on_snapshot:
            self.covered_offset = load.read_from
        self._unread_offset = load.unread_offset

    @property
    def up_to(self) -> int:
        """Offset up to which the last one speaks of P, whether it counts or not."""
        return max(self.covered_offset, self._c)

    @property
    def is_last_known(self) -> bool:
        """Return whether no later one may be lost than the one that counts."""
        return self._companion.log.flaw_offset < 0 and self._unread_offset <= self._kept_offset

    def first(self) -> CheckpointNote:
        """Return the one that S begins with: what P holds by now has released nothing of S."""
        c = self._partition.high_watermark
        return CheckpointNote(c, self._epoch_before(c), [], [])

    def take(self, state: ScheduleState) -> CheckpointNote | None:
        """Return a checkpoint of what is released for good by now; None if there is none."""
        if not self._partition.leadership.may_act():
            return None
        if self._companion.log.flaw_offset >= 0:
            # It could not be written, and what lies behind the flaw is not known.
            return None
        c = self._partition.high_watermark
        if c <= self.up_to and not self.holds_cancelled(state):
            return None
        state.commit_released(c)
        return state.checkpoint(c, self._epoch_before(c))

    def append(self, checkpoint: CheckpointNote) -> bool:
        """Append a checkpoint to S; False if the disk has refused it."""
        note = checkpoint.encode(self._turn.now_wall_ms)
        result = append_of_any_size(self._companion, note, self._turn)
        if result.error_code != errors.NONE:
            return False
        self._has_cancelled = False
        self._c = checkpoint.c
        self._end = result.required_offset
        self._flushes.touch(self._companion)
        return True

    def note_cancel(self) -> None:
        """Note that something was cancelled: the room that it leaves may need a checkpoint."""
        self._has_cancelled = True

    def rollback(self, s_end_offset: int) -> None:
        """Forget the last one if S has not kept it: it ends at this offset."""
        if self._end > s_end_offset:
            self._c = -1

    def commit(self, state: ScheduleState, s_high_watermark: int) -> None:
        """Let the last one count if it lies below S's high watermark."""
        if self._c >= 0 and self._end <= s_high_watermark:
            self.covered_offset = self.up_to
            self._kept_offset = self._end - 1
            self._c = -1
            self._free_room(state)

    def holds_cancelled(self, state: ScheduleState) -> bool:
        """Return whether segments of S stay for the last checkpoint alone, since all that waited in
        them was cancelled: a release would have brought another checkpoint.
        """
        if not self._has_cancelled:
            return False
        order = self._companion.log.segment_order
        last = order.last
        if self._kept_offset >= last.base_offset:
            return False
        first = min(state.first_offset() - 1, int(last.base_offset))
        return self._kept_offset < int(order.holding(first).base_offset)

    def first_needed(self, state: ScheduleState) -> int:
        """Return an offset before which S has nothing that is still needed."""
        # A body stands behind its note.
        return min(state.first_offset() - 1, self._kept_offset)

    def _free_room(self, state: ScheduleState) -> None:
        """Let S begin with the first segment that has a body which is still needed, or the last
        checkpoint.
        """
        log = self._companion.log
        if log.flaw_offset >= 0:
            return
        segment = log.segment_order.holding(self.first_needed(state))
        if segment.base_offset > log.coming_start_offset:
            log.ask_for_start(segment.base_offset)
            self._on_start_asked(self._companion)

    def _epoch_before(self, c: int) -> int:
        return self._partition.log.epoch_at(c - 1) if c > 0 else -1
