"""Rows that are due later, by Spark: in batches and in streams, each once and never early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.errors import PySparkException, StreamingQueryException
from tests.spark.test_killed_drivers import RESTARTS_MORE
from tests.support.spark.audit import make_topic, values_of
from tests.support.spark.trap import Trap, snapped, trapped_source

from tarry.client import Producer

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tarry.testing import Tarry

# Records are due ten hours ahead, so that none comes by itself while a slow machine runs a test.
DUE_MS = 10 * 3_600_000
BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
SOURCES = pytest.mark.parametrize("configs", [BY_HEADER, BY_TIMESTAMP], ids=["header", "timestamp"])

# Of a number n as value: at once, at ten hours, after ten hours, after ten hours in milliseconds.
COLUMNS = (
    "IF(n % 4 = 1, timestamp_millis({due_ms}), NULL) AS deliverAt",
    "CASE n % 4 WHEN 2 THEN '9h60m' WHEN 3 THEN '36000000' END AS deliverAfter",
)
TRAPS = [
    Trap(0, "CreatePlan", is_behind=True),
    Trap(1, "SendRound", is_behind=True, nth=2),
    Trap(2, "MarkDone", is_behind=False),
]
A_BATCH = 100


def due_columns(frame: DataFrame, tarry: Tarry) -> DataFrame:
    """Add the columns of due times to rows with a number n."""
    columns = [text.format(due_ms=tarry.clock.now_ms + DUE_MS) for text in COLUMNS]
    return frame.selectExpr("CAST(n AS STRING) AS value", *columns)


def numbers(tarry: Tarry, topic: str) -> list[int]:
    return sorted(int(record.value or b"") for record in tarry.records(topic))


def at_once(count: int) -> list[int]:
    return [number for number in range(count) if number % 4 == 0]


def writer(frame: DataFrame, bootstrap: str, **options: str) -> Any:
    write = frame.write.format("tarry").mode("append")
    return write.option("kafka.bootstrap.servers", bootstrap).options(**options)


@SOURCES
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_rows_of_a_batch_come_when_they_are_due(
    spark: SparkSession, tarry: Tarry, tmp_path: Path, configs: dict[str, str], delivery: str
) -> None:
    topic = tarry.topic("later", partitions=2, **configs)
    frame = due_columns(spark.range(40).toDF("n").repartition(2), tarry)
    options = {"topic": topic, "delivery": delivery}
    if delivery == "exactly-once":
        options["sinkLocation"] = str(tmp_path / "sink")

    writer(frame, tarry.bootstrap, **options).save()
    come = [numbers(tarry, topic)]
    tarry.clock.advance("8h")
    come.append(numbers(tarry, topic))
    tarry.clock.advance("3h")

    assert come == [at_once(40), at_once(40)]
    assert numbers(tarry, topic) == [*range(40)]


@SOURCES
def test_rows_of_a_stream_come_once_and_never_early_wherever_its_driver_dies(
    spark: SparkSession, tarry: Tarry, tmp_path: Path, checkpoint: str, configs: dict[str, str]
) -> None:
    source = tarry.topic("numbers")
    target = tarry.topic("later", partitions=2, **configs)
    count = A_BATCH * (len(TRAPS) + 1)
    with Producer(bootstrap_servers=tarry.bootstrap) as producer:
        for number in range(count):
            producer.send(source, b"%d" % number)
    spark.dataSource.register(trapped_source(TRAPS, str(tmp_path)))
    read = spark.readStream.format("tarry").option("kafka.bootstrap.servers", tarry.bootstrap)
    read = read.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=A_BATCH)
    frame = due_columns(read.load().selectExpr("CAST(CAST(value AS STRING) AS INT) AS n"), tarry)
    write = frame.writeStream.format("tarry-trapped").trigger(availableNow=True)
    write = write.option("kafka.bootstrap.servers", tarry.bootstrap).option("topic", target)
    write = write.option("kafka.batch.size", "400").option("checkpointLocation", checkpoint)

    deaths = 0
    while True:
        try:
            write.start().awaitTermination()
            break
        except StreamingQueryException:
            deaths += 1
            if deaths > len(TRAPS) + RESTARTS_MORE:
                raise
    come = [numbers(tarry, target)]
    tarry.clock.advance("8h")
    come.append(numbers(tarry, target))
    tarry.clock.advance("3h")

    assert snapped(str(tmp_path), len(TRAPS)) == len(TRAPS)
    assert come == [at_once(count), at_once(count)]
    assert numbers(tarry, target) == [*range(count)]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("'tomorrow' AS deliverAt", "column deliverAt is of type string, and it must be timestamp"),
        ("current_date() AS deliverAt", "column deliverAt is of type date, and it must be"),
        ("INTERVAL '1' HOUR AS deliverAfter", "column deliverAfter is of type interval hour"),
        ("1 AS scheduleId", "column scheduleId is of type int, and it must be string or binary"),
    ],
)
def test_a_column_of_another_type_is_told_when_the_write_starts(
    spark: SparkSession, broker: Tarry, tmp_path: Path, column: str, sentence: str
) -> None:
    frame = spark.range(1).selectExpr("CAST(id AS STRING) AS value", column)
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS value", column)
    write = stream.writeStream.format("tarry").option("checkpointLocation", str(tmp_path / "c"))

    with pytest.raises(PySparkException, match=sentence):
        writer(frame, broker.bootstrap, topic="any").save()
    with pytest.raises(PySparkException, match=sentence):
        write.option("kafka.bootstrap.servers", broker.bootstrap).option(
            "topic", "any"
        ).start().awaitTermination()


def test_a_row_with_two_due_times_is_told_and_nothing_is_written(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    topic = broker.topic("two-due-times", **BY_HEADER)
    frame = spark.range(3).selectExpr(
        "CONCAT('k', id) AS key",
        "'x' AS value",
        "5L AS deliverAt",
        "IF(id = 1, 7, NULL) AS deliverAfter",
    )
    options = {"delivery": "exactly-once", "sinkLocation": str(tmp_path / "sink")}

    with pytest.raises(PySparkException, match=r"row with the key 'k1' .*: deliverAt and deliverA"):
        writer(frame, broker.bootstrap, topic=topic, **options).save()

    assert broker.records(topic) == []


@pytest.mark.parametrize("kind", ["tarry", "kafka"])
def test_a_topic_that_does_not_delay_is_told_before_anything_is_written(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str
) -> None:
    fixture = {"tarry": "broker", "kafka": "apache_kafka"}[kind]
    given = request.getfixturevalue(fixture)
    bootstrap = given if kind == "kafka" else given.bootstrap
    make_topic(bootstrap, "at-once", 1)
    frame = spark.range(2).selectExpr("'x' AS value", "IF(id = 1, '1s', NULL) AS deliverAfter")
    sentence = {"tarry": "set delay.enable=true", "kafka": "Apache Kafka has none"}[kind]

    with pytest.raises(PySparkException, match=f"SchedulingUnsupported.*{sentence}"):
        writer(frame.coalesce(1), bootstrap, topic="at-once").save()

    assert values_of(bootstrap, "at-once") == {}
