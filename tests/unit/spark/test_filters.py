"""Filters: conditions narrow offsets, never too much."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

pyspark = pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from tarry.spark.reading.filters import narrowed_range, time_least_ms  # noqa: E402
from tarry.spark.reading.plan import ReadRange  # noqa: E402

OFFSET = ("offset",)


@pytest.mark.parametrize(
    ("name", "arguments", "offsets"),
    [
        ("EqualTo", (OFFSET, 15), (15, 16)),
        ("EqualTo", (OFFSET, 50), (20, 20)),
        ("GreaterThan", (OFFSET, 15), (16, 20)),
        ("GreaterThanOrEqual", (OFFSET, 15), (15, 20)),
        ("LessThan", (OFFSET, 15), (10, 15)),
        ("LessThan", (OFFSET, 5), (10, 10)),
        ("LessThanOrEqual", (OFFSET, 15), (10, 16)),
        ("In", (OFFSET, (17, 12)), (12, 18)),
        ("IsNotNull", (OFFSET,), (10, 20)),
        ("EqualTo", (("topic",), "orders"), (10, 20)),
        ("EqualTo", (("topic",), "other"), (10, 10)),
        ("In", (("partition",), (1, 2)), (10, 20)),
        ("In", (("partition",), (1, 3)), (10, 10)),
        ("LessThan", (("partition",), 2), (10, 20)),
        ("EqualTo", (("value",), b"x"), (10, 20)),
    ],
)
def test_a_condition_narrows(
    name: str, arguments: tuple[object, ...], offsets: tuple[int, int]
) -> None:
    one = narrowed_range(ReadRange("orders", 2, 10, 20), [getattr(pyspark, name)(*arguments)])

    assert (one.first, one.end) == offsets


def test_a_negated_condition_narrows_nothing() -> None:
    negated = pyspark.Not(pyspark.EqualTo(OFFSET, 15))

    assert narrowed_range(ReadRange("orders", 2, 10, 20), [negated]).size == 10


def test_a_time_narrows_the_start_in_whole_milliseconds() -> None:
    moment = datetime(2026, 11, 22, 12, 0, 0, 1_700, tzinfo=timezone(timedelta(hours=1)))
    conditions = [
        pyspark.GreaterThan(("timestamp",), moment),
        pyspark.LessThan(("timestamp",), datetime(2027, 1, 1, tzinfo=UTC)),
    ]

    assert time_least_ms(conditions) == 1_795_345_200_001
    assert time_least_ms(conditions[1:]) is None


def test_a_time_before_1970_leaves_records_without_a_time_in() -> None:
    moment = datetime(1960, 1, 1, tzinfo=UTC)

    assert time_least_ms([pyspark.GreaterThan(("timestamp",), moment)]) is None
    assert (
        time_least_ms([pyspark.GreaterThan(("timestamp",), datetime(1970, 1, 1, tzinfo=UTC))]) == 0
    )
