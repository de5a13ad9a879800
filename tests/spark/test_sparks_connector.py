"""Spark's own Kafka connector against Tarry: what it writes, and its streams, also in real time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.broker_process import wait_until
from tests.support.spark.audit import make_topic, values_of

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

VALUES = [b"%d" % number for number in range(50)]


@pytest.fixture(autouse=True)
def _is_there(connector_jars: str) -> None:
    if connector_jars.startswith("missing: "):
        pytest.skip(f"Spark's connector is {connector_jars}")


def rows(spark: SparkSession, values: list[bytes]) -> DataFrame:
    return spark.createDataFrame([(value, value) for value in values], "key binary, value binary")


def stream(spark: SparkSession, broker: Tarry, topic: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()


def sink(frame: DataFrame, broker: Tarry, topic: str, directory: Path) -> DataStreamWriter:
    writer = frame.select("key", "value").writeStream.format("kafka").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap)
    return writer.option("checkpointLocation", str(directory / "checkpoint"))


def test_what_it_writes_is_there_once(spark: SparkSession, broker: Tarry) -> None:
    make_topic(broker.bootstrap, "connector-written", 3)
    writer = rows(spark, VALUES).write.format("kafka").option("topic", "connector-written")

    writer.option("kafka.bootstrap.servers", broker.bootstrap).save()

    assert values_of(broker.bootstrap, "connector-written") == dict.fromkeys(VALUES, 1)


def test_its_stream_goes_from_topic_to_topic(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    for topic in ("connector-in", "connector-out"):
        make_topic(broker.bootstrap, topic, 2)
    broker.send("connector-in", *VALUES)

    writer = sink(stream(spark, broker, "connector-in"), broker, "connector-out", tmp_path)
    writer.trigger(availableNow=True).start().awaitTermination()

    assert values_of(broker.bootstrap, "connector-out") == dict.fromkeys(VALUES, 1)


def test_its_stream_runs_in_real_time(spark: SparkSession, broker: Tarry, tmp_path: Path) -> None:
    for topic in ("real-in", "real-out"):
        make_topic(broker.bootstrap, topic, 1)
    writer = sink(stream(spark, broker, "real-in"), broker, "real-out", tmp_path)
    # Any: the stubs of PySpark do not have this trigger.
    trigger: Any = writer.outputMode("update").trigger
    query = trigger(realTime="5 minutes").start()
    try:
        broker.send("real-in", *VALUES)

        def told() -> str:
            error = query.exception()
            assert error is None, error
            count = values_of(broker.bootstrap, "real-out").total()
            return str(count) if count >= len(VALUES) else ""

        # Long before the end of the micro-batch.
        wait_until(told, "the records")
    finally:
        query.stop()

    assert values_of(broker.bootstrap, "real-out") == dict.fromkeys(VALUES, 1)
