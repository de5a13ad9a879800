"""Batches read by a real Spark from a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader


def test_a_batch_has_each_record_once(read: DataFrameReader, broker: Tarry) -> None:
    broker.topic("batch", partitions=3)
    for partition in range(3):
        broker.send("batch", *(b"%d" % number for number in range(10)), partition=partition)

    rows = read.option("subscribe", "batch").load().select("partition", "offset", "value").collect()

    assert sorted((row[0], row[1], bytes(row[2])) for row in rows) == [
        (partition, number, b"%d" % number) for partition in range(3) for number in range(10)
    ]
