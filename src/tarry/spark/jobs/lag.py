"""Job `lag`: how far groups are behind, by topic and partition, over time.

The event log tells of a partition when a group has committed for it, so a group that commits no
more shows the lag of its last commit.  Against a cluster without an event log, and for groups that
stand still, `sample_lag` asks for committed offsets and ends again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from tarry.base.ids import TopicPartition
from tarry.broker.events.kinds import VERSION, Event, LagEvent
from tarry.client import LATEST, Admin, ClientError
from tarry.client.settings import CLIENT_SETTINGS, COMMON
from tarry.spark.events.decoding import Tally, count_event
from tarry.spark.events.intervals import begin_of, interval_for
from tarry.spark.events.reading import EventSource
from tarry.spark.events.tables import table_of

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of the table, and their types.
COLUMNS: Final = {
    "begin": "time",
    "group": "string",
    "topic": "string",
    "partition": "int64",
    "committed": "int64",
    "end": "int64",
    "lag": "int64",
    "highest": "int64",
}

# Lag of groups at one moment, as an event log would tell it.
LagSample = list[LagEvent]

# In place of a broker's id where a client has asked.
NO_BROKER: Final = -1


@dataclass(frozen=True)
class LagOptions:
    """Options of the job.  What is empty takes all."""

    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    # None: as fits the time that is told of.
    interval_ms: int | None = None

    def __post_init__(self) -> None:
        if self.interval_ms is not None and self.interval_ms < 1:
            raise ValueError(f"interval_ms={self.interval_ms}: an interval is 1 ms or longer")

    def takes(self, group: str, topic: str) -> bool:
        """Return true if a group's lag in a topic is asked for."""
        if self.groups and group not in self.groups:
            return False
        return not self.topics or topic in self.topics


@dataclass(frozen=True)
class PartitionLag:
    """Lag of a group in a partition, in an interval or over all the time."""

    begin_ms: int
    # When the last of what is counted was told.
    at_ms: int
    group: str
    topic: str
    partition: int
    # At that moment.
    committed: int
    end: int
    lag: int
    # The highest of what is counted.
    highest: int


@dataclass(frozen=True)
class GroupLag:
    """Lag of a group in all partitions of a topic at the end of an interval.

    A partition of which the interval tells nothing counts as it was told last.
    """

    begin_ms: int
    group: str
    topic: str
    partitions: int
    lag: int


@dataclass(frozen=True)
class LagSums:
    """Result of the job.  Times are calendar ms."""

    interval_ms: int
    # Each partition as it was told last, and in each interval that tells of it.
    partitions: list[PartitionLag]
    partition_intervals: list[PartitionLag]
    # Each group and topic in each interval.
    intervals: list[GroupLag]
    tally: Tally = field(default_factory=Tally)

    def table(self) -> pa.Table:
        """Return partitions in each interval as a table of pyarrow, a row each."""
        rows = [{**asdict(one), "begin": one.begin_ms} for one in self.partition_intervals]
        return table_of(COLUMNS, rows)


def lag(source: EventSource, options: LagOptions | None = None) -> LagSums:
    """Sum up the lag that an event log tells of; raises EventsMissing where none is."""
    tally = Tally()
    return sum_lag(source.events(tally), options or LagOptions(), tally)


