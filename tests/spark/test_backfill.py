"""Backfills on a real Spark: windows beside those of a plain computation."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.sql import functions as of
from tests.support.spark.audit import make_topic

from tarry.client import Producer
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.manifest import ArchiveRefused
from tarry.spark.backfill.backfill import BackfillOptions, BackfillSummary, backfill
from tarry.spark.backfill.plan import WindowSpan
from tarry.spark.backfill.results import KIND, NEW, OLD_KEY, OLD_VALUE, compared, moment_of, within
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.steps.aggregation import WINDOW, result_columns
from tarry.spark.writing.publishing import Publishing
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tarry.spark.pipeline.file.sections import Pipeline

SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "integer"}, "country": {"type": "string"}},
    "required": ["at"],
}

FILE = """\
name = "{name}"
checkpoint = "checkpoint"
source = {{ topics = ["{name}"], time = "at" }}
decode = {{ format = "json", schema = "schema.json" }}
clean = {{ topic = "{name}.clean", rejected = "{name}.rejected" }}
archive = {{ path = "archive", topics = ["{name}.clean"], by = "day" }}
[[aggregate]]
name = "visits"
{window}
late = "1m"
by = ["country"]
values = {{ visits = "count(*)", latest = "max(at)" }}
topic = "{name}.visits"
"""

MINUTE_MS = 60_000
BEGIN_MS = 1_760_000_040_000 // MINUTE_MS * MINUTE_MS

# Window and country; visits and the latest one.
Results = dict[tuple[str, str], tuple[int, int]]


class Killed(BaseException):
    """The end of a driver, as a test has it."""


def prepare(broker: Tarry, path: Path, name: str, window: str) -> Pipeline:
    """Make the topics and the file of a pipeline whose stages never ran."""
    (path / "schema.json").write_text(json.dumps(SCHEMA))
    (path / "pipeline.toml").write_text(FILE.format(name=name, window=window))
    for topic in (name, f"{name}.clean", f"{name}.rejected"):
        make_topic(broker.bootstrap, topic, 2)
    return read_pipeline(path / "pipeline.toml", {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})


def send(broker: Tarry, topic: str, times: list[int]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for at in times:
            event = {"at": at, "country": "DE" if at % 2 else "FR"}
            producer.send(topic, json.dumps(event).encode(), key=b"%d" % (at % 7))


def take(broker: Tarry, pipeline: Pipeline, table: str = "parquet") -> None:
    """Archive what the clean topic has."""
    assert pipeline.archive is not None
    assert pipeline.clean is not None
    made = ArchiveOptions({"bootstrap.servers": broker.bootstrap}, by="day", table=table)
    list(archive(None, TopicChoice(names=(pipeline.clean.topic,)), pipeline.archive.path, made))


def results_of(broker: Tarry, topic: str) -> Results:
    """The newest result of each window and group, as a plain consumer has it."""
    found: dict[bytes | None, bytes | None] = {}
    for record in broker.records(topic):
        found[record.key] = record.value
    rows = [json.loads(value) for value in found.values() if value is not None]
    return {(row["start"], row["country"]): (row["visits"], row["latest"]) for row in rows}


def expected_of(times: list[int], closed_ms: int) -> Results:
    """What a plain computation makes of all events."""
    counts: Counter[tuple[int, str]] = Counter()
    latest: dict[tuple[int, str], int] = {}
    for at in times:
        place = at // MINUTE_MS * MINUTE_MS, "DE" if at % 2 else "FR"
        counts[place] += 1
        latest[place] = max(at, latest.get(place, 0))
    return {
        (stamp(begin), country): (count, latest[begin, country])
        for (begin, country), count in counts.items()
        if begin + MINUTE_MS <= closed_ms
    }


def stamp(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def run(spark: SparkSession, pipeline: Pipeline, **options: object) -> BackfillSummary:
    given = BackfillOptions(**options)  # type: ignore[arg-type]
    return backfill(spark, pipeline, given)


def test_a_killed_backfill_goes_on_and_every_event_is_in_its_window(
    spark: SparkSession, broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare(broker, tmp_path, "filled", 'window = "1m"')
    events = [BEGIN_MS + step * 1_701 for step in range(300)]
    send(broker, "filled.clean", events[:200])
    take(broker, made, "delta")
    # These are not archived yet.
    send(broker, "filled.clean", events[200:])
    send(broker, "filled.clean", [BEGIN_MS])

    def killed(*arguments: object) -> None:
        raise Killed

    # The next start publishes a frozen batch.
    with monkeypatch.context() as patched:
        patched.setattr(Publishing, "_send", killed)
        with pytest.raises(Killed):
            run(spark, made)
    send(broker, "filled.clean", [BEGIN_MS + 1])
    take(broker, made, "delta")
    went_on = run(spark, made)
    first = results_of(broker, "filled.visits")
    again = run(spark, made)

    closed_ms = max(events) - MINUTE_MS
    expected = expected_of([*events, BEGIN_MS], closed_ms)
    assert first == expected
    assert went_on.went_on
    assert (went_on.closed_ms, went_on.records) == (closed_ms, len(events) + 1)
    assert (went_on.windows, went_on.new, went_on.changed) == (len(expected), len(expected), 0)
    assert results_of(broker, "filled.visits") == expected_of(
        [*events, BEGIN_MS, BEGIN_MS + 1], closed_ms
    )
    assert (again.new + again.changed, again.went_on) == (1, False)
    with pytest.raises(ArchiveRefused, match="is no archive"):
        run(spark, made, archive=tmp_path / "nothing")


def test_sessions_that_a_late_event_joins_become_one(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    made = prepare(broker, tmp_path, "joined", 'session = "30s"')
    # Two sessions of each country, and what brings the watermark behind them.
    begins = [BEGIN_MS, BEGIN_MS + 1, BEGIN_MS + 50_000, BEGIN_MS + 50_001]
    send(broker, "joined.clean", [*begins, BEGIN_MS + 10 * MINUTE_MS])
    take(broker, made)
    first = run(spark, made)
    send(broker, "joined.clean", [BEGIN_MS + 25_001])

    second = run(spark, made, from_ms=BEGIN_MS, until_ms=BEGIN_MS + 1_000)

    assert (first.windows, first.new, first.removed) == (4, 4, 0)
    # The session that was joined is taken as a whole; that of the other country is as it was.
    assert (second.windows, second.new, second.changed, second.removed) == (2, 1, 0, 2)
    found = results_of(broker, "joined.visits")
    assert sorted((country, *result) for (_, country), result in found.items()) == [
        ("DE", 3, BEGIN_MS + 50_001),
        ("FR", 1, BEGIN_MS),
        ("FR", 1, BEGIN_MS + 50_000),
    ]


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "closed_ms", "ends_min"),
    [
        # A window that ends at the watermark is closed, one that ends a millisecond later is not.
        (None, None, 3 * MINUTE_MS, [1, 2, 3]),
        (None, None, 3 * MINUTE_MS - 1, [1, 2]),
        # A window has its begin and not its end.
        (MINUTE_MS, None, 9 * MINUTE_MS, [2, 3, 4]),
        (MINUTE_MS - 1, None, 9 * MINUTE_MS, [1, 2, 3, 4]),
        (None, 2 * MINUTE_MS, 9 * MINUTE_MS, [1, 2]),
        (None, 2 * MINUTE_MS + 1, 9 * MINUTE_MS, [1, 2, 3]),
    ],
)
def test_windows_at_a_bound_are_in_or_out_to_the_millisecond(
    spark: SparkSession,
    from_ms: int | None,
    until_ms: int | None,
    closed_ms: int,
    ends_min: list[int],
) -> None:
    times = spark.createDataFrame([(moment_of(minute * MINUTE_MS),) for minute in range(4)], ["at"])
    windows = times.select(of.window("at", "1 minute").alias(WINDOW))

    found = within(windows, WindowSpan(from_ms, until_ms, closed_ms)).select(f"{WINDOW}.end")

    ends = found.select(of.unix_millis("end").alias("at_ms")).collect()
    assert sorted(row.at_ms // MINUTE_MS for row in ends) == ends_min


@pytest.mark.parametrize(("gap_s", "gone"), [(29, {"removed": 2}), (30, {}), (31, {})])
def test_a_session_that_only_touches_the_new_one_stays(
    spark: SparkSession, tmp_path: Path, gap_s: int, gone: dict[str, int]
) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "pipeline.toml").write_text(FILE.format(name="touching", window='session = "30s"'))
    (one,) = read_pipeline(tmp_path / "pipeline.toml", {}).aggregates

    def sessions(*begins_s: int) -> DataFrame:
        rows = [
            (moment_of(begin * 1_000), moment_of(begin * 1_000 + 30_000), "DE", 1, begin)
            for begin in begins_s
        ]
        names = ["begin", "finish", "country", "visits", "latest"]
        ends = [of.col("begin").alias("start"), of.col("finish").alias("end")]
        frame = spark.createDataFrame(rows, names)
        return frame.select(of.struct(*ends).alias(WINDOW), *names[2:])

    # One of before begins and another one ends so many seconds away from what is there now.
    key, value = result_columns(one.by, one.values)
    known = sessions(100 - gap_s, 100 + gap_s).select(key.alias(OLD_KEY), value.alias(OLD_VALUE))

    kinds = [row[KIND] for row in compared(sessions(100), one, known).select(KIND).collect()]

    assert Counter(kinds) == {NEW: 1, **gone}
