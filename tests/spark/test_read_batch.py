"""Batches read by a real Spark from a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.interop.kafka_server import free_port

from tarry.spark import register
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

PySparkException = pytest.importorskip(
    "pyspark.errors", reason="pyspark is not installed"
).PySparkException


def test_a_batch_has_each_record_once(read: DataFrameReader, broker: Tarry) -> None:
    broker.topic("batch", partitions=3)
    for partition in range(3):
        broker.send("batch", *(b"%d" % number for number in range(10)), partition=partition)

    rows = read.option("subscribe", "batch").load().select("partition", "offset", "value").collect()

    assert sorted((row[0], row[1], bytes(row[2])) for row in rows) == [
        (partition, number, b"%d" % number) for partition in range(3) for number in range(10)
    ]


def test_every_codec_is_read(read: DataFrameReader, broker: Tarry) -> None:
    broker.topic("codecs")
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        with broker.producer(compression_type=codec) as producer:
            producer.send("codecs", codec.encode() * 100)

    rows = read.option("subscribe", "codecs").load().orderBy("offset").collect()

    assert [bytes(row.value) for row in rows] == [codec.encode() * 100 for codec in codecs]


def test_a_value_of_20_mb_is_read(read: DataFrameReader, broker: Tarry) -> None:
    size = 20 * 1024 * 1024
    broker.topic("large", max_message_bytes=2 * size)
    with broker.producer(max_request_size=2 * size, buffer_memory=4 * size) as producer:
        producer.send("large", b"\0" * size)
        producer.send("large", b"small")

    frame = read.option("subscribe", "large").load().selectExpr("length(value) AS size")

    assert [row.size for row in frame.collect()] == [size, 5]


def test_tasks_are_as_many_as_the_options_say(spark: SparkSession, broker: Tarry) -> None:
    broker.topic("tasks", partitions=2)
    broker.send("tasks", *(b"%d" % number for number in range(20)), partition=0)
    options: tuple[dict[str, str], ...] = (
        {},
        {"tasks": "3"},
        {"minPartitions": "5"},
        {"maxRecordsPerPartition": "2"},
    )

    counts: list[int] = []
    for each in options:
        reader = spark.read.format("tarry").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.option("subscribe", "tasks").options(**each).load()
        counts.append(frame.rdd.getNumPartitions())

    assert counts == [1, 3, 5, 10]


def test_parts_of_a_partition_that_meet_in_a_task_are_all_read(
    read: DataFrameReader, broker: Tarry
) -> None:
    broker.topic("meeting-parts")
    broker.send("meeting-parts", *(b"%d" % number for number in range(12)))
    # Parts of 6 and tasks of 4: the second task has the end of one part and the begin of the next.
    frame = read.options(subscribe="meeting-parts", tasks="3", maxRecordsPerPartition="10").load()

    assert sorted(row.offset for row in frame.collect()) == list(range(12))


def test_conditions_narrow_what_is_read(
    spark: SparkSession, read: DataFrameReader, broker: Tarry
) -> None:
    broker.topic("narrowed", partitions=2)
    with broker.producer() as producer:
        for number in range(20):
            producer.send("narrowed", b"x", partition=number % 2, timestamp=1_000 * number)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read.option("subscribe", "narrowed").option("filters", "true").load()
        frame = frame.where("partition = 1 AND offset < 8")
        frame = frame.where("timestamp >= timestamp'1970-01-01 00:00:05Z'")

        rows = frame.select("partition", "offset").orderBy("offset").collect()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")

    assert [tuple(row) for row in rows] == [(1, offset) for offset in range(2, 8)]


def test_a_broker_that_is_away_is_a_sentence(spark: SparkSession) -> None:
    reader = spark.read.format("tarry").option("subscribe", "orders")
    reader = reader.option("kafka.bootstrap.servers", f"127.0.0.1:{free_port()}")
    frame = reader.option("kafka.default.api.timeout.ms", "300").load()

    with pytest.raises(PySparkException, match=r"127\.0\.0\.1"):
        frame.collect()


def test_a_topic_that_is_not_there_is_a_sentence(read: DataFrameReader) -> None:
    with pytest.raises(PySparkException, match="the broker has no topic nothing: make it"):
        read.option("subscribe", "nothing").load().collect()


def test_a_schema_of_the_user_chooses_columns(read: DataFrameReader, broker: Tarry) -> None:
    broker.topic("chosen")
    broker.send("chosen", b"a", b"b")
    reader = read.option("subscribe", "chosen")

    frame = reader.schema("offset BIGINT, value BINARY").load()

    assert [(row.offset, bytes(row.value)) for row in frame.collect()] == [(0, b"a"), (1, b"b")]
    with pytest.raises(PySparkException, match=r"has id int, and a record has struct<key:binary"):
        reader.schema("id INT").load().collect()


def test_a_session_is_told_of_the_format(spark: SparkSession, broker: Tarry) -> None:
    broker.topic("registered")
    broker.send("registered", b"1")

    register(spark)

    reader = spark.read.format("tarry").option("kafka.bootstrap.servers", broker.bootstrap)
    assert reader.option("subscribe", "registered").load().count() == 1
