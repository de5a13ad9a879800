"""Lag of groups over time, from the event log and from samples of any cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.spark.told_events import MINUTE_MS, NOON_MS

from tarry.broker.events.kinds import VERSION, LagEvent
from tarry.spark.jobs.lag import COLUMNS, LagOptions, LagSums, sample_lag, sum_samples
from tarry.testing import Tarry


def behind(at_ms: int, committed: int, end: int, **changed: object) -> LagEvent:
    told = {"group": "billing", "topic": "orders", "partition": 0, **changed}
    return LagEvent(v=VERSION, at_ms=at_ms, broker=1, committed=committed, end=end, **told)  # type: ignore[arg-type]


def summed(*events: LagEvent, **options: object) -> LagSums:
    given = {"interval_ms": MINUTE_MS, **options}
    return sum_samples([list(events)], LagOptions(**given))  # type: ignore[arg-type]


def test_a_partition_is_told_as_it_was_last_and_with_its_highest_lag() -> None:
    found = summed(
        behind(NOON_MS, 0, 100),
        behind(NOON_MS + 10_000, 50, 110),
        behind(NOON_MS + MINUTE_MS, 110, 110),
    )

    (whole,) = found.partitions
    assert (whole.committed, whole.end, whole.lag, whole.highest) == (110, 110, 0, 100)
    assert whole.at_ms == NOON_MS + MINUTE_MS
    assert [(one.lag, one.highest) for one in found.partition_intervals] == [(60, 100), (0, 0)]


def test_a_group_keeps_the_lag_of_partitions_that_are_not_told_again() -> None:
    found = summed(
        behind(NOON_MS, 0, 10),
        behind(NOON_MS, 0, 5, partition=1),
        behind(NOON_MS + MINUTE_MS, 10, 10),
        behind(NOON_MS + MINUTE_MS, 1, 2, topic="payments"),
    )

    told = [(one.begin_ms, one.topic, one.partitions, one.lag) for one in found.intervals]
    assert told == [
        (NOON_MS, "orders", 2, 15),
        (NOON_MS + MINUTE_MS, "orders", 2, 5),
        (NOON_MS + MINUTE_MS, "payments", 1, 1),
    ]


def test_what_is_gone_or_lost_is_not_behind() -> None:
    found = summed(behind(NOON_MS, 7, -1, partition=1), behind(NOON_MS, 12, 10))

    assert [(one.partition, one.lag) for one in found.partitions] == [(0, 0)]


def test_groups_and_topics_are_chosen() -> None:
    told = [
        behind(NOON_MS, 0, 1),
        behind(NOON_MS, 0, 1, topic="b"),
        behind(NOON_MS, 0, 1, group="x"),
    ]

    found = summed(*told, groups=("billing",), topics=("orders",))

    assert [(one.group, one.topic) for one in found.partitions] == [("billing", "orders")]


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="an interval is 1 ms or longer"):
        LagOptions(interval_ms=0)


def test_a_table_has_its_columns_without_rows_too() -> None:
    pytest.importorskip("pyarrow")

    assert summed().table().column_names == list(COLUMNS)
    assert summed(behind(NOON_MS, 4, 9)).table().to_pylist()[0]["lag"] == 5


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    """A broker without an event log, as Apache Kafka is one."""
    with Tarry() as tarry:
        yield tarry


def test_samples_tell_how_groups_catch_up(broker: Tarry) -> None:
    broker.topic("orders", partitions=2)
    broker.send("orders", b"a", b"b", b"c", partition=0)
    places = {("orders", 0): 1, ("orders", 1): 0}
    broker.admin.commit_group_offsets("billing", places)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        broker.admin.commit_group_offsets("billing", {("orders", 0): 2 + len(waited) - 1})

    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "not an admin's"}
    samples = list(sample_lag(settings, LagOptions(topics=("orders",)), 0.001, 0.002, wait))

    assert len(waited) == 2
    found = sum_samples(samples, LagOptions())
    assert [[one.end - one.committed for one in sample] for sample in samples] == [
        [2, 0],
        [1, 0],
        [0, 0],
    ]
    assert {one.partition: (one.lag, one.highest) for one in found.partitions} == {
        0: (0, 2),
        1: (0, 0),
    }


def test_a_cluster_without_groups_gives_empty_samples(broker: Tarry) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}

    samples = list(sample_lag(settings, LagOptions(groups=("nobody",)), 1, 0))

    assert samples == [[]]
    assert sum_samples(samples, LagOptions()).partitions == []
