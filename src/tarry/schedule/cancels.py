"""Ids of waiting bodies, and cancels whose notes are not committed yet and may be lost.

A body that is cancelled is neither pending nor done until its note counts in the companion log: a
write that fails takes the note back, and the body waits again.
"""

from __future__ import annotations

from typing import Final

from tarry.schedule.notes import ANY_OFFSET
from tarry.schedule.packed_ids import OffsetsOfIds
from tarry.schedule.pending import Body

# Places that a cancelled body was taken from, and returns to if the cancelling note is lost.
PENDING: Final = 0
PARKED: Final = 1
DAMAGED: Final = 2


class OpenCancel:
    """Cancel of `body`, which counts from `note_offset` on; `place` says where the body was.

    `read_from` is where the note lies that says so: at `note_offset`, or before it, if the note
    counts with the batch behind it.
    """

    def __init__(self, note_offset: int, body: Body, place: int, read_from: int) -> None:
        self.note_offset = note_offset
        self.read_from = read_from
        self.body = body
        self.place = place


class ScheduleIds:
    """Ids of the bodies that wait, and the open cancels in the order of their notes."""

    def __init__(self) -> None:
        self.offsets = OffsetsOfIds()
        self._open: list[OpenCancel] = []
        # Open cancels by the s-offset of the body, and these s-offsets by the body's id.
        self._open_cancels: dict[int, OpenCancel] = {}
        self._open_offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return self.offsets.count

    def add(self, body: Body) -> None:
        """Assign the body's id to it.  A body that had the id before loses it."""
        if body.schedule_id:
            self.offsets.put(body.schedule_id, body.s_offset)

    def restore(self, schedule_id: bytes, s_offset: int) -> None:
        """Assign an id to the body at `s_offset`, unless a body behind it has the id."""
        if not schedule_id:
            return
        known = self.offsets.get(schedule_id)
        if known is None or known < s_offset:
            self.offsets.put(schedule_id, s_offset)

    def open_bodies(self) -> list[Body]:
        """Return the bodies that would wait again if the notes that cancel them were lost."""
        return [cancel.body for cancel in self._open]

    def are_open_packed(self) -> bool:
        """Return whether an entry says all of each body that would wait again: of a body with a
        damaged note it does not."""
        return all(each.body.is_packed and each.place != DAMAGED for each in self._open)

    def keep(self, body: Body) -> None:
        """Assign the body's id to it, unless another body has the id by now."""
        if body.schedule_id and self.offsets.get(body.schedule_id) is None:
            self.offsets.put(body.schedule_id, body.s_offset)

    def drop(self, body: Body) -> None:
        """Forget the id of a body that waits no more, unless another body has the id by now."""
        if body.schedule_id and self.offsets.get(body.schedule_id) == body.s_offset:
            self.offsets.remove(body.schedule_id)

    def offset_of(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of the body that has this id; None if no body has it."""
        return self.offsets.get(schedule_id)

    def note_that_cancels(self, s_offset: int) -> int | None:
        """Return the offset of the note that cancels a body; None once it is committed, or if
        there is none."""
        cancel = self._open_cancels.get(s_offset)
        return None if cancel is None else cancel.note_offset

    def cancelled_offset_of(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of the last body with this id while its cancel is not committed;
        None otherwise."""
        return self._open_offsets.get(schedule_id)

    def cancelling_between(self, first: int, until: int) -> list[Body]:
        """Return the bodies from s-offset `first` to before `until` whose cancels are not committed
        yet."""
        if len(self._open) <= until - first:
            return [each.body for each in self._open if first <= each.body.s_offset < until]
        cancels = [self._open_cancels.get(s_offset) for s_offset in range(first, until)]
        return [each.body for each in cancels if each is not None]

    def first_open(self, s_high_watermark: int) -> int:
        """Return from where on S says all cancels that are not committed."""
        first = s_high_watermark
        for cancel in self._open:
            if cancel.note_offset >= s_high_watermark:
                first = min(first, cancel.read_from)
        return first

    def begin_cancel(self, note_offset: int, body: Body, place: int, read_from: int) -> None:
        """Note that a body is cancelled; see OpenCancel."""
        # Another body may have taken the id over before this recurring body ended.
        had_id = self.offsets.get(body.schedule_id) == body.s_offset
        self.drop(body)
        self._open.append(OpenCancel(note_offset, body, place, read_from))
        self._open_cancels[body.s_offset] = self._open[-1]
        if body.schedule_id and had_id:
            self._open_offsets[body.schedule_id] = body.s_offset

    def commit(self, s_high_watermark: int) -> None:
        """Forget the cancels whose notes lie below S's high watermark: they are committed."""
        count = 0
        while count < len(self._open) and self._open[count].note_offset < s_high_watermark:
            self._close(self._open[count])
            count += 1
        if count:
            del self._open[:count]

    def rollback(self, s_end_offset: int) -> list[OpenCancel]:
        """Return the cancels that the companion log has not kept, the last one first."""
        lost: list[OpenCancel] = []
        while self._open and self._open[-1].note_offset >= s_end_offset:
            lost.append(self._open.pop())
            self._close(lost[-1])
        return lost

    def _close(self, cancel: OpenCancel) -> None:
        body = cancel.body
        self._open_cancels.pop(body.s_offset, None)
        if self._open_offsets.get(body.schedule_id) == body.s_offset:
            del self._open_offsets[body.schedule_id]

    def first_offset(self) -> int:
        """Return the smallest base offset of a batch that would wait again if notes were lost."""
        return min([cancel.body.batch_offset for cancel in self._open], default=ANY_OFFSET)
