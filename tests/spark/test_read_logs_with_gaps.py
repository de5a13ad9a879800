"""Logs with gaps, of aborted transactions and of compaction, read by our source and by Spark's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.interop.conftest import java_program  # noqa: F401  # a fixture
from tests.support.broker_process import wait_until
from tests.support.interop.java_face import JavaProgram
from tests.support.interop.transactions import Transactions
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, NewTopic, Producer
from tarry.client.arrow import scan
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}
# How many records of one key follow on each other.
A_KEY = 5
# More than one task for a log, so that some begin in a gap.
TASKS = "7"


class Log(NamedTuple):
    """A topic of one partition, and what the broker holds of it."""

    bootstrap: str
    topic: str
    committed: list[bytes]
    aborted: list[bytes]
    # Offsets, markers and what is gone included.
    end: int


@pytest.fixture(autouse=True)
def _is_there(connector_jars: str) -> None:
    if connector_jars.startswith("missing: "):
        pytest.skip(f"Spark's connector is {connector_jars}")


def make(bootstrap: str, topic: str, configs: dict[str, str]) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        outcome = admin.create_topics([NewTopic(topic, 1, 1, configs)])[0]
        assert outcome.error is None, outcome.error


@pytest.fixture(scope="module")
def transactions(apache_kafka: str, java_program: JavaProgram) -> Iterator[Log]:  # noqa: F811
    """Committed and aborted transactions in turn, and one that is open."""
    topic = "gaps-of-transactions"
    make(apache_kafka, topic, {})
    writer = Transactions(java_program, apache_kafka, topic, "zstd")
    committed: list[bytes] = []
    aborted: list[bytes] = []
    for number in range(4):
        writer.step("begin")
        values = [b"%d %d " % (number, row) + b"x" * 100 for row in range(50)]
        writer.write(*values)
        writer.end("commit" if number % 2 else "abort")
        (committed if number % 2 else aborted).extend(values)
    writer.step("begin")
    writer.write(b"open")
    # The stable end lies before the record of the open transaction.
    yield Log(apache_kafka, topic, committed, aborted, 4 * (50 + 1))
    writer.end("abort")
    writer.producer.close()


def compacted(bootstrap: str, topic: str) -> Log:
    """Write the same keys again and again; return what is left of them."""
    make(bootstrap, topic, COMPACTED)
    began_ms = time.time_ns() // 1_000_000 - 60_000
    values = [b"%d" % number for number in range(100)]
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            # Each batch is a segment of its own.
            key = b"%d" % (number // A_KEY)
            producer.send(topic, value, key=key, timestamp=began_ms + 10 * number)
            producer.flush()

    def left() -> list[bytes]:
        place = {(topic, 0): (0, len(values))}
        rows = scan(place, bootstrap_servers=bootstrap, columns=["value"])
        return [value for batch in rows for value in batch.column("value").to_pylist()]

    # All but the newest segment, whose key may thus be there more than once.
    last = values[A_KEY - 1 :: A_KEY]
    kept = wait_until(lambda: str(len(left())) if len(left()) <= len(last) + 1 else "", "gaps")
    found = left()
    assert int(kept) == len(found)
    assert set(last) <= set(found)
    return Log(bootstrap, topic, found, [], len(values))


@pytest.fixture(scope="module")
def compacted_by_kafka(apache_kafka: str) -> Log:
    return compacted(apache_kafka, "gaps-of-compaction")


@pytest.fixture(scope="module")
def compacted_by_tarry() -> Iterator[Log]:
    with Tarry({"log.cleaner.backoff.ms": "200"}) as tarry:
        yield compacted(tarry.bootstrap, "gaps-of-compaction")


def read(spark: SparkSession, format_name: str, log: Log, level: str) -> list[tuple[Any, ...]]:
    reader = spark.read.format(format_name).option("kafka.bootstrap.servers", log.bootstrap)
    reader = reader.option("kafka.isolation.level", level).option("minPartitions", TASKS)
    rows: DataFrame = reader.option("subscribe", log.topic).option("includeHeaders", "true").load()
    return sorted(rows.collect(), key=lambda row: row.offset)


def test_committed_records_are_read_and_no_others(spark: SparkSession, transactions: Log) -> None:
    ours = read(spark, "tarry", transactions, "read_committed")

    assert [bytes(row.value) for row in ours] == transactions.committed
    assert ours == read(spark, "kafka", transactions, "read_committed")


def test_whoever_asks_for_it_reads_what_is_not_committed(
    spark: SparkSession, transactions: Log
) -> None:
    ours = read(spark, "tarry", transactions, "read_uncommitted")

    values = [*transactions.committed, *transactions.aborted, b"open"]
    assert sorted(bytes(row.value) for row in ours) == sorted(values)
    assert ours == read(spark, "kafka", transactions, "read_uncommitted")


@pytest.mark.parametrize("broker_name", ["tarry", "kafka"])
def test_what_compaction_left_is_read(
    spark: SparkSession, request: pytest.FixtureRequest, broker_name: str
) -> None:
    log: Log = request.getfixturevalue(f"compacted_by_{broker_name}")

    ours = read(spark, "tarry", log, "read_committed")

    assert [bytes(row.value) for row in ours] == log.committed
    assert ours == read(spark, "kafka", log, "read_committed")


@pytest.mark.parametrize("name", ["transactions", "compacted_by_kafka"])
def test_a_stream_passes_over_gaps_in_batches_of_its_limit(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    log: Log = request.getfixturevalue(name)
    batches: list[list[bytes]] = []

    def keep(frame: DataFrame, number: int) -> None:
        batches.append([bytes(row.value) for row in frame.orderBy("offset").collect()])

    reader = spark.readStream.format("tarry").option("kafka.bootstrap.servers", log.bootstrap)
    reader = reader.option("kafka.isolation.level", "read_committed").option("subscribe", log.topic)
    # A limit counts offsets: the first batch of the transactions has only what was aborted.
    reader = reader.option("maxOffsetsPerTrigger", log.end // 4)
    writer = reader.option("startingOffsets", "earliest").load().writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()

    assert query.awaitTermination(PATIENCE_S)
    assert [value for batch in batches for value in batch] == log.committed
    assert len(batches) == 4
