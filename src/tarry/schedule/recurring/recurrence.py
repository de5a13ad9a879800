"""Recurring records: the next due time after the last one, also when due times were missed.

A due time is missed if the next one is due as well: the broker was stopped for longer than a
period, or its clock was stepped forward.
"""

from __future__ import annotations

from tarry.schedule.recurring.cron import Cron
from tarry.schedule.recurring.terms import MISFIRE_ALL, MISFIRE_ONCE


class Recurrence:
    """Definition of a recurring record.

    `end_ms` is the last moment at which an instance may be due (milliseconds since 1970), `count`
    the largest number of instances; None is no bound.  `misfire` says which missed due times are
    released: `all` of them, `once` the latest one, `skip` none.  Those that are not released do not
    add to the count.
    """

    def __init__(self, cron: Cron, end_ms: int | None, count: int | None, misfire: str) -> None:
        self.cron = cron
        self.end_ms = end_ms
        self.count = count
        self.misfire = misfire

    def next_ms(self, last_ms: int, released: int, now_ms: int) -> int | None:
        """Return the next due time, which may be before `now_ms`; None if the record has ended.

        `last_ms` is the last due time, or the time of the definition; `released` the number of
        released instances.
        """
        if self.count is not None and released >= self.count:
            return None
        due_ms = self.cron.next_ms(last_ms)
        if due_ms is not None and due_ms < now_ms and self.misfire != MISFIRE_ALL:
            due_ms = self._behind_what_was_missed(due_ms, now_ms)
        if due_ms is None or (self.end_ms is not None and due_ms > self.end_ms):
            return None
        return due_ms

    def _behind_what_was_missed(self, due_ms: int, now_ms: int) -> int | None:
        # Due times behind an end in the past were not missed: they do not exist.
        until_ms = now_ms if self.end_ms is None else min(now_ms, self.end_ms)
        latest_ms = self.cron.last_ms(until_ms)
        if latest_ms is None or latest_ms <= due_ms:
            # Only one due time has passed: it is late, and not missed.
            return due_ms
        return latest_ms if self.misfire == MISFIRE_ONCE else self.cron.next_ms(now_ms)
