"""Snapshot that a rebuild begins with: it stands for the companion log S before its offset.

The rebuild takes the bodies out of it that are not pending any more: those that were released or
cancelled since, or that a later checkpoint says are done.  Hot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tarry.log.index.epoch_index import EpochIndex
from tarry.schedule.noted_checkpoint import NotedCheckpoint
from tarry.schedule.pending import LINK_SIZE, UNKNOWN, Body, DuePlace, link_key, s_offset_in
from tarry.schedule.release_identity import NO_S_OFFSET
from tarry.schedule.snapshot import SnapshotBase, SnapshotHeader
from tarry.schedule.state import ScheduleState
from tarry.schedule.watermarks import ScheduleWatermarks


class TakenSnapshot:
    """Snapshot that counts for the logs of this replica, whose S begins at `s_start_offset` and has
    the epochs `s_epochs`."""

    def __init__(
        self, base: SnapshotBase, header: SnapshotHeader, s_epochs: EpochIndex, s_start_offset: int
    ) -> None:
        self.base = base
        # Offset from which on S is read.
        self.s_offset = header.s_offset
        # Offset behind the last hole of S that the snapshot knows of.
        self.hole_end = header.hole_end
        # The snapshot's checkpoint, as if it were noted right before the part of S that is read.
        self.checkpoint = NotedCheckpoint(header.s_offset - 1, header.checkpoint)
        self._s_epochs = s_epochs
        self._s_start_offset = s_start_offset
        # Work that is left: to take out the bodies that were cancelled since, and, from `_place` of
        # the order on, those that the last checkpoint says are done.
        self._cancelled: Iterator[int] = iter(())
        self._taken = self.checkpoint
        self._place: DuePlace | None = None

    def release(self, s_offset: int, leader_epoch: int) -> Body | None:
        """Take out and return the body that P released in this leader epoch; None without one.

        The body's id stays until the release is committed.
        """
        if leader_epoch < self._s_epochs.epoch_of(s_offset):
            return None
        return self.base.pending.forget(s_offset)

    def state_with(self, watermarks: ScheduleWatermarks) -> ScheduleState:
        """Return the state that begins with the snapshot."""
        state = ScheduleState(self.base.pending, watermarks)
        state.ids = self.base.ids
        state.released = self.base.released
        return state

    def begin_taking(
        self, cancelled: Iterable[int], taken: NotedCheckpoint | None, hole_end: int
    ) -> None:
        """Begin to take out the bodies that notes behind the snapshot have cancelled, and those
        that the last checkpoint says are done.

        Compaction has dropped batches before `hole_end`.  The cancel of a body that is done may be
        among them, so a body before `hole_end` is not known as released.
        """
        self._cancelled = iter(cancelled)
        if hole_end > self.hole_end:
            # A body that took over the id of a released one may be among them, too.
            self.base.released.forget_ids()
        self.hole_end = hole_end
        if taken is not None and taken is not self.checkpoint:
            self._taken = taken
            self._place = (UNKNOWN, 0)

    def take_on(self, state: ScheduleState, count_max: int, s_high_watermark: int) -> bool:
        """Do the next part of the work that is left; False if nothing was left."""
        return (
            self._take_cancelled(count_max)
            or self._take_done(count_max)
            or self._park(state, s_high_watermark)
        )

    def _take_cancelled(self, count_max: int) -> bool:
        base = self.base
        s_offsets = self._gone() or list(islice(self._cancelled, count_max))
        for s_offset in s_offsets:
            body = base.pending.forget(s_offset) if s_offset < self.s_offset else None
            if body is not None:
                base.ids.drop(body)
                base.released.forget_id(body.schedule_id)
        return len(s_offsets) > 0

    def _gone(self) -> list[int]:
        """Return s-offsets of bodies that lie before S's start: S may have lost the notes that
        cancelled these bodies."""
        pending = self.base.pending
        if pending.first_offset() >= self._s_start_offset:
            return []
        links = pending.links_from(b"")
        s_offsets = [s_offset_in(links, at) for at in range(0, len(links), LINK_SIZE)]
        return [each for each in s_offsets if each < self._s_start_offset]

    def _take_done(self, count_max: int) -> bool:
        if self._place is None:
            return False
        base, taken = self.base, self._taken
        due_ms, s_offset = self._place
        places = base.pending.from_place(due_ms, s_offset, count_max)
        self._place = (places[-1][0], places[-1][1] + 1) if places else None
        furthest_ms = max([each.due_ms for each in taken.checkpoint.watermarks], default=UNKNOWN)
        for due_ms, s_offset in places:
            if due_ms > furthest_ms:
                self._place = None
                break
            if s_offset < self.s_offset and taken.is_done(due_ms, s_offset):
                body = base.pending.forget(s_offset)
                assert body is not None
                base.ids.drop(body)
                if s_offset >= self.hole_end:
                    base.released.add(body, NO_S_OFFSET)
        return True

    def _park(self, state: ScheduleState, s_high_watermark: int) -> bool:
        """Park the bodies at or past S's high watermark: this leader may know a lower one than the
        leader that wrote the snapshot."""
        pending = self.base.pending
        links = pending.links_from(link_key(s_high_watermark))
        for at in range(0, len(links), LINK_SIZE):
            body = pending.forget(s_offset_in(links, at))
            assert body is not None
            state.restore(body, s_high_watermark)
        return len(links) > 0
