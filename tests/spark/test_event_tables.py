"""Results of the jobs on the event log as DataFrames of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.spark.told_events import NOON_MS, operations, summed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_table_of_a_job_is_a_data_frame(spark: SparkSession) -> None:
    found = summed(
        [
            operations(NOON_MS, "Produce", "orders", [1, 9]),
            operations(NOON_MS, "Fetch", "orders", [500], expired=1),
        ]
    )

    frame = spark.createDataFrame(found.table())

    rows = frame.where("purgatory = 'Produce'").select("subject", "completed", "p99_at_most_ms")
    assert [tuple(row) for row in rows.collect()] == [("orders", 2, 9)]
    assert dict(frame.dtypes)["begin"] == "timestamp"
    assert spark.createDataFrame(summed([]).table()).dtypes == frame.dtypes
