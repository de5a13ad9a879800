"""Recurring bodies: a body that was released waits at once for its next due time.

An instance is the body at one of its due times.  Releases of several instances may be under way;
those that P's high watermark has passed are `committed`.  Hot.
"""

from __future__ import annotations

from tarry.schedule.entries import NO_POSITION
from tarry.schedule.pending import Body
from tarry.schedule.recurring.terms import UNBOUNDED, RecurrenceTerms


class RecurringBody(Body):
    """Record of the companion log that comes again and again; always a place of its batch.

    While the body waits, `due_ms` is when it is looked at.  Usually that is when the next instance
    is due.  It is before that while the next due time is not found, which may take milliseconds; it
    is after that if the instance is late, so that other due bodies come first.  `last_ms` is the
    due time of the last released instance, or the time of the definition; `released_count` is the
    number of released instances.
    """

    def __init__(
        self,
        s_offset: int,
        due_ms: int,
        leader_epoch: int,
        size: int,
        terms: RecurrenceTerms,
        *,
        place: int,
        schedule_id: bytes = b"",
        position: int = NO_POSITION,
    ) -> None:
        super().__init__(
            s_offset,
            due_ms,
            leader_epoch,
            1,
            size,
            place=place,
            schedule_id=schedule_id,
            position=position,
        )
        self.terms = terms
        self.last_ms = terms.since_ms
        self.released_count = 0
        # Due time of the instance that is being released.
        self.instance_ms = due_ms
        # Time behind which the next instance is due: earlier due times were skipped.
        self._passed_ms = terms.since_ms
        # Due time of the last instance whose release is committed in P, and number of such ones.
        self.committed_ms = terms.since_ms
        self.committed_count = 0
        # Offset in P of the last committed instance; -1 if there is none or it is not known.
        self.committed_offset = -1
        # Number of instances whose releases are under way.
        self.open_count = 0
        # True if there is no next due time.  The body stays until its last release is committed
        # and a note says that it has ended.
        self.has_ended = False

    @property
    def is_packed(self) -> bool:
        return False

    @property
    def is_over(self) -> bool:
        """Return whether no other instance comes, as far as known by now."""
        return self.has_ended or self.released_count == self.terms.count

    def terms_from_now_on(self) -> RecurrenceTerms:
        """Return the terms for the instances that are left; no release may be under way."""
        assert self.open_count == 0
        terms = self.terms
        count = terms.count
        if count != UNBOUNDED:
            count -= self.released_count
        return RecurrenceTerms(
            terms.cron,
            terms.zone,
            self.search_ms,
            end_ms=terms.end_ms,
            count=count,
            misfire=terms.misfire,
        )

    @property
    def search_ms(self) -> int:
        """Time behind which the next instance is looked for."""
        return max(self.last_ms, self._passed_ms)

    def pass_until(self, due_ms: int) -> None:
        """Note that no instance is left before the one at `due_ms`, which is not due yet.

        A later search begins right before `due_ms`.  Else it would begin at skipped due times, and
        take this instance for a late one.
        """
        self._passed_ms = due_ms - 1

    def begin_instance(self, due_ms: int) -> None:
        """Note that the instance at `due_ms` is to be released now."""
        self.instance_ms = due_ms

    def add_instance(self, due_ms: int) -> None:
        """Note that the instance at `due_ms` was released."""
        self.last_ms = due_ms
        self.released_count += 1

    def commit(self, due_ms: int, count: int, offset: int) -> None:
        """Note that the releases up to the instance at `due_ms`, `count` in all, are committed."""
        self.committed_ms = due_ms
        self.committed_count = count
        self.committed_offset = offset

    def take_back(self, last_ms: int, count: int) -> None:
        """Go back to the instance at `last_ms`, the `count`th: P has lost the releases since."""
        self.last_ms = last_ms
        self.released_count = count
        self._passed_ms = last_ms
        self.due_ms = last_ms
        self.has_ended = False
