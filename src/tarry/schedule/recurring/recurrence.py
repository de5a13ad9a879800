"""Recurring records: which time comes after the last one, also when times were missed.

A time is missed if the one behind it is due as well: the broker was stopped for longer than a
period, or its clock was stepped forward.
"""

from __future__ import annotations

from tarry.schedule.recurring.cron import Cron
from tarry.schedule.recurring.terms import MISFIRE_ALL, MISFIRE_ONCE


class Recurrence:
    """Definition of a recurring record.

    `end_ms` is the last moment at which it may be due (milliseconds since 1970), `count` how often
    it comes at most; None is no bound.  `misfire` says what missed times do: `all` has each of
    them released, `once` the latest one, `skip` none.  Missed times that are not released do not
    count.
    """

    def __init__(self, cron: Cron, end_ms: int | None, count: int | None, misfire: str) -> None:
        self.cron = cron
        self.end_ms = end_ms
        self.count = count
        self.misfire = misfire

    def next_ms(self, last_ms: int, released: int, now_ms: int) -> int | None:
        """Return when it is due next, which may be before `now_ms`; None if it has ended.

        `last_ms` is when it was due last, or when it was defined; `released` how often it came.
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
        # An end in the past also ends what was missed.
        until_ms = now_ms if self.end_ms is None else min(now_ms, self.end_ms)
        latest_ms = self.cron.last_ms(until_ms)
        if latest_ms is None or latest_ms <= due_ms:
            # It is late by less than a period.
            return due_ms
        return latest_ms if self.misfire == MISFIRE_ONCE else self.cron.next_ms(now_ms)
