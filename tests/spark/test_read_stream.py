"""Streams read by a real Spark from a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.broker_process import wait_until
from tests.support.patience import PATIENCE_S

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader

StreamingQueryException = pytest.importorskip(
    "pyspark.errors", reason="pyspark is not installed"
).StreamingQueryException


@pytest.fixture
def stream(spark: SparkSession, broker: Tarry) -> DataStreamReader:
    """Reader of the broker's streams, from the first record on."""
    reader = spark.readStream.format("tarry").option("startingOffsets", "earliest")
    return reader.option("kafka.bootstrap.servers", broker.bootstrap)


class Run:
    """What one query gave: its values by batch, as they came."""

    def __init__(self, checkpoint: str) -> None:
        self.checkpoint = checkpoint
        self.batches: list[list[bytes]] = []

    def keep(self, frame: DataFrame, number: int) -> None:
        self.batches.append([bytes(row[0]) for row in frame.select("value").collect()])

    def fail(self, frame: DataFrame, number: int) -> None:
        raise ValueError("the micro-batch fails")

    def available_now(self, reader: DataStreamReader) -> None:
        """Read what is there, and end."""
        query = (
            reader.load()
            .writeStream.foreachBatch(self.keep)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_S)

    @property
    def values(self) -> list[bytes]:
        return sorted(value for batch in self.batches for value in batch)


@pytest.fixture
def run(checkpoint: str) -> Run:
    return Run(checkpoint)


