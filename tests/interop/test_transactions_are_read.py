"""Transactions that Java wrote to Apache Kafka, read by us in both isolation levels."""

from __future__ import annotations

import subprocess
import sys
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.interop.java_face import JavaFace, JavaProgram
from tests.support.interop.transactions import Transactions
from tests.support.patience import PATIENCE_S

from tarry.client import Consumer
from tarry.client.arrow import scan
from tarry.client.errors import OffsetOutOfRange

has_pyarrow = find_spec("pyarrow") is not None


def read(address: str, topic: str, level: str, end: int, **settings: Any) -> list[bytes | None]:
    """Read a partition up to an offset, markers and all."""
    values: list[bytes | None] = []
    with Consumer(bootstrap_servers=address, isolation_level=level, **settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek(topic, 0, 0)
        assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): end}
        while consumer.position(topic, 0) < end:
            groups = consumer.poll(PATIENCE_S)
            values += [record.value for group in groups for record in group.records]
        assert consumer.poll(0.6) == []
        assert consumer.is_at_end(topic, 0)
        assert consumer.lag(topic, 0) == 0
    return values


def scanned(address: str, topic: str, level: str, end: int) -> list[bytes | None]:
    """Scan a partition up to an offset into columns."""
    settings = {"bootstrap.servers": address, "isolation.level": level}
    batches = scan({(topic, 0): (0, end)}, settings, ["value"], 64)
    return [value for batch in batches for value in batch["value"].to_pylist()]


def printed(address: str, topic: str, level: str) -> list[bytes]:
    """Read the topic by the command."""
    command = [sys.executable, "-m", "tarry", "consume", topic, "-b", address, "--isolation", level]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_transactions_of_java_are_read_as_the_isolation_level_says(
    apache_kafka: str, java_program: JavaProgram, codec: str
) -> None:
    topic = f"transactions-{uuid.uuid4().hex[:8]}"
    JavaFace(apache_kafka, java_program).create_topic(topic, 1, {})
    first = Transactions(java_program, apache_kafka, topic, codec)
    second = Transactions(java_program, apache_kafka, topic, codec)
    committed = [b"committed %d" % number for number in range(200)]
    aborted = [b"aborted %d " % number + b"x" * 100 for number in range(200)]

    # An aborted transaction around a committed one, in many batches.
    first.step("begin")
    first.write(*aborted[:100])
    second.step("begin")
    second.write(*committed[:100])
    first.write(*aborted[100:])
    second.write(*committed[100:])
    second.end("commit")
    first.end("abort")
    stable = 402
    # One that is open, and a committed one behind it.
    first.step("begin")
    first.write(b"open")
    second.step("begin")
    second.write(b"behind")
    second.end("commit")

    everything = read(apache_kafka, topic, "read_uncommitted", stable + 3)
    only_committed = read(apache_kafka, topic, "read_committed", stable)
    in_pieces = read(apache_kafka, topic, "read_committed", stable, max_partition_fetch_bytes=3_000)

    assert sorted(everything) == sorted([*committed, *aborted, b"open", b"behind"])
    assert only_committed == committed
    assert in_pieces == committed
    if has_pyarrow:
        assert scanned(apache_kafka, topic, "read_committed", stable) == committed
        assert scanned(apache_kafka, topic, "read_uncommitted", stable + 3) == everything
        with pytest.raises(OffsetOutOfRange, match=f"0 to {stable}, not 0 to {stable + 1}"):
            scanned(apache_kafka, topic, "read_committed", stable + 1)

    assert printed(apache_kafka, topic, "read_committed") == only_committed
    first.end("commit")
    assert read(apache_kafka, topic, "read_committed", stable + 4) == [
        *committed,
        b"open",
        b"behind",
    ]
    first.producer.close()
    second.producer.close()


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
def test_transactions_of_java_are_read_by_tasks_and_archived(
    apache_kafka: str, java_program: JavaProgram, tmp_path: Path
) -> None:
    from tarry.spark.archive.archive import ArchiveOptions, archive
    from tarry.spark.archive.verify import verify
    from tarry.spark.reading.batch import BatchReader
    from tarry.spark.reading.bounds import TopicChoice
    from tarry.spark.reading.read_options import parse_read_options

    topic = f"transactions-{uuid.uuid4().hex[:8]}"
    JavaFace(apache_kafka, java_program).create_topic(topic, 1, {})
    writer = Transactions(java_program, apache_kafka, topic, "none")
    committed: list[bytes] = []
    for number in range(4):
        writer.step("begin")
        values = [b"%d %d " % (number, row) + b"x" * 100 for row in range(60)]
        writer.write(*values)
        # A task begins in the middle of an aborted transaction: seven of them share the topic.
        writer.end("commit" if number % 2 else "abort")
        committed += values if number % 2 else []
    writer.step("begin")
    writer.write(b"open")

    given = {
        "kafka.bootstrap.servers": apache_kafka,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "tasks": "7",
    }
    reader = BatchReader(parse_read_options(given, is_stream=False))
    tasks = reader.partitions()
    read = [
        bytes(row["value"])
        for task in tasks
        for rows in reader.read(task)
        for row in rows.to_pylist()
    ]

    assert len(tasks) == 7
    assert read == committed
    settings = {"bootstrap.servers": apache_kafka}
    choice = TopicChoice(names=(topic,))

    def archived() -> tuple[int, int]:
        """Archive what is there; return the rows and the offsets without one."""
        list(archive(None, choice, tmp_path, ArchiveOptions(settings)))
        found = verify(tmp_path, settings)
        assert found.faults == []
        return found.rows, found.gaps

    # Aborted records and markers are no rows; what is open waits.
    assert archived() == (120, 120 + 4)
    writer.end("commit")
    assert archived() == (121, 120 + 5)
    writer.producer.close()
