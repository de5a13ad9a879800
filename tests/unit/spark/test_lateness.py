"""Job `lateness`: scheduled records of the event log, summed up by topic and interval."""

from __future__ import annotations

import pytest
from tests.support.spark.told_events import MINUTE_MS, NOON_MS

from tarry.base.percentiles import Percentile
from tarry.base.wait_buckets import bucket_of
from tarry.broker.events.kinds import VERSION, ScheduleEvent
from tarry.spark.events.decoding import Tally
from tarry.spark.jobs.lateness import COLUMNS, LatenessOptions, LatenessSums, sum_lateness


def told(at_ms: int, topic: str, *late_ms: int, broker: int = 1, **counts: int) -> ScheduleEvent:
    lateness: dict[str, int] = {}
    for each in late_ms:
        name = str(bucket_of(each))
        lateness[name] = lateness.get(name, 0) + 1
    none = {"parked": 0, "cancelled": 0, "refused": 0}
    return ScheduleEvent(
        v=VERSION,
        at_ms=at_ms,
        broker=broker,
        interval_ms=10_000,
        topic=topic,
        released=len(late_ms),
        pending=0,
        pending_bytes=0,
        furthest_due_ms=-1,
        lateness=lateness,
        longest_late_ms=max(late_ms, default=0),
        **{**none, **counts},
    )


def summed(*events: ScheduleEvent, **options: object) -> LatenessSums:
    return sum_lateness(events, LatenessOptions(**options), Tally())  # type: ignore[arg-type]


def test_brokers_are_summed_up_by_topic_and_minute() -> None:
    found = summed(
        told(NOON_MS, "tasks", 1, 1, 2, parked=5),
        told(NOON_MS + 10_000, "tasks", 400, broker=2, cancelled=2),
        told(NOON_MS + MINUTE_MS, "tasks", 3, refused=1),
        told(NOON_MS, "calls", 7),
    )

    rows = [(row.begin_ms, row.topic, row.released) for row in found.intervals]
    assert rows == [
        (NOON_MS, "calls", 1),
        (NOON_MS, "tasks", 4),
        (NOON_MS + MINUTE_MS, "tasks", 1),
    ]
    tasks = found.topics[1]
    assert (tasks.parked, tasks.released, tasks.cancelled, tasks.refused) == (5, 5, 2, 1)
    assert (tasks.p50, tasks.longest_ms) == (Percentile(2, 2), 400)
    assert tasks.p99 == tasks.p99_9 == Percentile(400, 400)


def test_a_topic_without_a_release_has_nothing_that_is_late() -> None:
    (row,) = summed(told(NOON_MS, "tasks", parked=3)).topics

    assert (row.released, row.p99_9, row.longest_ms) == (0, Percentile(0, 0), 0)


def test_options_choose_topics_and_the_interval() -> None:
    events = [told(NOON_MS + at * MINUTE_MS, topic, 1) for at in range(4) for topic in ("a", "b")]

    found = summed(*events, topics=("b",), interval_ms=2 * MINUTE_MS)

    assert {row.topic for row in found.intervals} == {"b"}
    assert {row.begin_ms % (2 * MINUTE_MS) for row in found.intervals} == {0}
    assert sum(row.released for row in found.intervals) == 4
    assert [row.topic for row in found.topics] == ["b"]


def test_an_interval_is_some_time() -> None:
    with pytest.raises(ValueError, match="interval_ms=0"):
        LatenessOptions(interval_ms=0)


def test_the_table_has_a_row_for_each_topic_and_minute() -> None:
    table = summed(told(NOON_MS, "tasks", 1, 90)).table()

    assert table.column_names == list(COLUMNS)
    (row,) = table.to_pylist()
    assert (row["topic"], row["released"], row["longest_ms"]) == ("tasks", 2, 90)
    assert row["p99_9_at_most_ms"] == 90
