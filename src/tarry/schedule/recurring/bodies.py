"""Recurring bodies: what waits again at its next time as soon as it was released.

An instance is the body at one of its due times.  Several may be under way; what P's high watermark
has passed is `committed`.  Hot.
"""

from __future__ import annotations

from tarry.schedule.entries import NO_POSITION
from tarry.schedule.pending import Body
from tarry.schedule.recurring.terms import UNBOUNDED, RecurrenceTerms


class RecurringBody(Body):
    """Record of the companion log that comes again and again; always a place of its batch.

    While it waits, `due_ms` is when it is looked at.  That is when the next instance is due; or
    before, since to find the next time may take milliseconds; or after, if it is late: others that
    are due by now come first.  `last_ms` is when the last instance was due that was released, or
    when the record was defined, `released_count` how often it came.
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
        # The instance that is being released.
        self.instance_ms = due_ms
        # The next instance is due later than this: it was found when times before were skipped.
        self._passed_ms = terms.since_ms
        # Due time of the last instance whose release counts in P, and how many such instances came.
        self.committed_ms = terms.since_ms
        self.committed_count = 0
        # Where the last of these is in P, or -1.
        self.committed_offset = -1
        # Instances whose releases are under way.
        self.open_count = 0
        # There is no next time.  It is kept until its last release counts and a note says so.
        self.has_ended = False

    @property
    def is_packed(self) -> bool:
        return False

    @property
    def is_over(self) -> bool:
        """Return whether no other instance comes, as far as that is known by now."""
        return self.has_ended or self.released_count == self.terms.count

    def terms_from_now_on(self) -> RecurrenceTerms:
        """Return what is left of the terms; only while no release is under way."""
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
        """Note that there is no instance before this one, which is not due yet.

        What was skipped by then must not make it look like one that comes too late.
        """
        self._passed_ms = due_ms - 1

    def begin_instance(self, due_ms: int) -> None:
        """Note which instance is to be released now."""
        self.instance_ms = due_ms

    def add_instance(self, due_ms: int) -> None:
        """Note that the instance of this time was released."""
        self.last_ms = due_ms
        self.released_count += 1

    def commit(self, due_ms: int, count: int, offset: int) -> None:
        """Note that what was released up to this instance, the last of so many, counts in P."""
        self.committed_ms = due_ms
        self.committed_count = count
        self.committed_offset = offset

    def take_back(self, last_ms: int, count: int) -> None:
        """Go back to when it had come so often: P has not kept what was released since."""
        self.last_ms = last_ms
        self.released_count = count
        self._passed_ms = last_ms
        self.due_ms = last_ms
        self.has_ended = False
