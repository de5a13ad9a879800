"""Job `waits`: how long operations waited in the broker, and how many expired, over time.

Counts of one purgatory and one topic or group are summed up over intervals, over all brokers.  An
event counts in the interval in which it was told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from tarry.base.percentiles import Percentile, percentile
from tarry.broker.events.kinds import Event, OperationEvent, OperationsEvent
from tarry.spark.events.decoding import Tally
from tarry.spark.events.intervals import begin_of, interval_for
from tarry.spark.events.reading import EventSource
from tarry.spark.events.tables import flat_row, table_of

if TYPE_CHECKING:
    import pyarrow as pa

# Operations told one by one, the longest of all.
LONGEST_MAX: Final = 100

# Columns of the table, and their types.
COLUMNS: Final = {
    "begin": "time",
    "purgatory": "string",
    "subject": "string",
    "completed": "int64",
    "expired": "int64",
    "mean_ms": "float64",
    "p50_at_least_ms": "int64",
    "p50_at_most_ms": "int64",
    "p90_at_least_ms": "int64",
    "p90_at_most_ms": "int64",
    "p99_at_least_ms": "int64",
    "p99_at_most_ms": "int64",
    "longest_ms": "int64",
}


@dataclass(frozen=True)
class WaitsOptions:
    """Options of the job.  What is empty takes all."""

    purgatories: tuple[str, ...] = ()
    # Topics and groups.
    subjects: tuple[str, ...] = ()
    # None: as fits the time that the log tells of.
    interval_ms: int | None = None

    def __post_init__(self) -> None:
        if self.interval_ms is not None and self.interval_ms < 1:
            raise ValueError(f"interval_ms={self.interval_ms}: an interval is 1 ms or longer")

    def takes(self, event: OperationsEvent | OperationEvent) -> bool:
        """Return true if an event is asked for."""
        if self.purgatories and event.purgatory not in self.purgatories:
            return False
        return not self.subjects or event.subject in self.subjects


@dataclass(frozen=True)
class WaitRow:
    """Waits of one purgatory, or of one of its topics or groups, in a span of time."""

    begin_ms: int
    purgatory: str
    # Topic or group; "" where operations of several are counted together.
    subject: str
    completed: int
    # Those of them that their deadline ended.
    expired: int
    mean_ms: float
    p50: Percentile
    p90: Percentile
    p99: Percentile
    longest_ms: int


@dataclass(frozen=True)
class LongWait:
    """Operation that waited long, or that expired."""

    at_ms: int
    purgatory: str
    subject: str
    # What it waited for: topic and partition, or group and member.
    key: str
    waited_ms: int
    expired: bool


@dataclass(frozen=True)
class WaitSums:
    """Result of the job.  Times are calendar ms."""

    interval_ms: int
    # Each purgatory over all the time, and in each interval.
    purgatories: list[WaitRow]
    intervals: list[WaitRow]
    # Each topic and group over all the time, and in each interval.
    subjects: list[WaitRow]
    subject_intervals: list[WaitRow]
    longest: list[LongWait]
    tally: Tally = field(default_factory=Tally)

    def table(self) -> pa.Table:
        """Return topics and groups in each interval as a table of pyarrow, a row each."""
        return table_of(COLUMNS, [flat_row(row) for row in self.subject_intervals])


def waits(source: EventSource, options: WaitsOptions | None = None) -> WaitSums:
    """Sum up the waits that an event log tells of; raises EventsMissing where none is."""
    tally = Tally()
    return sum_waits(source.events(tally), options or WaitsOptions(), tally)


def sum_waits(events: Iterable[Event], options: WaitsOptions, tally: Tally) -> WaitSums:
    """Sum up the waits of events, whose tally is complete when they are at their end."""
    counted: list[OperationsEvent] = []
    single: list[OperationEvent] = []
    for event in events:
        if isinstance(event, OperationsEvent) and options.takes(event):
            counted.append(event)
        elif isinstance(event, OperationEvent) and options.takes(event):
            single.append(event)
            if len(single) > 10 * LONGEST_MAX:
                single = _longest(single)
    first_ms, last_ms = tally.first_ms or 0, tally.last_ms or 0
    interval_ms = options.interval_ms or interval_for(first_ms, last_ms)
    sums = _Sums(interval_ms, first_ms)
    for each in counted:
        sums.add(each)
    return WaitSums(
        interval_ms=interval_ms,
        purgatories=list(sums.rows(sums.purgatories)),
        intervals=list(sums.rows(sums.intervals)),
        subjects=list(sums.rows(sums.subjects)),
        subject_intervals=list(sums.rows(sums.subject_intervals)),
        longest=[_long_wait(each) for each in _longest(single)],
        tally=tally,
    )


def _longest(single: list[OperationEvent]) -> list[OperationEvent]:
    return nlargest(LONGEST_MAX, single, key=lambda event: event.waited_ms)


def _long_wait(event: OperationEvent) -> LongWait:
    return LongWait(
        event.at_ms, event.purgatory, event.subject, event.key, event.waited_ms, event.expired
    )


# Begin of the interval, purgatory, subject.
_Place = tuple[int, str, str]


class _Sums:
    """Sums by time and place."""

    def __init__(self, interval_ms: int, first_ms: int) -> None:
        self._interval_ms = interval_ms
        self._first_ms = first_ms
        self.purgatories: dict[_Place, _Sum] = {}
        self.intervals: dict[_Place, _Sum] = {}
        self.subjects: dict[_Place, _Sum] = {}
        self.subject_intervals: dict[_Place, _Sum] = {}

    def add(self, event: OperationsEvent) -> None:
        begin_ms = begin_of(event.at_ms, self._interval_ms)
        purgatory, subject = event.purgatory, event.subject
        for sums, place in (
            (self.purgatories, (self._first_ms, purgatory, "")),
            (self.intervals, (begin_ms, purgatory, "")),
            (self.subjects, (self._first_ms, purgatory, subject)),
            (self.subject_intervals, (begin_ms, purgatory, subject)),
        ):
            sums.setdefault(place, _Sum()).add(event)

    def rows(self, sums: dict[_Place, _Sum]) -> Iterator[WaitRow]:
        for place in sorted(sums):
            yield sums[place].row(*place)


class _Sum:
    """Waits of any number of events, as one."""

    def __init__(self) -> None:
        self._completed = 0
        self._expired = 0
        self._sum_ms = 0
        self._longest_ms = 0
        self._buckets: Counter[int] = Counter()

    def add(self, event: OperationsEvent) -> None:
        self._completed += event.completed
        self._expired += event.expired
        self._sum_ms += event.sum_ms
        self._longest_ms = max(self._longest_ms, event.longest_ms)
        self._buckets.update({int(name): count for name, count in event.buckets.items()})

    def row(self, begin_ms: int, purgatory: str, subject: str) -> WaitRow:
        p50, p90, p99 = (
            percentile(self._buckets, percent, self._longest_ms) for percent in (50, 90, 99)
        )
        return WaitRow(
            begin_ms=begin_ms,
            purgatory=purgatory,
            subject=subject,
            completed=self._completed,
            expired=self._expired,
            mean_ms=round(self._sum_ms / self._completed, 3) if self._completed else 0.0,
            p50=p50,
            p90=p90,
            p99=p99,
            longest_ms=self._longest_ms,
        )
