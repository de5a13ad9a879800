"""State of a led partition's schedule: the bodies that are parked, pending or being released.

A body is parked when it is appended to the companion log S, and pending once S's high watermark has
passed it.  Only then may it be released: else a new leader could have the release and not the body.
A release is under way until the high watermark of the partition P has passed it.  A body returns to
its former place if a write is lost.

    append to S                  S's high watermark                 append to P      P's
        park -> parked -> commit_parked -> pending -> take_due -> add_release -> commit_released
                rollback_parked                      put_back     rollback_released

A recurring body is pending again as soon as an instance of it was released (`add_instance`), so
several of its releases may be under way.  It rests while these are too many, until one of them is
committed; a body that has ended rests until a note says so.  Hot.
"""

from __future__ import annotations

from bisect import bisect_left

from tarry.base.limits import (
    CHECKPOINT_EXCEPTIONS_MAX,
    CHECKPOINT_RECURRING_MAX,
    INSTANCES_UNDER_WAY_MAX,
)
from tarry.schedule.cancels import DAMAGED, PARKED, PENDING, ScheduleIds
from tarry.schedule.counts import TopicCounts
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.pending import Body, PendingBodies
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.terms import NotedRecurrence
from tarry.schedule.released import ReleasedBodies
from tarry.schedule.watermarks import ScheduleWatermarks


class OpenRelease:
    """Release that is under way; its batch is at these offsets of the partition."""

    def __init__(self, body: Body, base_offset: int) -> None:
        self.body = body
        self.base_offset = base_offset
        self.end_offset = base_offset + body.record_count


class OpenInstance(OpenRelease):
    """Release of an instance that is under way: `due_ms`, and the body's state before it."""

    def __init__(self, body: RecurringBody, base_offset: int, due_ms: int) -> None:
        super().__init__(body, base_offset)
        self.recurring = body
        self.due_ms = due_ms
        self.count = body.released_count + 1
        self.last_ms_before = body.last_ms


def _s_offset_of(body: Body) -> int:
    return body.s_offset