def test_a_stream_goes_on_where_its_checkpoint_says(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("goes-on", partitions=2)
    broker.send("goes-on", b"1", b"2", partition=0)
    reader = stream.option("subscribe", "goes-on").option("groupId", "job")
    run.available_now(reader)
    broker.send("goes-on", b"3", partition=1)

    run.available_now(reader)

    assert run.batches == [[b"1", b"2"], [b"3"]]
    committed = broker.admin.group_offsets(["job"])["job"]
    assert isinstance(committed, dict)
    assert {place: one.offset for place, one in committed.items()} == {
        ("goes-on", 0): 2,
        ("goes-on", 1): 1,
    }


def committed_of(checkpoint: str) -> dict[str, int]:
    """Offsets of the newest micro-batch that the checkpoint calls done, by partition."""
    done = max((int(one.name) for one in Path(checkpoint, "commits").glob("[0-9]*")), default=None)
    if done is None:
        return {}
    told = json.loads(Path(checkpoint, "offsets", str(done)).read_text().splitlines()[2])
    return {partition: at for partition, at in told["ahead"].items() if partition.isdigit()}


def test_group_offsets_are_never_beyond_the_checkpoint(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("ahead", partitions=2)
    for partition in (0, 1):
        broker.send("ahead", *(b"%d" % number for number in range(3)), partition=partition)
    reader = stream.option("subscribe", "ahead").option("groupId", "ahead-job")
    seen: list[tuple[dict[str, int], dict[str, int]]] = []

    def look(frame: DataFrame, number: int) -> None:
        frame.count()
        told = broker.admin.group_offsets(["ahead-job"])["ahead-job"]
        assert isinstance(told, dict)
        shown = {str(partition): one.offset for (_, partition), one in told.items()}
        seen.append((shown, committed_of(run.checkpoint)))
        if len(seen) == 2:
            raise ValueError("the micro-batch fails")

    run.keep = look  # type: ignore[method-assign]
    failure(run, reader.option("maxOffsetsPerTrigger", "2"))
    run.available_now(reader)

    # While a micro-batch runs, and when one failed and comes again.
    assert len(seen) == 4
    for shown, committed in seen:
        assert all(at <= committed.get(partition, 0) for partition, at in shown.items()), seen
    assert any(committed for _, committed in seen)


def test_available_now_ends_at_the_first_targets_in_batches_of_the_limit(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("limited", partitions=2)
    broker.send("limited", *(b"%d" % number for number in range(7)), partition=0)
    broker.send("limited", b"7", partition=1)

    run.available_now(stream.option("subscribe", "limited").option("maxOffsetsPerTrigger", "3"))

    assert [len(batch) for batch in run.batches] == [3, 3, 2]
    assert run.values == [b"%d" % number for number in range(8)]


def test_partitions_and_topics_that_are_added_are_read_from_their_start(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("added-1")
    broker.send("added-1", b"1")
    reader = stream.option("subscribePattern", "^added-")
    run.available_now(reader)
    broker.admin.create_partitions("added-1", 2)
    broker.topic("added-2")
    with broker.producer() as producer:
        # One that has not seen the topic with fewer partitions.
        producer.send("added-1", b"2", partition=1)
        producer.send("added-2", b"3")

    run.available_now(reader)

    assert run.values == [b"1", b"2", b"3"]


def failure(run: Run, reader: DataStreamReader) -> str:
    with pytest.raises(StreamingQueryException) as caught:
        run.available_now(reader)
    return str(caught.value)


def test_records_that_retention_took_fail_a_query_that_may_go_on_without_them(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("taken")
    broker.send("taken", b"1")
    reader = stream.option("subscribe", "taken")
    run.available_now(reader)
    broker.send("taken", b"2", b"3", b"4")
    broker.admin.delete_records({("taken", 0): 3})

    told = failure(run, reader)
    run.available_now(reader.option("failOnDataLoss", "false"))

    assert "taken [0] from offset 1 to 3 (the log starts at 3)" in told
    assert run.values == [b"1", b"4"]


def test_a_topic_that_was_made_anew_is_known_by_its_id(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("anew")
    broker.send("anew", b"1", b"2")
    reader = stream.option("subscribe", "anew")
    run.available_now(reader)
    broker.admin.delete_topics(["anew"])
    broker.topic("anew")
    with broker.producer() as producer:
        for value in (b"3", b"4", b"5"):
            producer.send("anew", value)

    told = failure(run, reader)
    run.available_now(reader.option("failOnDataLoss", "false"))

    assert "anew [0] from offset 2 on (the topic was deleted and made anew)" in told
    assert run.values == [b"1", b"2", b"3", b"4", b"5"]


def test_a_topic_that_is_gone_fails_a_query_that_may_go_on_without_it(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("gone-1")
    broker.topic("gone-2")
    broker.send("gone-1", b"1")
    broker.send("gone-2", b"2")
    reader = stream.option("subscribePattern", "^gone-")
    run.available_now(reader)
    broker.admin.delete_topics(["gone-1"])
    broker.send("gone-2", b"3")

    told = failure(run, reader)
    run.available_now(reader.option("failOnDataLoss", "false"))

    assert "gone-1 [0] from offset 1 on (the topic was deleted)" in told
    assert run.values == [b"1", b"2", b"3"]


def test_one_query_reads_what_is_added_meanwhile_and_goes_on_without_what_is_deleted(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    def send(topic: str, *values: bytes, partition: int = 0) -> None:
        # A producer that has not seen the topic as it was.
        with broker.producer() as producer:
            for value in values:
                producer.send(topic, value, partition=partition)

    broker.topic("living-1")
    send("living-1", b"1")
    reader = stream.option("subscribePattern", "^living-").option("failOnDataLoss", "false")
    query = (
        reader.load()
        .writeStream.foreachBatch(run.keep)
        .option("checkpointLocation", run.checkpoint)
        .trigger(processingTime="200 milliseconds")
        .start()
    )

    def read(*values: bytes) -> str:
        fault = query.exception()
        if fault is not None:
            raise fault
        return "read" if set(values) <= set(run.values) else ""

    try:
        wait_until(lambda: read(b"1"), "the first record")
        broker.admin.create_partitions("living-1", 2)
        send("living-1", b"2", partition=1)
        broker.topic("living-2")
        send("living-2", b"3")
        wait_until(lambda: read(b"2", b"3"), "the new partition and topic")
        # Nobody knows whether this one is read before it is gone.
        send("living-2", b"gone")
        broker.admin.delete_topics(["living-2"])
        send("living-1", b"4", partition=1)
        wait_until(lambda: read(b"4"), "the topic that is left")
        broker.topic("living-2")
        send("living-2", b"5", b"6", b"7")
        wait_until(lambda: read(b"5", b"6", b"7"), "the topic that was made anew")
    finally:
        query.stop()

    kept = [value for value in run.values if value != b"gone"]
    assert kept == [b"%d" % number for number in range(1, 8)]
    assert run.values.count(b"gone") <= 1


def test_a_micro_batch_that_failed_is_read_again(
    stream: DataStreamReader, broker: Tarry, run: Run
) -> None:
    broker.topic("again")
    broker.send("again", b"1", b"2")
    reader = stream.option("subscribe", "again").option("maxOffsetsPerTrigger", "1")
    kept = run.keep
    run.keep = run.fail  # type: ignore[method-assign]
    failure(run, reader)
    broker.send("again", b"3")
    run.keep = kept  # type: ignore[method-assign]

    run.available_now(reader)

    assert run.batches == [[b"1"], [b"2"], [b"3"]]
