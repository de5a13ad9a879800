"""Job `lateness`: how late scheduled records came, by topic and interval, and how many.

A record is late by the time from when it was due until consumers could see it.  The broker that
released it has counted that: records keep timestamps of their own and do not tell when they came.
An event counts in the interval in which it was told; brokers are summed up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tarry.base.percentiles import Percentile, percentile
from tarry.broker.events.kinds import Event, ScheduleEvent
from tarry.spark.events.decoding import Tally
from tarry.spark.events.intervals import begin_of
from tarry.spark.events.reading import EventSource
from tarry.spark.events.tables import flat_row, table_of

if TYPE_CHECKING:
    import pyarrow as pa

MINUTE_MS: Final = 60_000

# Columns of the table, and their types.
COLUMNS: Final = {
    "begin": "time",
    "topic": "string",
    "parked": "int64",
    "released": "int64",
    "cancelled": "int64",
    "refused": "int64",
    "p50_at_least_ms": "int64",
    "p50_at_most_ms": "int64",
    "p99_at_least_ms": "int64",
    "p99_at_most_ms": "int64",
    "p99_9_at_least_ms": "int64",
    "p99_9_at_most_ms": "int64",
    "longest_ms": "int64",
}


@dataclass(frozen=True)
class LatenessOptions:
    """Options of the job.  No topics: all of them."""

    topics: tuple[str, ...] = ()
    interval_ms: int = MINUTE_MS

    def __post_init__(self) -> None:
        if self.interval_ms < 1:
            raise ValueError(f"interval_ms={self.interval_ms}: an interval is 1 ms or longer")


@dataclass(frozen=True)
class LatenessRow:
    """Scheduled records of one topic in a span of time."""

    begin_ms: int
    topic: str
    parked: int
    released: int
    cancelled: int
    refused: int
    # Of those that were released.
    p50: Percentile
    p99: Percentile
    p99_9: Percentile
    longest_ms: int


@dataclass(frozen=True)
class LatenessSums:
    """Result of the job.  Times are calendar ms."""

    interval_ms: int
    # Each topic over all the time, and in each interval.
    topics: list[LatenessRow]
    intervals: list[LatenessRow]
    tally: Tally = field(default_factory=Tally)

    def table(self) -> pa.Table:
        """Return the topics in each interval as a table of pyarrow, a row each."""
        return table_of(COLUMNS, [flat_row(row) for row in self.intervals])


def lateness(source: EventSource, options: LatenessOptions | None = None) -> LatenessSums:
    """Sum up the lateness that an event log tells of; raises EventsMissing where none is."""
    tally = Tally()
    return sum_lateness(source.events(tally), options or LatenessOptions(), tally)


def sum_lateness(events: Iterable[Event], options: LatenessOptions, tally: Tally) -> LatenessSums:
    """Sum up the lateness of events, whose tally is complete when they are at their end."""
    topics: dict[str, _LatenessSum] = {}
    intervals: dict[tuple[int, str], _LatenessSum] = {}
    for event in events:
        if not isinstance(event, ScheduleEvent):
            continue
        if options.topics and event.topic not in options.topics:
            continue
        begin_ms = begin_of(event.at_ms, options.interval_ms)
        topics.setdefault(event.topic, _LatenessSum()).add(event)
        intervals.setdefault((begin_ms, event.topic), _LatenessSum()).add(event)
    first_ms = tally.first_ms or 0
    whole = {(first_ms, topic): each for topic, each in topics.items()}
    return LatenessSums(options.interval_ms, list(_rows(whole)), list(_rows(intervals)), tally)


def _rows(sums: dict[tuple[int, str], _LatenessSum]) -> Iterator[LatenessRow]:
    for place in sorted(sums):
        yield sums[place].row(*place)


class _LatenessSum:
    """Events of one topic, as one."""

    def __init__(self) -> None:
        self._parked = self._released = self._cancelled = self._refused = 0
        self._longest_ms = 0
        self._buckets: Counter[int] = Counter()

    def add(self, event: ScheduleEvent) -> None:
        self._parked += event.parked
        self._released += event.released
        self._cancelled += event.cancelled
        self._refused += event.refused
        self._longest_ms = max(self._longest_ms, event.longest_late_ms)
        self._buckets.update({int(name): count for name, count in event.lateness.items()})

    def row(self, begin_ms: int, topic: str) -> LatenessRow:
        p50, p99, p99_9 = (
            percentile(self._buckets, percent, self._longest_ms) for percent in (50, 99, 99.9)
        )
        return LatenessRow(
            begin_ms=begin_ms,
            topic=topic,
            parked=self._parked,
            released=self._released,
            cancelled=self._cancelled,
            refused=self._refused,
            p50=p50,
            p99=p99,
            p99_9=p99_9,
            longest_ms=self._longest_ms,
        )
