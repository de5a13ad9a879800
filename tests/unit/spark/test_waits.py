"""Waits of the event log: percentiles between bounds, sums over time, what is passed over."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.spark.told_events import MINUTE_MS, NOON_MS, operations, summed

from tarry.base.percentiles import Percentile, bounds_ms, percentile
from tarry.base.wait_buckets import bucket_of
from tarry.broker.events.kinds import VERSION
from tarry.spark.events.decoding import Tally, TimeSpan, decode_events
from tarry.spark.events.intervals import INTERVALS_MAX, LENGTHS_MS, begin_of, interval_for
from tarry.spark.events.tables import flat_row
from tarry.spark.jobs.waits import COLUMNS, WaitsOptions, sum_waits


@given(st.integers(0, 2**50))
def test_a_bucket_holds_just_what_is_counted_in_it(waited_ms: int) -> None:
    number = bucket_of(waited_ms)

    at_least_ms, at_most_ms = bounds_ms(number)

    assert at_least_ms <= waited_ms <= at_most_ms
    assert bucket_of(at_most_ms + 1) > number


@given(
    st.lists(st.integers(0, 3_600_000) | st.integers(0, 20), min_size=1, max_size=300),
    st.integers(1, 100),
)
def test_a_percentile_lies_between_its_bounds(waits_ms: list[int], percent: int) -> None:
    buckets = Counter(map(bucket_of, waits_ms))
    rank = -(-percent * len(waits_ms) // 100)
    exact_ms = sorted(waits_ms)[rank - 1]

    found = percentile(buckets, percent, max(waits_ms))

    assert found.at_least_ms <= exact_ms <= found.at_most_ms
    assert found.at_most_ms <= max(waits_ms)
    assert found.at_most_ms <= max(1, found.at_least_ms) * 2**0.5 or found.at_least_ms == exact_ms


def test_percentiles_of_nothing_and_of_short_waits_are_exact() -> None:
    assert percentile({}, 99, 0) == Percentile(0, 0)
    assert percentile({0: 3, 1: 1, 3: 5}, 50, 2) == Percentile(2, 2)


def test_waits_are_summed_up_by_purgatory_subject_and_interval() -> None:
    told = [
        operations(NOON_MS + 5_000, "Produce", "orders", [1, 2, 3]),
        operations(NOON_MS + 15_000, "Produce", "payments", [100]),
        operations(NOON_MS + MINUTE_MS, "Produce", "orders", [7, 8], expired=1),
        operations(NOON_MS + MINUTE_MS, "Fetch", "", [500], expired=1),
    ]

    found = summed(told, interval_ms=MINUTE_MS)

    rows = [(row.begin_ms, row.purgatory, row.completed) for row in found.intervals]
    assert rows == [
        (NOON_MS, "Produce", 4),
        (NOON_MS + MINUTE_MS, "Fetch", 1),
        (NOON_MS + MINUTE_MS, "Produce", 2),
    ]
    by_subject = {(row.purgatory, row.subject): row for row in found.subjects}
    orders = by_subject["Produce", "orders"]
    assert (orders.completed, orders.expired, orders.longest_ms) == (5, 1, 8)
    assert (orders.mean_ms, orders.p50) == (4.2, Percentile(3, 3))
    assert [row.expired for row in found.purgatories] == [1, 1]
    assert len(found.subject_intervals) == 4


def test_options_choose_purgatories_subjects_and_a_time() -> None:
    told = [
        operations(NOON_MS, "Produce", "orders", [1]),
        operations(NOON_MS, "Fetch", "orders", [2]),
        operations(NOON_MS, "Fetch", "payments", [3]),
        operations(NOON_MS + MINUTE_MS, "Fetch", "orders", [4]),
    ]

    span = TimeSpan(NOON_MS, NOON_MS + MINUTE_MS)
    found = summed(told, span, purgatories=("Fetch",), subjects=("orders",))

    assert [(row.purgatory, row.subject, row.longest_ms) for row in found.subjects] == [
        ("Fetch", "orders", 2)
    ]
    assert found.tally.events == 3


def test_what_is_not_known_is_passed_over_and_counted() -> None:
    known = operations(NOON_MS, "Produce", "orders", [1])
    values = [
        json.dumps(known).encode(),
        json.dumps({**known, "v": VERSION + 1}).encode(),
        json.dumps({"kind": "weather", "v": 1}).encode(),
        json.dumps({**known, "buckets": {"a": 1}}).encode(),
        b"no JSON",
        None,
    ]
    tally = Tally()

    found = list(decode_events(values, TimeSpan(), tally))

    assert len(found) == 1
    assert (tally.events, tally.passed_over) == (1, 5)
    assert "5 records were passed over" in tally.remarks()[0]


@pytest.mark.parametrize(
    "change",
    [
        {"at_ms": 10**18},
        {"at_ms": -(10**18)},
        {"at_ms": 10**30},
        {"completed": 10**400},
        {"longest_ms": 2**63},
        {"sum_ms": -5},
        {"buckets": {"\u00b2": 1}},
        {"buckets": {"9" * 5_000: 1}},
        # Its bounds would be numbers of three million digits.
        {"buckets": {"9999999": 1}},
        {"buckets": {"5": -3}},
    ],
)
def test_what_no_broker_tells_is_passed_over(change: dict[str, Any]) -> None:
    known = operations(NOON_MS, "Produce", "orders", [1])
    tally = Tally()

    values = [json.dumps(one).encode() for one in (known, {**known, **change})]
    found = sum_waits(decode_events(values, TimeSpan(), tally), WaitsOptions(), tally)

    assert (tally.events, tally.passed_over) == (1, 1)
    assert found.table().num_rows == 1


def test_what_brokers_dropped_is_told() -> None:
    common = {"kind": "broker", "v": VERSION, "broker": 1}
    found = summed(
        [
            {**common, "at_ms": NOON_MS, "what": "started"},
            {**common, "at_ms": NOON_MS + 1, "what": "counted", "dropped": 1_200},
            {**common, "at_ms": NOON_MS + 2, "what": "stalled", "stalled_ms": 300},
        ]
    )

    assert found.purgatories == []
    assert found.tally.started_ms == [NOON_MS]
    dropped, stalled = found.tally.remarks()
    assert dropped.startswith("1,200 events are missing")
    assert "300 ms" in stalled


def test_the_longest_operations_are_told_one_by_one() -> None:
    common = {"kind": "operation", "v": VERSION, "broker": 1, "purgatory": "Produce"}
    told = [
        {**common, "at_ms": NOON_MS, "subject": "t", "key": "t-0", "waited_ms": n, "expired": False}
        for n in range(3_000)
    ]

    found = summed(told)

    assert [one.waited_ms for one in found.longest] == list(range(2_999, 2_899, -1))


@given(st.integers(0, 10**9), st.integers(0, 3 * 365 * 86_400_000))
def test_an_interval_fits_a_span_of_time(first_ms: int, span_ms: int) -> None:
    length_ms = interval_for(first_ms, first_ms + span_ms)

    count = (begin_of(first_ms + span_ms, length_ms) - begin_of(first_ms, length_ms)) // length_ms
    assert count <= INTERVALS_MAX or length_ms == LENGTHS_MS[-1]


def test_a_table_has_its_columns_without_rows_too() -> None:
    pytest.importorskip("pyarrow")
    empty = summed([]).table()
    one = summed([operations(NOON_MS, "Produce", "orders", [1, 9])]).table()

    assert empty.column_names == one.column_names == list(COLUMNS)
    assert empty.schema == one.schema
    assert one.to_pylist()[0]["p99_at_most_ms"] == 9


def test_a_flat_row_names_both_bounds() -> None:
    row = summed([operations(NOON_MS, "Produce", "orders", [6, 100])]).subjects[0]

    assert (flat_row(row)["p50_at_least_ms"], flat_row(row)["p50_at_most_ms"]) == (6, 7)


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="an interval is 1 ms or longer"):
        WaitsOptions(interval_ms=0)