def sum_lag(events: Iterable[Event], options: LagOptions, tally: Tally) -> LagSums:
    """Sum up the lag of events, whose tally is complete when they are at their end."""
    told = [
        event
        for event in events
        # A partition that is gone has no end to be behind.
        if isinstance(event, LagEvent)
        and event.end >= 0
        and options.takes(event.group, event.topic)
    ]
    first_ms = tally.first_ms or 0
    interval_ms = options.interval_ms or interval_for(first_ms, tally.last_ms or 0)
    by_interval: dict[tuple[int, str, str, int], PartitionLag] = {}
    whole: dict[tuple[str, str, int], PartitionLag] = {}
    for event in told:
        place = event.group, event.topic, event.partition
        begin_ms = begin_of(event.at_ms, interval_ms)
        key = begin_ms, *place
        by_interval[key] = _next(by_interval.get(key), event, begin_ms)
        whole[place] = _next(whole.get(place), event, first_ms)
    partition_intervals = [by_interval[key] for key in sorted(by_interval)]
    return LagSums(
        interval_ms=interval_ms,
        partitions=[whole[place] for place in sorted(whole)],
        partition_intervals=partition_intervals,
        intervals=list(_group_intervals(partition_intervals)),
        tally=tally,
    )


def _next(before: PartitionLag | None, event: LagEvent, begin_ms: int) -> PartitionLag:
    # A commit beyond the end is one of records that an unclean start has lost.
    behind = max(0, event.end - event.committed)
    return PartitionLag(
        begin_ms=begin_ms,
        at_ms=event.at_ms,
        group=event.group,
        topic=event.topic,
        partition=event.partition,
        committed=event.committed,
        end=event.end,
        lag=behind,
        highest=behind if before is None else max(before.highest, behind),
    )


def _group_intervals(partition_intervals: list[PartitionLag]) -> Iterator[GroupLag]:
    """Yield the lag of each group and topic in each interval that tells of any."""
    by_begin: dict[int, list[PartitionLag]] = {}
    for one in partition_intervals:
        by_begin.setdefault(one.begin_ms, []).append(one)
    known: dict[tuple[str, str], dict[int, int]] = {}
    for begin_ms in sorted(by_begin):
        for one in by_begin[begin_ms]:
            known.setdefault((one.group, one.topic), {})[one.partition] = one.lag
        for (group, topic), lags in sorted(known.items()):
            yield GroupLag(begin_ms, group, topic, len(lags), sum(lags.values()))


# --- Samples


def sample_lag(
    settings: Mapping[str, str],
    options: LagOptions,
    every_s: float,
    for_s: float,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[LagSample]:
    """Ask a cluster of any kind for the lag of its groups, every so often; yield each sample.

    `settings` are a client's, under Kafka's keys.
    """
    common = {key: text for key, text in settings.items() if CLIENT_SETTINGS[key].scope == COMMON}
    with closing(Admin(common)) as admin:
        begin_s = time.monotonic()
        samples = 0
        while True:
            yield _sample(admin, options)
            samples += 1
            next_s = samples * every_s
            if next_s > for_s:
                return
            wait(max(0.0, begin_s + next_s - time.monotonic()))


def _sample(admin: Admin, options: LagOptions) -> LagSample:
    groups = options.groups or tuple(group.group_id for group in admin.list_groups())
    committed = admin.group_offsets(groups)
    wanted: dict[TopicPartition, int] = {}
    for offsets in committed.values():
        if not isinstance(offsets, ClientError):
            wanted.update(dict.fromkeys(offsets, LATEST))
    ends = admin.offsets(wanted) if wanted else {}
    now_ms = time.time_ns() // 1_000_000
    found = []
    for group, offsets in sorted(committed.items()):
        if isinstance(offsets, ClientError):
            continue
        for (topic, partition), one in sorted(offsets.items()):
            end = ends.get((topic, partition))
            if end is None or isinstance(end, ClientError) or not options.takes(group, topic):
                continue
            found.append(
                LagEvent(
                    v=VERSION,
                    at_ms=now_ms,
                    broker=NO_BROKER,
                    group=group,
                    topic=topic,
                    partition=partition,
                    committed=one.offset,
                    end=end.offset,
                )
            )
    return found


def sum_samples(samples: Iterable[LagSample], options: LagOptions) -> LagSums:
    """Sum up samples."""
    tally = Tally()
    events = [event for sample in samples for event in sample]
    for event in events:
        count_event(event, tally)
    return sum_lag(events, options, tally)
