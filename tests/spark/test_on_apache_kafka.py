"""A pipeline, its archive, a replay, a compaction and a backfill on Apache Kafka."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.spark.audit import make_topic, records_of, values_of

from tarry.client import Producer
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.compact import compact
from tarry.spark.archive.verify import verify
from tarry.spark.backfill.backfill import backfill
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.run import RunOptions, run_pipeline
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.replay.replay import ReplayOptions, replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "integer"}, "country": {"type": "string"}},
    "required": ["at", "country"],
}

FILE = """\
name = "on-kafka"
checkpoint = "checkpoint"
source = { topics = ["on-kafka"], time = "at", group = "on-kafka-pipe" }
decode = { format = "json", schema = "schema.json" }
check = { known = "country <> ''" }
clean = { topic = "on-kafka.clean", rejected = "on-kafka.rejected" }
archive = { path = "archive", topics = ["on-kafka", "on-kafka.clean"], by = "none" }
[[aggregate]]
name = "visits"
window = "1m"
late = "1m"
by = ["country"]
values = { visits = "count(*)" }
topic = "on-kafka.visits"
"""

MINUTE_MS = 60_000
# Apache Kafka deletes by its own settings what is older than a week.
BEGIN_MS = (time.time_ns() // 1_000_000 // MINUTE_MS - 20) * MINUTE_MS


def event(at_ms: int, country: str) -> bytes:
    return json.dumps({"at": at_ms, "country": country}).encode()


# Ten minutes with an event every ten seconds; the windows of the last two are open.
WELL = [event(BEGIN_MS + step * 10_000, "DE") for step in range(60)]
BAD = [b"no JSON", event(BEGIN_MS, "")]
# Of the first window, once that one is written.
LATE = event(BEGIN_MS + 1, "DE")


def send(bootstrap: str, topic: str, values: list[bytes]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, key=b"%d" % (number % 7))


def visits_of(bootstrap: str) -> dict[str, int]:
    """Return the newest result of each window."""
    newest = {record.key: record.value for _, record in records_of(bootstrap, "on-kafka.visits")}
    rows = [json.loads(value) for value in newest.values()]
    return {row["start"]: row["visits"] for row in rows}


def test_what_a_pipeline_writes_is_archived_merged_replayed_and_computed_again(
    spark: SparkSession, apache_kafka: str, tmp_path: Path
) -> None:
    settings = {"bootstrap.servers": apache_kafka}
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "pipeline.toml").write_text(FILE)
    made = read_pipeline(tmp_path / "pipeline.toml", {"TARRY_BOOTSTRAP_SERVERS": apache_kafka})
    assert made.archive is not None
    for topic in ("on-kafka", "on-kafka.again"):
        make_topic(apache_kafka, topic, 2)
    send(apache_kafka, "on-kafka", [*WELL, *BAD])

    sums = run_pipeline(spark, made, RunOptions(once=True, restarts_max=20))

    assert sums["clean"].rejected == {"decode": 1, "known": 1}
    assert values_of(apache_kafka, "on-kafka.clean") == dict.fromkeys(WELL, 1)
    assert values_of(apache_kafka, "on-kafka.rejected") == dict.fromkeys(BAD, 1)
    minutes = sorted(visits_of(apache_kafka))
    assert visits_of(apache_kafka) == dict.fromkeys(minutes, 6)
    assert len(minutes) == 8

    # A second, small file for a partition, with what came too late for its window.
    send(apache_kafka, "on-kafka.clean", [LATE])
    topics = TopicChoice(names=("on-kafka", "on-kafka.clean"))
    list(archive(None, topics, made.archive.path, ArchiveOptions(settings, by="none")))
    (merged,) = list(compact(spark, made.archive.path))
    assert (merged.files_before, merged.files_after) == (2, 1)
    found = verify(made.archive.path, made.reading())
    assert (found.faults, found.rows) == ([], 2 * len(WELL) + len(BAD) + 1)

    options = ReplayOptions(settings, "on-kafka.clean", "on-kafka.again")
    *_, summary = replay(spark, made.archive.path, options)
    assert (summary.records, summary.is_finished) == (len(WELL) + 1, True)

    def places(topic: str) -> list[tuple[int, bytes, bytes]]:
        return [
            (partition, one.key, one.value) for partition, one in records_of(apache_kafka, topic)
        ]

    assert sorted(places("on-kafka.again")) == sorted(places("on-kafka.clean"))

    again = backfill(spark, made)
    assert (again.new, again.changed) == (0, 1)
    assert visits_of(apache_kafka) == {**dict.fromkeys(minutes, 6), minutes[0]: 7}
