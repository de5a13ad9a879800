"""Readers of logs that a real broker lost the ends of, and that have grown past them since."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import pyarrow
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.support.spark.cut_logs import LosingBroker

from tarry.client import Admin, FoundEpoch, LogTruncated
from tarry.client.sync.publisher import Publisher
from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.loss import DataLost
from tarry.spark.reading.read_options import parse_read_options
from tarry.spark.reading.stream import StreamReader
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.commit import commit
from tarry.spark.writing.directory import SinkDirectory
from tarry.spark.writing.effects import SendRound
from tarry.spark.writing.plan import SinkRefused
from tarry.spark.writing.publishing import Publishing
from tarry.spark.writing.steps import SinkSteps
from tarry.spark.writing.write_options import parse_write_options

OLD = [b"old %d" % number for number in range(10)]
NEW = [b"new %d" % number for number in range(9)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LosingBroker]:
    with closing(LosingBroker(tmp_path_factory.mktemp("losing"))) as losing:
        yield losing


def reader_of(broker: LosingBroker, topic: str, **options: str) -> StreamReader:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **options,
    }
    return StreamReader(parse_read_options(given, is_stream=True))


def values(reader: StreamReader, start: Any, end: Any) -> list[bytes]:
    """What a micro-batch reads."""
    return [
        value
        for task in reader.partitions(start, end)
        for batch in reader.read(task)
        for value in batch.column("value").to_pylist()
    ]


def without_epochs(told: dict[str, Any]) -> dict[str, Any]:
    """Offsets as a checkpoint of an older version has them."""
    return {
        name: {key: at for key, at in topic.items() if key != "epochs"}
        for name, topic in told.items()
    }


def test_a_query_notices_a_log_that_was_cut_and_has_grown_past_its_place(
    broker: LosingBroker, tmp_path: Path
) -> None:
    topic = "cut-under-a-query"
    broker.make(topic)
    broker.send(topic, *OLD)
    file = tmp_path / "lost.jsonl"
    lax = reader_of(broker, topic, failOnDataLoss="false", lossFile=str(file))
    strict = reader_of(broker, topic)
    begin = lax.initialOffset()
    middle = lax.latestOffset(begin, ReadMaxRows(3))
    noted = lax.latestOffset(middle, ReadAllAvailable())
    assert values(lax, begin, middle) + values(lax, middle, noted) == OLD
    assert strict.latestOffset(noted, ReadAllAvailable()) == noted

    (planned,) = strict.partitions(middle, noted)

    broker.lose_from(topic, 6)
    broker.send(topic, *NEW)

    # A task that was planned before, and is read, or repeated, behind it.
    with pytest.raises(LogTruncated, match="records of epoch 1 from offset 6 on"):
        list(strict.read(planned))
    restarted = reader_of(broker, topic)
    for query in (strict, restarted):
        with pytest.raises(DataLost, match=rf"{topic} \[0\] from offset 6 to 10 \(read before: "):
            query.latestOffset(noted, ReadAllAvailable())
    # A micro-batch that was planned before, and is read again.
    with pytest.raises(DataLost, match=rf"{topic} \[0\] from offset 6 to 10 \(the log was cut"):
        restarted.partitions(middle, noted)
    assert values(lax, middle, noted) == OLD[3:6]

    file.unlink()

    parted = lax.latestOffset(noted, ReadAllAvailable())
    reached = lax.latestOffset(parted, ReadAllAvailable())

    assert (parted[topic]["0"], reached[topic]["0"]) == (6, 15)
    assert lax.partitions(noted, parted) == []
    assert values(lax, parted, reached) == NEW
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["topic"], line["partition"], line["first"], line["end"]) == (topic, 0, 6, 10)
    assert restarted.latestOffset(reached, ReadAllAvailable()) == reached
    with_a_limit = reader_of(broker, topic, failOnDataLoss="false", minOffsetsPerTrigger="100")
    with_a_limit.prepareForTriggerAvailableNow()
    limit = with_a_limit.getDefaultReadLimit()
    assert with_a_limit.latestOffset(noted, limit) == parted
    assert with_a_limit.latestOffset(parted, limit) == reached
    for reader in (lax, strict, restarted, with_a_limit):
        reader.stop()


def test_leaders_that_kept_everything_and_old_checkpoints_end_no_query(
    broker: LosingBroker,
) -> None:
    topic = "led-anew-under-a-query"
    broker.make(topic)
    broker.send(topic, *OLD)
    reader = reader_of(broker, topic)
    noted = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    broker.restart(is_clean=False)
    assert reader.latestOffset(noted, ReadAllAvailable()) == noted
    broker.send(topic, *NEW)
    broker.restart(is_clean=True)

    for query in (reader, reader_of(broker, topic)):
        reached = query.latestOffset(noted, ReadAllAvailable())
        assert values(query, noted, reached) == NEW
        assert query.latestOffset(without_epochs(noted), ReadAllAvailable()) == reached
        query.stop()
    assert [first for _, first in reached[topic]["epochs"]["0"]] == [0, 10]


def test_an_archive_notices_it_too_and_keeps_what_was_lost(
    broker: LosingBroker, tmp_path: Path
) -> None:
    topic = "cut-under-an-archive"
    choice = TopicChoice(names=(topic,))

    def run(**changed: Any) -> int:
        options = ArchiveOptions({"bootstrap.servers": broker.bootstrap}, **changed)
        summary = ArchiveSummary()
        for summary in archive(None, choice, tmp_path, options):  # noqa: B007
            pass
        return summary.records

    broker.make(topic)
    broker.send(topic, *OLD[:5])
    assert run() == 5
    broker.restart(is_clean=False)
    broker.send(topic, *OLD[5:])
    assert run() == 5
    newest = ArchiveDirectory(tmp_path).newest()
    assert newest is not None
    assert [first for _, first in newest.epochs[topic][0]] == [0, 5]

    broker.lose_from(topic, 7)
    broker.send(topic, *NEW)

    sentence = r"\[0\] up to offset 10, and the log was cut at offset 7 .*to another path"
    for changed in ({}, {"fail_on_data_loss": False}):
        with pytest.raises(ArchiveRefused, match=sentence):
            run(**changed)


class DyingPublishing(Publishing):
    """Publishing of a driver that dies before it sends anything."""

    def _carry_out(self, effect: Any) -> object:
        if isinstance(effect, SendRound):
            raise SystemExit
        return super()._carry_out(effect)


def test_a_frozen_micro_batch_notices_that_its_log_was_cut_below_it(
    broker: LosingBroker, tmp_path: Path
) -> None:
    topic = "cut-under-a-plan"
    broker.make(topic)
    broker.send(topic, *OLD)
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "checkpointLocation": str(tmp_path / "checkpoint"),
        "sinkLocation": str(tmp_path / "sink"),
        "topic": topic,
    }
    options = parse_write_options(given, is_stream=True)

    def die_with(batch_id: int) -> None:
        rows = pyarrow.record_batch({"value": [b"row %d" % batch_id]})
        output = TaskWriter(options, ["value"], 0).write([rows])
        directory = SinkDirectory(tmp_path / "sink")
        directory.bind("q")
        with Publisher(options.client_settings) as publisher, pytest.raises(SystemExit):
            DyingPublishing(directory, publisher, 1_000).run(
                SinkSteps("q", 86_400_000).commit(batch_id, (output,))
            )

    die_with(0)
    # Records that were kept are no reason to refuse.
    broker.restart(is_clean=False)
    assert commit(options, "q", 0, []).record_count == 1
    die_with(1)
    broker.lose_from(topic, 6)
    broker.send(topic, *NEW)

    with pytest.raises(SinkRefused, match=r"from offset 11 on, and the log was cut at offset 6 "):
        commit(options, "q", 1, [])


def test_a_broker_says_where_epochs_ended_though_none_was_written_in_since(
    broker: LosingBroker,
) -> None:
    topic = "epochs-without-records"
    place = (topic, 0)
    broker.make(topic)
    broker.send(topic, *OLD)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        before = admin.offsets({place: -1})[place].leader_epoch  # type: ignore[union-attr]
    for _ in range(3):
        broker.restart(is_clean=False)

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        told = [admin.epoch_ends({place: before + more})[place] for more in range(4)]

    assert told == [FoundEpoch(before, 10)] * 3 + [FoundEpoch(before + 3, 10)]
