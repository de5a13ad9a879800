"""State of a partition's schedule while it is led here: what is parked, pending, being released.

A body is parked when it is appended to the companion log S, pending once S's high watermark has
passed it, and only then it may be released: else a new leader could have the release and not the
body.  A release is under way until the high watermark of the partition P has passed it.  What could
not be written goes back to where it was.  Hot.

    append to S                  S's high watermark                 append to P      P's
        park -> parked -> commit_parked -> pending -> take_due -> add_release -> commit_released
                rollback_parked                      put_back     rollback_released
"""

from __future__ import annotations

from bisect import bisect_left

from tarry.base.limits import CHECKPOINT_EXCEPTIONS_MAX
from tarry.schedule.cancels import DAMAGED, PARKED, PENDING, ScheduleIds
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.pending import Body, PendingBodies
from tarry.schedule.released import ReleasedBodies
from tarry.schedule.watermarks import ScheduleWatermarks


class OpenRelease:
    """Release that is under way: its batch has these offsets in the partition."""

    def __init__(self, body: Body, base_offset: int) -> None:
        self.body = body
        self.base_offset = base_offset
        self.end_offset = base_offset + body.record_count


def _s_offset_of(body: Body) -> int:
    return body.s_offset


class ScheduleState:
    """Bodies that are not released for good yet, and how far those go that are."""

    def __init__(self, pending: PendingBodies, watermarks: ScheduleWatermarks) -> None:
        self.pending = pending
        # What was released below P's high watermark.
        self.watermarks = watermarks
        # In the order of their offsets, in S and in P.
        self._parked: list[Body] = []
        self._releases: list[OpenRelease] = []
        # The same by s-offset.
        self._releasing: dict[int, OpenRelease] = {}
        # Damaged bodies: not tried again by this state, and kept in S for a later one.
        self._damaged: dict[int, Body] = {}
        # The checkpoint that counts does not say whether some of them are done.
        self._has_unclear = False
        self.ids = ScheduleIds()
        self.released = ReleasedBodies()

    @property
    def count(self) -> int:
        """Batches that are parked, pending or damaged."""
        return self.pending.count + len(self._parked) + len(self._damaged)

    @property
    def damaged_count(self) -> int:
        """Batches that were set aside."""
        return len(self._damaged)

    def first_offset(self) -> int:
        """Return an s-offset before which S has no body that is still needed."""
        first = min(self.pending.first_offset(), self.ids.first_offset())
        if self._parked:
            first = min(first, self._parked[0].batch_offset)
        for body in self._damaged.values():
            first = min(first, body.batch_offset)
        return min([first, *[release.body.batch_offset for release in self._releases]])

    # -- parking

    def park(self, body: Body, now_wall_ms: int) -> None:
        """Take a body that was appended to S's tail."""
        assert not self._parked or self._parked[-1].s_offset < body.s_offset
        self._parked.append(body)
        self.ids.add(body)
        self.released.forget_id(body.schedule_id)
        self.watermarks.begin(body.s_offset, now_wall_ms)

    def restore(self, body: Body, s_high_watermark: int) -> None:
        """Take a body that S has and that was not released; they come in the order of S."""
        self.ids.add(body)
        self.released.forget_id(body.schedule_id)
        if body.s_offset < s_high_watermark:
            self.pending.add(body)
        else:
            self._parked.append(body)

    def rollback_parked(self, s_end_offset: int) -> None:
        """Forget what S has not kept: it ends at this offset."""
        parked = self._parked
        while parked and parked[-1].s_offset >= s_end_offset:
            self.ids.drop(parked.pop())
        for cancel in self.ids.rollback(s_end_offset):
            body = cancel.body
            if body.s_offset >= s_end_offset:
                continue
            self.ids.add(body)
            if cancel.place == PARKED:
                parked.insert(self._parked_index(body.s_offset), body)
            elif cancel.place == DAMAGED:
                # It was never to be released: when it is due may not be known.
                self._damaged[body.s_offset] = body
            else:
                self.pending.add(body)

    def commit_parked(self, s_high_watermark: int) -> None:
        """Let be pending what lies below S's high watermark."""
        parked = self._parked
        count = 0
        while count < len(parked) and parked[count].s_offset < s_high_watermark:
            self.pending.add(parked[count])
            count += 1
        if count:
            del parked[:count]
        self.ids.commit(s_high_watermark)

    # -- what is shown

    def waiting_in(self, first: int, count: int) -> list[Body]:
        """Return the bodies that wait at so many s-offsets from `first` on, those of a batch.

        One that is being released waits no more; one that is being cancelled waits until its note
        counts.
        """
        until = first + count
        found = self.pending.between(first, until)
        found += self._parked[self._parked_index(first) : self._parked_index(until)]
        found += self.ids.cancelling_between(first, until)
        return sorted(found, key=_s_offset_of)

    # -- cancels

    def cancellable(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of what waits with this id; None if nothing does.

        What is released, for good or not yet, does not wait any more.
        """
        s_offset = self.ids.offset_of(schedule_id)
        if s_offset is None:
            return None
        waits = self.pending.has(s_offset) or s_offset in self._damaged
        return s_offset if waits or self._is_parked(s_offset) else None

    def is_being_released(self, schedule_id: bytes) -> bool:
        """Return whether what has this id was released, and not for good yet."""
        return self.ids.offset_of(schedule_id) is not None and self.cancellable(schedule_id) is None

    def waiting(self, s_offset: int) -> Body | None:
        """Return the body at this s-offset if it waits: pending, parked or damaged."""
        body = self.pending.get(s_offset)
        if body is not None:
            return body
        if self._is_parked(s_offset):
            return self._parked[self._parked_index(s_offset)]
        return self._damaged.get(s_offset)

    def release_of(self, s_offset: int) -> OpenRelease | None:
        """Return the release of this body that is under way."""
        return self._releasing.get(s_offset)

    def cancel(self, s_offset: int, note_offset: int) -> None:
        """Take out a body that is cancellable: the note at this offset of S's tail says so."""
        place = PENDING
        body = self.pending.forget(s_offset)
        if body is None and self._is_parked(s_offset):
            place = PARKED
            body = self._parked.pop(self._parked_index(s_offset))
        elif body is None:
            place = DAMAGED
            body = self._damaged.pop(s_offset)
        self.ids.begin_cancel(note_offset, body, place)
        self.released.forget_id(body.schedule_id)

    def _is_parked(self, s_offset: int) -> bool:
        index = self._parked_index(s_offset)
        return index < len(self._parked) and self._parked[index].s_offset == s_offset

    def _parked_index(self, s_offset: int) -> int:
        """Return the place of this s-offset in the order of what is parked."""
        return bisect_left(self._parked, s_offset, key=_s_offset_of)

    # -- releasing

    def next_due_ms(self) -> int:
        """Return when the first pending body is due."""
        return self.pending.next_due_ms()

    def take_due(self, now_wall_ms: int) -> Body | None:
        """Take the next body to be released, in order of (due, s-offset); None if none is due."""
        return self.pending.take_due(now_wall_ms)

    def put_back(self, body: Body) -> None:
        """Let a body that was taken be pending again: P has not taken its release."""
        self.pending.add(body)

    def set_aside(self, body: Body) -> None:
        """Let a body that was taken and is damaged wait for a later state."""
        self._damaged[body.s_offset] = body

    def keep_damaged(self, body: Body, *, is_unclear: bool) -> None:
        """Keep a body of S that cannot be released.

        `is_unclear`: without its due time the last checkpoint does not say whether it is done.  A
        later checkpoint could say only one of both, which may be wrong once the disk is mended.
        """
        self._damaged[body.s_offset] = body
        self._has_unclear = self._has_unclear or is_unclear

    def add_release(self, body: Body, base_offset: int) -> None:
        """Note that a body's release was appended to P's tail at this offset."""
        releases = self._releases
        assert not releases or releases[-1].end_offset <= base_offset
        release = OpenRelease(body, base_offset)
        releases.append(release)
        self._releasing[body.s_offset] = release
        self.ids.keep(body)

    def rollback_released(self, p_end_offset: int) -> None:
        """Let be pending again what P has not kept: it ends at this offset."""
        releases = self._releases
        while releases and releases[-1].base_offset >= p_end_offset:
            body = releases.pop().body
            del self._releasing[body.s_offset]
            self.pending.add(body)

    def commit_released(self, p_high_watermark: int) -> None:
        """Forget the releases below P's high watermark: they are done."""
        releases = self._releases
        count = 0
        while count < len(releases) and releases[count].end_offset <= p_high_watermark:
            self.watermarks.add(releases[count].body)
            self.ids.drop(releases[count].body)
            del self._releasing[releases[count].body.s_offset]
            self.released.add(releases[count].body, releases[count].base_offset)
            count += 1
        if count:
            del releases[:count]

    # -- checkpoints

    def checkpoint(self, c: int, c_epoch: int) -> CheckpointNote | None:
        """Return the checkpoint for P's high watermark `c`, up to which `commit_released` was told;
        None if it would have too many exceptions, or may say what is not true."""
        if self._has_unclear or len(self._damaged) > CHECKPOINT_EXCEPTIONS_MAX:
            return None
        exceptions: list[int] = []
        from_offset = 0
        for watermark in self.watermarks.watermarks:
            found = self.pending.at_or_below(watermark, from_offset)
            if found is None:
                return None
            found += self._parked
            found += self._damaged.values()
            found += [release.body for release in self._releases]
            for body in found:
                if from_offset <= body.s_offset < watermark.before_offset and watermark.covers(
                    body.due_ms, body.s_offset
                ):
                    exceptions.append(body.s_offset)
            from_offset = watermark.before_offset
        if len(exceptions) > CHECKPOINT_EXCEPTIONS_MAX:
            return None
        # A heap may have an entry of a forgotten body beside one of the same place.
        exceptions = sorted(dict.fromkeys(exceptions))
        return CheckpointNote(c, c_epoch, self.watermarks.copy(), exceptions)
