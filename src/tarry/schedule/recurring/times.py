"""Times of recurring bodies: when the next instance of each is due.

Parsing an expression takes up to a millisecond, and a parsed one takes up to 50 KB of memory.  The
expressions that were used last are kept, and shared by all bodies that have them.
"""

from __future__ import annotations

from tarry.base.limits import CRONS_KEPT_MAX
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.cron import Cron
from tarry.schedule.recurring.recurrence import Recurrence
from tarry.schedule.recurring.terms import UNBOUNDED, RecurrenceTerms


class RecurringTimes:
    """Parsed expressions by text and zone, the one that was used last at the end."""

    def __init__(self) -> None:
        self._crons: dict[tuple[str, str], Cron] = {}

    def cron(self, text: str, zone: str) -> Cron:
        """Return the parsed expression; `CronError` if it cannot be parsed."""
        key = (text, zone)
        cron = self._crons.pop(key, None)
        if cron is None:
            cron = Cron(text, zone)
            if len(self._crons) >= CRONS_KEPT_MAX:
                del self._crons[next(iter(self._crons))]
        self._crons[key] = cron
        return cron

    def first_ms(self, terms: RecurrenceTerms) -> int | None:
        """Return when the first instance is due; None if there is none."""
        return self._recurrence(terms).next_ms(terms.since_ms, 0, terms.since_ms)

    def next_ms(self, body: RecurringBody, now_wall_ms: int) -> int | None:
        """Return when the next instance is due, which may be before now; None if it has ended.

        `CronError` if this broker does not know the time zone.
        """
        recurrence = self._recurrence(body.terms)
        due_ms = recurrence.next_ms(body.search_ms, body.released_count, now_wall_ms)
        if due_ms is not None and due_ms > now_wall_ms:
            body.pass_until(due_ms)
        return due_ms

    def _recurrence(self, terms: RecurrenceTerms) -> Recurrence:
        end_ms = None if terms.end_ms == UNBOUNDED else terms.end_ms
        count = None if terms.count == UNBOUNDED else terms.count
        return Recurrence(self.cron(terms.cron, terms.zone), end_ms, count, terms.misfire)