class ScheduleState:
    """Bodies whose releases are not committed yet, and the watermarks of the committed ones."""

    def __init__(self, pending: PendingBodies, watermarks: ScheduleWatermarks) -> None:
        self.pending = pending
        # Watermarks of the releases below P's high watermark.
        self.watermarks = watermarks
        # Parked bodies in the order of S, their bytes, and open releases in the order of P.
        self._parked: list[Body] = []
        self._parked_bytes = 0
        self._releases: list[OpenRelease] = []
        # Open releases by s-offset, without those of instances.
        self._releasing: dict[int, OpenRelease] = {}
        # Damaged bodies by s-offset: this state does not try them again, S keeps them.
        self._damaged: dict[int, Body] = {}
        # True if the last checkpoint does not say whether some damaged bodies are done.
        self._has_unclear = False
        self.ids = ScheduleIds()
        self.released = ReleasedBodies()
        # Recurring bodies that are alive, and those of them that rest; both by s-offset.
        self.recurring: dict[int, RecurringBody] = {}
        self._resting: dict[int, RecurringBody] = {}
        self._counts: TopicCounts | None = None

    def count_in(self, counts: TopicCounts) -> None:
        """Count committed releases in `counts` from now on."""
        self._counts = counts

    @property
    def count(self) -> int:
        """Number of bodies that are parked, pending, damaged or resting."""
        return self.pending.count + len(self._parked) + len(self._damaged) + len(self._resting)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the bodies that are parked or pending."""
        return self.pending.size + self._parked_bytes

    @property
    def damaged_count(self) -> int:
        """Number of damaged bodies that were set aside."""
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
        """Add a body that was appended to S's tail."""
        assert not self._parked or self._parked[-1].s_offset < body.s_offset
        self._parked.append(body)
        self._parked_bytes += body.size
        self._keep(body)
        self.watermarks.begin(body.s_offset, now_wall_ms)

    def restore(self, body: Body, s_high_watermark: int) -> None:
        """Add a body of S that was not released.  Callers add bodies in the order of S."""
        self._keep(body)
        if body.s_offset < s_high_watermark:
            self.pending.add(body)
        else:
            self._parked.append(body)
            self._parked_bytes += body.size

    def _keep(self, body: Body) -> None:
        """Keep the id of a body that waits, and the body if it recurs."""
        self.ids.add(body)
        self.released.forget_id(body.schedule_id)
        if isinstance(body, RecurringBody):
            self.recurring[body.s_offset] = body

    def rollback_parked(self, s_end_offset: int) -> bool:
        """Undo the parks and cancels that S has lost: it ends at this offset.

        Return whether a note that a recurring body has ended is lost: it must be written again.
        """
        parked = self._parked
        has_lost_end = False
        while parked and parked[-1].s_offset >= s_end_offset:
            body = parked.pop()
            self._parked_bytes -= body.size
            self.ids.drop(body)
            self.recurring.pop(body.s_offset, None)
        for cancel in self.ids.rollback(s_end_offset):
            body = cancel.body
            if body.s_offset >= s_end_offset:
                continue
            self._keep(body)
            if isinstance(body, RecurringBody) and body.has_ended:
                has_lost_end = True
            if cancel.place == PARKED:
                parked.insert(self._parked_index(body.s_offset), body)
                self._parked_bytes += body.size
            elif cancel.place == DAMAGED:
                # A damaged body is not released, and its due time may not be known.
                self._damaged[body.s_offset] = body
            else:
                self.pending.add(body)
        return has_lost_end

    def commit_parked(self, s_high_watermark: int) -> None:
        """Make the parked bodies below S's high watermark pending; commit the cancels below it."""
        parked = self._parked
        count = 0
        while count < len(parked) and parked[count].s_offset < s_high_watermark:
            self.pending.add(parked[count])
            self._parked_bytes -= parked[count].size
            count += 1
        if count:
            del parked[:count]
        self.ids.commit(s_high_watermark)

    # -- what is shown

    def waiting_in(self, first: int, count: int) -> list[Body]:
        """Return the waiting bodies at `count` s-offsets from `first` on, those of one batch.

        A body that is being released waits no more.  A body that is being cancelled waits until its
        note is committed.
        """
        until = first + count
        found = self.pending.between(first, until)
        found += self._parked[self._parked_index(first) : self._parked_index(until)]
        found += self.ids.cancelling_between(first, until)
        found += [
            each
            for s_offset, each in self._resting.items()
            if first <= s_offset < until and not each.is_over
        ]
        return sorted(found, key=_s_offset_of)

    # -- cancels

    def cancellable(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of the waiting body with this id; None if there is none.

        A body that is released, committed or not, does not wait any more.
        """
        s_offset = self.ids.offset_of(schedule_id)
        if s_offset is None:
            return None
        return None if self.waiting(s_offset) is None else s_offset

    def is_being_released(self, schedule_id: bytes) -> bool:
        """Return whether the release of the body with this id is under way."""
        return self.ids.offset_of(schedule_id) is not None and self.cancellable(schedule_id) is None

    def waiting(self, s_offset: int) -> Body | None:
        """Return the body at this s-offset if it waits: pending, parked, resting or damaged.

        A recurring body waits as long as another instance may come, even while some are under way.
        """
        body = self.pending.get(s_offset)
        if body is None:
            body = self._resting.get(s_offset)
        if body is None and self._is_parked(s_offset):
            body = self._parked[self._parked_index(s_offset)]
        if body is None:
            body = self._damaged.get(s_offset)
        return None if isinstance(body, RecurringBody) and body.is_over else body

    def records_at(self, s_offsets: list[int]) -> int:
        """Count the records that wait at these s-offsets."""
        bodies = [self.waiting(s_offset) for s_offset in s_offsets]
        return sum([body.record_count for body in bodies if body is not None])

    def release_of(self, s_offset: int) -> OpenRelease | None:
        """Return the open release of this body, of a recurring body the last one; None while it
        waits.
        """
        body = self.recurring.get(s_offset)
        if body is None:
            return self._releasing.get(s_offset)
        if not body.is_over or body.open_count == 0:
            return None
        return next(each for each in reversed(self._releases) if each.body is body)

    def entry_of(self, batch_offset: int, s_offset: int) -> int | None:
        """Return the s-offset of the entry with the record at `s_offset` of the batch at
        `batch_offset`, be it waiting, being released or released; None if no entry is known.
        """
        if self.waiting(s_offset) is not None:
            return s_offset
        bodies = self.waiting_in(batch_offset, s_offset - batch_offset + 1)
        if bodies and bodies[-1].s_offset + bodies[-1].record_count > s_offset:
            return bodies[-1].s_offset
        entry = s_offset
        while entry >= batch_offset:
            release = self.release_of(entry)
            count = self.released.count_of(entry) if release is None else release.body.record_count
            if count:
                return entry if entry + count > s_offset else None
            entry -= 1
        return None

    def released_offset(self, s_offset: int) -> int | None:
        """Return the partition's offset of a committed release, of a recurring body's last one; -1
        if it is not known any more, None if the body waits or is not known here.
        """
        body = self.recurring.get(s_offset)
        if body is None:
            return self.released.offset_of(s_offset)
        return body.committed_offset if body.is_over and body.committed_count else None

    def cancel(self, s_offset: int, note_offset: int, read_from: int) -> None:
        """Take out a cancellable body.  S has committed the cancel once it has committed the batch
        at `note_offset`: the note that cancels it, or the body that takes its place.  `read_from`
        is the note's own offset."""
        place = PENDING
        body = self.pending.forget(s_offset) or self._resting.pop(s_offset, None)
        if body is None and self._is_parked(s_offset):
            place = PARKED
            body = self._parked.pop(self._parked_index(s_offset))
            self._parked_bytes -= body.size
        elif body is None:
            place = DAMAGED
            body = self._damaged.pop(s_offset)
        assert body is not None
        self._leave(body, note_offset, place, read_from)

    def end(self, body: RecurringBody, note_offset: int) -> None:
        """Take out a recurring body that has ended, as the note at this offset of S says."""
        body.has_ended = True
        self._leave(body, note_offset, PENDING, note_offset)
        if body.committed_count:
            self.released.add(body, body.committed_offset)

    def _leave(self, body: Body, note_offset: int, place: int, read_from: int) -> None:
        self.recurring.pop(body.s_offset, None)
        self.ids.begin_cancel(note_offset, body, place, read_from)
        self.released.forget_id(body.schedule_id)

    def _is_parked(self, s_offset: int) -> bool:
        index = self._parked_index(s_offset)
        return index < len(self._parked) and self._parked[index].s_offset == s_offset

    def _parked_index(self, s_offset: int) -> int:
        """Return the index of this s-offset among the parked bodies."""
        return bisect_left(self._parked, s_offset, key=_s_offset_of)

    # -- releasing

    def next_due_ms(self) -> int:
        """Return when the first pending body is due."""
        return self.pending.next_due_ms()

    def take_due(self, now_wall_ms: int) -> Body | None:
        """Take the next body to be released, in order of (due, s-offset); None if none is due."""
        return self.pending.take_due(now_wall_ms)

    def put_back(self, body: Body) -> None:
        """Make a taken body pending again: its release was not appended to P."""
        self.pending.add(body)

    def put_off(self, body: RecurringBody, due_ms: int) -> None:
        """Make a taken recurring body pending until `due_ms`."""
        body.due_ms = due_ms
        self.pending.add(body)

    def set_aside(self, body: Body) -> None:
        """Keep a taken body that is damaged, for a later state to try again."""
        self._damaged[body.s_offset] = body

    def keep_damaged(self, body: Body, *, is_unclear: bool) -> None:
        """Keep a body of S that cannot be released.

        `is_unclear`: the due time is not known, so the last checkpoint does not say whether it is
        done.  A later checkpoint would have to say one of both, and could be wrong.
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

    def add_instance(self, body: RecurringBody, base_offset: int) -> None:
        """Note that an instance of a taken body was appended to P's tail at this offset.

        The caller calls `await_next` afterwards.
        """
        self.restore_instance(OpenInstance(body, base_offset, body.instance_ms))
        body.add_instance(body.instance_ms)

    def await_next(self, body: RecurringBody, next_due_ms: int | None, now_wall_ms: int) -> None:
        """Let a body wait for its next instance; `next_due_ms` is None if it has ended.

        A late instance goes behind others that are due: the body may have missed thousands.
        """
        if next_due_ms is None or body.open_count >= INSTANCES_UNDER_WAY_MAX:
            self.rest(body, has_ended=next_due_ms is None)
        else:
            self.put_off(body, max(next_due_ms, now_wall_ms))

    def restore_instance(self, release: OpenInstance) -> None:
        """Add an instance's release that is under way.  Callers add them in the order of P."""
        releases = self._releases
        assert not releases or releases[-1].end_offset <= release.base_offset
        releases.append(release)
        release.recurring.open_count += 1

    def idle_recurring(self, before_offset: int) -> list[RecurringBody]:
        """Return the recurring bodies before this s-offset that wait, with no release under way."""
        return [
            body
            for s_offset, body in sorted(self.recurring.items())
            if s_offset < before_offset
            and body.open_count == 0
            and not body.is_over
            and self.pending.has(s_offset)
        ]

    def rest(self, body: RecurringBody, *, has_ended: bool) -> None:
        """Let a taken body rest until the first of its releases is committed."""
        assert body.open_count > 0
        body.has_ended = has_ended
        self._resting[body.s_offset] = body

    def rollback_released(self, p_end_offset: int) -> None:
        """Make the bodies pending again whose releases P has lost: it ends at this offset."""
        releases = self._releases
        while releases and releases[-1].base_offset >= p_end_offset:
            release = releases.pop()
            if isinstance(release, OpenInstance):
                self._rollback_instance(release)
            else:
                del self._releasing[release.body.s_offset]
                self.pending.add(release.body)

    def _rollback_instance(self, release: OpenInstance) -> None:
        """Let a body wait for this lost instance again, unless it was cancelled meanwhile."""
        body = release.recurring
        waits = self.pending.forget(body.s_offset) is not None
        waits = self._resting.pop(body.s_offset, None) is not None or waits
        body.open_count -= 1
        body.take_back(release.last_ms_before, release.count - 1)
        if waits:
            self.pending.add(body)

    def commit_released(self, p_high_watermark: int) -> None:
        """Commit the releases below P's high watermark: they are done."""
        releases = self._releases
        count = 0
        while count < len(releases) and releases[count].end_offset <= p_high_watermark:
            release = releases[count]
            if isinstance(release, OpenInstance):
                self._commit_instance(release)
            else:
                self.watermarks.add(release.body)
                self.ids.drop(release.body)
                del self._releasing[release.body.s_offset]
                self.released.add(release.body, release.base_offset)
                if self._counts is not None:
                    self._counts.add_released(release.body.record_count, release.body.due_ms)
            count += 1
        if count:
            del releases[:count]

    def _commit_instance(self, release: OpenInstance) -> None:
        body = release.recurring
        body.open_count -= 1
        body.commit(release.due_ms, release.count, release.base_offset)
        if self._counts is not None:
            self._counts.add_released(body.record_count, release.due_ms)
        if self._resting.pop(body.s_offset, None) is not None:
            # The scheduler looks at the body at this time, and then finds out if it has ended.
            self.put_off(body, body.last_ms)

    # -- snapshots

    @property
    def can_be_kept(self) -> bool:
        """Return whether a snapshot can hold the whole state: it has no room for recurring and for
        damaged bodies."""
        if self.recurring or self._resting or self._damaged or self._has_unclear:
            return False
        return self.ids.are_open_packed()

    def leaving_bodies(self) -> list[Body]:
        """Return the bodies that are not pending now and would wait again if a write were lost."""
        return [*[release.body for release in self._releases], *self.ids.open_bodies()]

    def snapshot_offset(self, s_high_watermark: int) -> int:
        """Return an s-offset before which all known bodies and cancels are committed: at or before
        S's high watermark, and not between a note and the batch with which it counts."""
        first = self.ids.first_open(s_high_watermark)
        for body in [*self._parked[:1], *self.ids.open_bodies()]:
            if body.s_offset >= s_high_watermark:
                first = min(first, body.batch_offset - 1)
        return first

    # -- checkpoints

    def checkpoint(self, c: int, c_epoch: int) -> CheckpointNote | None:
        """Return the checkpoint for P's high watermark `c`, with which `commit_released` was called
        before; None if it would have too many exceptions or could be wrong."""
        if self._has_unclear or len(self._damaged) > CHECKPOINT_EXCEPTIONS_MAX:
            return None
        if len(self.recurring) > CHECKPOINT_RECURRING_MAX:
            return None
        exceptions: list[int] = []
        from_offset = 0
        for watermark in self.watermarks.watermarks:
            found = self.pending.at_or_below(watermark, from_offset)
            if found is None:
                return None
            exceptions += found
            others = [*self._parked, *self._damaged.values()]
            others += [release.body for release in self._releases]
            for body in others:
                if isinstance(body, RecurringBody):
                    continue
                if from_offset <= body.s_offset < watermark.before_offset and watermark.covers(
                    body.due_ms, body.s_offset
                ):
                    exceptions.append(body.s_offset)
            if len(exceptions) > CHECKPOINT_EXCEPTIONS_MAX:
                return None
            from_offset = watermark.before_offset
        exceptions.sort()
        return CheckpointNote(
            c, c_epoch, self.watermarks.copy(), exceptions, self._noted_recurrences()
        )

    def _noted_recurrences(self) -> list[NotedRecurrence]:
        return [
            NotedRecurrence(s_offset, body.committed_ms, body.committed_count)
            for s_offset, body in sorted(self.recurring.items())
        ]
