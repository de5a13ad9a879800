"""Queries through our source and Spark's own Kafka connector: rows and refusals are equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from tarry.client import NewTopic
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# When the record of an offset was written.
BEGAN_MS = 1_700_000_000_000

RECORDS = 20


@pytest.fixture(scope="module")
def same(broker: Tarry, connector_jars: str) -> Iterator[Tarry]:
    """A broker with topics for all queries."""
    if connector_jars.startswith("missing: "):
        pytest.skip(f"Spark's connector is {connector_jars}")
    broker.admin.create_topics([NewTopic("same", 2), NewTopic("same-too", 1), NewTopic("bare", 1)])
    with broker.producer() as producer:
        for number in range(RECORDS):
            for partition in range(2):
                producer.send(
                    "same",
                    None if number % 7 == 0 else b"value %d" % number,
                    key=None if number % 5 == 0 else b"key %d" % number,
                    partition=partition,
                    headers=[("kind", b"new"), ("kind", None)] if number % 3 == 0 else None,
                    timestamp=BEGAN_MS + 1_000 * number,
                )
        producer.send("same-too", b"other", timestamp=BEGAN_MS)
    broker.admin.delete_records({("same", 1): 4})
    yield broker


def at(*offsets: int) -> str:
    return json.dumps({"same": {str(index): one for index, one in enumerate(offsets)}})


def time_of(number: int) -> int:
    return BEGAN_MS + 1_000 * number


SAME = {"subscribe": "same"}

QUERIES: dict[str, dict[str, str]] = {
    "all": SAME,
    "headers": {**SAME, "includeHeaders": "true"},
    "no headers": {**SAME, "INCLUDEHEADERS": "FALSE"},
    "two topics": {"subscribe": "same, same-too"},
    "a topic twice": {"subscribe": "same-too,same-too"},
    "an empty topic": {"subscribe": "bare"},
    "a pattern": {"subscribePattern": "same.*"},
    "a pattern of a part of the name": {"subscribePattern": "ame"},
    "a pattern of the whole name": {"subscribePattern": "^same$"},
    "a pattern of nothing": {"subscribePattern": "nothing-.*"},
    "one partition": {"assign": '{"same": [1]}'},
    "earliest to latest": {**SAME, "startingOffsets": "EARLIEST", "endingOffsets": "latest"},
    "from offsets": {**SAME, "startingOffsets": at(5, 6)},
    "from earliest of one": {**SAME, "startingOffsets": at(5, -2)},
    "to offsets": {**SAME, "startingOffsets": at(3, 6), "endingOffsets": at(5, 12)},
    "to the latest of one": {**SAME, "startingOffsets": at(3, 6), "endingOffsets": at(-1, 12)},
    "an empty range": {**SAME, "startingOffsets": at(5, 6), "endingOffsets": at(5, 6)},
    "from a time": {**SAME, "startingTimestamp": str(time_of(9))},
    "from between two times": {**SAME, "startingTimestamp": str(time_of(9) + 1)},
    "to a time": {**SAME, "endingTimestamp": str(time_of(9))},
    "to a time that is to come": {**SAME, "endingTimestamp": str(time_of(900))},
    "from times by partition": {**SAME, "startingOffsetsByTimestamp": at(time_of(9), time_of(12))},
    "to times by partition": {**SAME, "endingOffsetsByTimestamp": at(time_of(9), time_of(12))},
    "a time goes before offsets": {
        **SAME,
        "startingTimestamp": str(time_of(9)),
        "startingOffsets": at(0, 6),
    },
    "too late a time, latest": {
        **SAME,
        "startingTimestamp": str(time_of(900)),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "many tasks": {**SAME, "minPartitions": "7"},
    "small tasks": {**SAME, "maxRecordsPerPartition": "3"},
    "loss that is allowed": {**SAME, "startingOffsets": at(0, 0), "failOnDataLoss": "false"},
    "small fetches": {**SAME, "kafka.max.partition.fetch.bytes": "100"},
    "committed": {**SAME, "kafka.isolation.level": "read_committed"},
}

REFUSED: dict[str, dict[str, str]] = {
    "latest as the start": {**SAME, "startingOffsets": "latest"},
    "earliest as the end": {**SAME, "endingOffsets": "earliest"},
    "latest as the start of one": {**SAME, "startingOffsets": at(0, -1)},
    "earliest as the end of one": {**SAME, "endingOffsets": at(1, -2)},
    "no topics": {},
    "two choices": {**SAME, "subscribePattern": "a"},
    "an empty choice": {"subscribe": ","},
    "no partitions": {"assign": "same"},
    "a partition left out": {**SAME, "startingOffsets": '{"same": {"0": 1}}'},
    "a partition too many": {**SAME, "startingOffsets": at(1, 5, 1)},
    "an inverted range": {**SAME, "startingOffsets": at(8, 8), "endingOffsets": at(2, 9)},
    "too late a time": {**SAME, "startingTimestamp": str(time_of(900))},
    "no offsets": {**SAME, "startingOffsets": "somewhere"},
    "no tasks": {**SAME, "minPartitions": "0"},
    "records that are gone": {**SAME, "startingOffsets": at(0, 0)},
    "a reset": {**SAME, "kafka.auto.offset.reset": "latest"},
    "a deserializer": {**SAME, "kafka.value.deserializer": "x"},
    "automatic commits": {**SAME, "kafka.enable.auto.commit": "true"},
}


def frame(spark: SparkSession, name: str, broker: Tarry, options: dict[str, str]) -> DataFrame:
    reader = spark.read.format(name).option("kafka.bootstrap.servers", broker.bootstrap)
    return reader.options(**options).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_equal(spark: SparkSession, same: Tarry, name: str) -> None:
    ours = frame(spark, "tarry", same, QUERIES[name])
    theirs = frame(spark, "kafka", same, QUERIES[name])

    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)


@pytest.mark.parametrize("name", ["all", "two topics", "an empty topic"])
def test_counts_are_equal(spark: SparkSession, same: Tarry, name: str) -> None:
    ours = frame(spark, "tarry", same, QUERIES[name])
    theirs = frame(spark, "kafka", same, QUERIES[name])

    assert ours.count() == theirs.count()
    assert ours.where("partition = 0").count() == theirs.where("partition = 0").count()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_there_is_refused_here(spark: SparkSession, same: Tarry, name: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(Exception):  # noqa: B017  # Spark's are of many classes
        frame(spark, "kafka", same, REFUSED[name]).collect()
    with pytest.raises(PySparkException, match=r"OptionRefused|DataLost"):
        frame(spark, "tarry", same, REFUSED[name]).collect()


OFFSETS = st.sampled_from([-2, -1, 0, 4, 5, 12, RECORDS])
TIMES = st.sampled_from([0, time_of(0), time_of(6), time_of(9) + 1, time_of(900)])

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "startingOffsets": st.just("earliest") | st.builds(at, OFFSETS, OFFSETS),
        "endingOffsets": st.just("latest") | st.builds(at, OFFSETS, OFFSETS),
        "startingTimestamp": st.builds(str, TIMES),
        "endingTimestamp": st.builds(str, TIMES),
        "startingOffsetsByTimestamp": st.builds(at, TIMES, TIMES),
        "endingOffsetsByTimestamp": st.builds(at, TIMES, TIMES),
        "startingOffsetsByTimestampStrategy": st.sampled_from(["error", "latest"]),
        "failOnDataLoss": st.sampled_from(["true", "false"]),
        "minPartitions": st.builds(str, st.integers(1, 9)),
        "maxRecordsPerPartition": st.builds(str, st.integers(1, RECORDS)),
    },
)
CHOICES = st.sampled_from([SAME, {"subscribePattern": "same$"}, {"assign": '{"same": [0, 1]}'}])

A_REFUSAL = "refused"


def read_by_ours(broker: Tarry, options: dict[str, str]) -> list[tuple[Any, ...]] | str:
    """Read by what Spark calls in its processes, in this one: that is a lot cheaper."""
    from tarry.spark.options import OptionRefused
    from tarry.spark.reading.batch import BatchReader
    from tarry.spark.reading.loss import DataLost
    from tarry.spark.reading.read_options import parse_read_options

    options = {"kafka.bootstrap.servers": broker.bootstrap, **options}
    try:
        reader = BatchReader(parse_read_options(options, is_stream=False))
        batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    except (OptionRefused, DataLost):
        return A_REFUSAL
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"], row["value"]) for row in found)


def read_by_sparks(
    spark: SparkSession, broker: Tarry, options: dict[str, str]
) -> list[tuple[Any, ...]] | str:
    try:
        found = frame(spark, "kafka", broker, options).collect()
    except Exception:  # Spark's are of many classes
        return A_REFUSAL
    return sorted((row.partition, row.offset, row.value) for row in found)


@settings(max_examples=60)
@given(options=OPTIONS, choice=CHOICES)
@example(options={"minPartitions": "3", "maxRecordsPerPartition": "15"}, choice=SAME)
def test_whatever_options_are_given_the_outcome_is_the_same(
    spark: SparkSession, same: Tarry, options: dict[str, str], choice: dict[str, str]
) -> None:
    wanted = {**choice, **options}

    assert read_by_ours(same, wanted) == read_by_sparks(spark, same, wanted)
