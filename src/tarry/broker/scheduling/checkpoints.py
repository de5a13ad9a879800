"""Checkpoints of a partition's schedule: how far they cover P, what S keeps for them.  Hot."""

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

    The last committed checkpoint covers P up to `covered_offset`.
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
        # Offset of the note of the last committed checkpoint, which S has to keep.
        self._kept_offset: int = companion.log.log_start_offset
        # Offset of the last unreadable batch of S that may have been a checkpoint; -1 without one.
        self._unread_offset = -1
        # Checkpoint that is not committed yet: its c, -1 without one, and its note's end in S.
        self._c = -1
        self._end = 0
        # True if a body was cancelled since the last checkpoint.
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
        """Offset up to which the last checkpoint covers P, committed or not."""
        return max(self.covered_offset, self._c)

    @property
    def is_last_known(self) -> bool:
        """Return whether the last committed checkpoint is surely the last one that S had."""
        return self._companion.log.flaw_offset < 0 and self._unread_offset <= self._kept_offset

    def first(self) -> CheckpointNote:
        """Return the checkpoint that S begins with: no record that P has now is a release of S."""
        c = self._partition.high_watermark
        return CheckpointNote(c, self._epoch_before(c), [], [])

    def take(self, state: ScheduleState) -> CheckpointNote | None:
        """Return a checkpoint of the committed releases; None if none is needed or possible now."""
        if not self._partition.leadership.may_act():
            return None
        if self._companion.log.flaw_offset >= 0:
            # A checkpoint could not be written, and the batches behind the flaw are not known.
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
        """Note that a body was cancelled: to free its room in S may take a checkpoint."""
        self._has_cancelled = True

    def rollback(self, s_end_offset: int) -> None:
        """Forget the last checkpoint if S has lost it: S ends at this offset."""
        if self._end > s_end_offset:
            self._c = -1

    def commit(self, state: ScheduleState, s_high_watermark: int) -> None:
        """Commit the last checkpoint if it lies below S's high watermark."""
        if self._c >= 0 and self._end <= s_high_watermark:
            self.covered_offset = self.up_to
            self._kept_offset = self._end - 1
            self._c = -1
            self._free_room(state)

    def holds_cancelled(self, state: ScheduleState) -> bool:
        """Return whether S keeps segments only for the last checkpoint: all bodies in them were
        cancelled.  After a release another checkpoint is written anyway.
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
        """Return an offset before which S has no batch that is still needed."""
        # The note of a body lies right before it.
        return min(state.first_offset() - 1, self._kept_offset)

    def _free_room(self, state: ScheduleState) -> None:
        """Move S's start to the segment with the first batch that is still needed: a body or the
        last checkpoint.
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
