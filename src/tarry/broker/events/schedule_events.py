"""Events of topics with scheduled records: what happened to them in an interval, and what waits."""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.turn import Turn
from tarry.broker.events.kinds import VERSION, Event, ScheduleEvent
from tarry.broker.scheduling.scheduling import Scheduling, TopicSums
from tarry.schedule.counts import LATENESS_BUCKETS, TopicCounts


class _CountsBefore:
    """Counts of a topic at the end of the interval before; `counts` is what counts on."""

    def __init__(self, counts: TopicCounts) -> None:
        self.counts = counts
        self.total = 0
        self.parked = self.released = self.cancelled = self.refused = 0
        self.lateness = [0] * LATENESS_BUCKETS

    def catch_up(self) -> None:
        counts = self.counts
        self.total = counts.total
        self.parked, self.released = int(counts.parked), int(counts.released)
        self.cancelled, self.refused = int(counts.cancelled), int(counts.refused)
        self.lateness = counts.lateness.copy()


class ScheduleEventSource:
    """Source of one broker's events of scheduled records; `add` takes them."""

    def __init__(
        self, broker_id: int, turn: Turn, scheduling: Scheduling, add: Callable[[Event], None]
    ) -> None:
        self._broker_id = broker_id
        self._turn = turn
        self._scheduling = scheduling
        self._add = add
        self._before: dict[TopicCounts, _CountsBefore] = {}

    def tell(self, interval_ms: int) -> None:
        """Tell of each topic of which anything was counted since the last time."""
        before = self._before
        self._before = {}
        for sums in self._scheduling.sums():
            counts = sums.counts
            known = before.get(counts)
            if known is None:
                known = _CountsBefore(counts)
            if counts.total != known.total:
                self._tell_one(sums, known, interval_ms)
                known.catch_up()
            self._before[counts] = known

    def _tell_one(self, sums: TopicSums, before: _CountsBefore, interval_ms: int) -> None:
        counts = sums.counts
        lateness = {
            str(number): count - before.lateness[number]
            for number, count in enumerate(counts.lateness)
            if count > before.lateness[number]
        }
        self._add(
            ScheduleEvent(
                v=VERSION,
                at_ms=self._turn.now_wall_ms,
                broker=self._broker_id,
                interval_ms=interval_ms,
                topic=counts.topic,
                parked=int(counts.parked) - before.parked,
                released=int(counts.released) - before.released,
                cancelled=int(counts.cancelled) - before.cancelled,
                refused=int(counts.refused) - before.refused,
                pending=sums.pending_records,
                pending_bytes=sums.pending_bytes,
                furthest_due_ms=sums.furthest_due_ms,
                lateness=lateness,
                longest_late_ms=counts.take_longest_ms(),
            )
        )
