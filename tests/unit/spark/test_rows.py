"""Rows of a task: what Spark's types cannot hold is told, with the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import pyarrow as pa

from tarry.client import Admin, NewTopic, Producer, TopicRecreated
from tarry.spark.backfill.records import RecordReading, RecordTask
from tarry.spark.options import OptionRefused
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.plan import ReadRange
from tarry.spark.reading.read_options import parse_read_options
from tarry.spark.reading.rows import RowReader, as_spark_has_it
from tarry.spark.reading.tasks import RangeTwice, TaskPartition, TaskReader
from tarry.testing import Tarry

ALL_TIMES = {f"message.timestamp.{side}.max.ms": str(2**63 - 1) for side in ("before", "after")}


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    """A broker with a topic whose last record has a time in nanoseconds."""
    with Tarry() as tarry:
        with Admin(bootstrap_servers=tarry.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1, configs=ALL_TIMES)])
        with Producer(bootstrap_servers=tarry.bootstrap) as producer:
            producer.send("orders", b"a", timestamp=1_760_000_000_000)
            producer.send("orders", b"b", timestamp=1_760_000_000_000_000_000)
        yield tarry


def rows(broker: Tarry, *columns: str) -> list[dict[str, object]]:
    settings = {"bootstrap.servers": broker.bootstrap}
    reader = RowReader(settings, columns, fails_on_loss=True)
    batches = reader.batches({("orders", 0): (0, 2)})
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_time_that_spark_cannot_hold_is_told_and_the_rest_can_be_read(broker: Tarry) -> None:
    with pytest.raises(OptionRefused, match="by the option columns without timestamp"):
        rows(broker, "value", "timestamp")

    assert [row["value"] for row in rows(broker, "value", "offset")] == [b"a", b"b"]


def test_a_time_that_spark_cannot_hold_may_become_the_last_one_that_it_can(broker: Tarry) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    reader = RowReader(settings, ("timestamp",), fails_on_loss=True, clips_times=True)

    (batch,) = reader.batches({("orders", 0): (0, 2)})

    times = batch.column("timestamp").cast(pa.int64()).to_pylist()
    assert times == [1_760_000_000_000_000, 9_223_372_036_854_775_000]


def test_the_first_time_that_spark_can_hold_is_none_of_a_record() -> None:
    # Brokers take such a time by default, from a producer that does not look at it.
    times = pa.array([-9_000_000_000_000_000_000, -1], pa.timestamp("ms", "UTC"))
    batch = pa.RecordBatch.from_pydict({"timestamp": times})
    schema = pa.schema([("timestamp", pa.timestamp("us", "UTC"))])

    clipped = as_spark_has_it(batch, schema, clips_times=True)

    assert clipped["timestamp"].cast(pa.int64()).to_pylist() == [-9_223_372_036_854_775_000, -1_000]
    with pytest.raises(OptionRefused, match="or give clipTimestamps"):
        as_spark_has_it(batch, schema)


def test_nothing_of_a_topic_made_anew_is_read_for_the_one_that_was_planned(broker: Tarry) -> None:
    """It has another log: what lies at these offsets is read by the next micro-batch."""

    def read(topic_id: str, *, fails_on_loss: bool) -> list[object]:
        settings = {"bootstrap.servers": broker.bootstrap}
        reader = RowReader(settings, ("value",), fails_on_loss=fails_on_loss)
        batches = reader.batches({("anew", 0): (0, 2)}, {"anew": topic_id})
        return [row["value"] for batch in batches for row in batch.to_pylist()]

    def made(value: bytes) -> str:
        broker.topic("anew")
        broker.send("anew", value, value, value)
        with closing(LiveCluster({"bootstrap.servers": broker.bootstrap})) as cluster:
            return cluster.topics(TopicChoice(names=("anew",)))["anew"].topic_id

    old = made(b"old")
    broker.admin.delete_topics(["anew"])
    new = made(b"new")

    assert read(new, fails_on_loss=True) == [b"new", b"new"]
    assert read(old, fails_on_loss=False) == []
    with pytest.raises(TopicRecreated):
        read(old, fails_on_loss=True)


def test_a_backfill_reads_nothing_of_a_topic_that_was_made_anew(broker: Tarry) -> None:
    broker.topic("filled")
    broker.send("filled", b"new", b"new")
    settings = {"bootstrap.servers": broker.bootstrap}
    with closing(LiveCluster(settings)) as cluster:
        topic_id = cluster.topics(TopicChoice(names=("filled",)))["filled"].topic_id
    numbers = pa.record_batch({"id": [0]})

    def read(wanted: str) -> int:
        task = RecordTask("", "filled", ranges=[ReadRange("filled", 0, 0, 2)], topic_id=wanted)
        return sum(batch.num_rows for batch in RecordReading([task], settings)([numbers]))

    assert read(topic_id) == read("") == 2
    with pytest.raises(TopicRecreated):
        read("AAAAAAAAAAAAAAAAAAAAAQ")


def test_a_task_with_two_ranges_of_a_partition_is_refused_and_not_read_in_part() -> None:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
    reader = TaskReader(parse_read_options(given, is_stream=False))
    two = [ReadRange("orders", 3, 0, 5), ReadRange("orders", 3, 5, 9)]
    task = TaskPartition([])
    task.value = {"orders": [(3, 0, 5), (3, 5, 9)]}

    sentence = r"two ranges of orders \[3\], 0 to 5 and 5 to 9"
    with pytest.raises(RangeTwice, match=sentence):
        TaskPartition(two)
    with pytest.raises(RangeTwice, match=sentence):
        list(reader.read(task))
