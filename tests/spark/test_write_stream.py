"""Streams into topics, exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest


def start(frame, broker, checkpoint, **options):
    write = frame.writeStream.format("tarry").trigger(availableNow=True)
    write = write.option("kafka.bootstrap.servers", broker.bootstrap)
    return write.option("checkpointLocation", checkpoint).options(**options).start()


def run(frame, broker, checkpoint, **options):
    query = start(frame, broker, checkpoint, **options)
    query.awaitTermination()
    return query


@pytest.fixture
def lines(spark, tmp_path):
    """A stream of the lines of files, one file a micro-batch."""
    folder = tmp_path / "lines"
    folder.mkdir()

    def add(number, *rows):
        (folder / f"{number}.txt").write_text("".join(f"{row}\n" for row in rows))

    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
    return stream.load(str(folder)), add


def test_several_topics_in_one_micro_batch(spark, broker, lines, checkpoint):
    one, two = broker.topic("stream-one", partitions=2), broker.topic("stream-two")
    stream, add = lines
    add(1, *[f"{number}" for number in range(100)])
    add(2, *[f"{number}" for number in range(100, 150)])
    choice = f"CASE WHEN int(value) % 3 = 0 THEN '{two}' ELSE '{one}' END"
    frame = stream.selectExpr("value AS key", "value", f"{choice} AS topic")

    run(frame, broker, checkpoint)
    add(3, *[f"{number}" for number in range(150, 160)])
    run(frame, broker, checkpoint)

    values = {topic: [int(one.value) for one in broker.records(topic)] for topic in (one, two)}
    assert sorted(values[two]) == [number for number in range(160) if number % 3 == 0]
    assert sorted(values[one]) == [number for number in range(160) if number % 3 != 0]
    left = [path.name for path in (Path(checkpoint) / "sink").iterdir() if "task" in path.name]
    assert left == []
