"""DataFrames into topics: batches, at least once and exactly once."""

from __future__ import annotations

import pytest

from tarry.records.from_columns import murmur2_at

# Spark names the error of a data source and gives the text of the Python one.
FAILS = pytest.importorskip("pyspark.errors", reason="pyspark is not installed").PySparkException


def rows_of(broker, topic):
    return [(one.partition, one.key, one.value) for one in broker.records(topic)]


def java_partition(key: bytes, count: int) -> int:
    return (murmur2_at(key, 0, len(key)) & 0x7FFF_FFFF) % count


def writer(frame, broker, **options):
    write = frame.write.format("tarry").mode("append")
    return write.option("kafka.bootstrap.servers", broker.bootstrap).options(**options)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_keys_land_where_java_puts_them(spark, broker, tmp_path, delivery):
    topic = broker.topic(f"written-{delivery}", partitions=3)
    rows = [(f"k{number}", f"v{number}") for number in range(200)]
    frame = spark.createDataFrame(rows, "key string, value string").repartition(2)

    options = {"topic": topic, "delivery": delivery}
    if delivery == "exactly-once":
        options["sinkLocation"] = str(tmp_path / "sink")
    writer(frame, broker, **options).save()

    expected = [(java_partition(k.encode(), 3), k.encode(), v.encode()) for k, v in rows]
    assert sorted(rows_of(broker, topic)) == sorted(expected)
