"""Pipelines on a real Spark: their stages, restarts, mistakes that only Spark sees."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from tests.support.spark.audit import make_topic, values_of
from tests.support.spark.trap import Trap, snapped, trapped_source

from tarry.client import LATEST, Admin, Producer
from tarry.spark.archive.verify import verify
from tarry.spark.pipeline import queries, run
from tarry.spark.pipeline.expressions import expression_mistakes
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.run import RunOptions, run_pipeline

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "country": {"type": ["string", "null"]}},
    "required": ["number"],
}

FILE = """\
name = "{name}"
checkpoint = "checkpoint"
every = "100ms"
source = {{ topics = ["{name}"], rate = 1_000, group = "{name}-pipe" }}
decode = {{ format = "json", schema = "schema.json" }}
clean = {{ topic = "{name}.clean", rejected = "{name}.rejected" }}
archive = {{ path = "archive", topics = ["{name}", "{name}.clean"], every = "50ms" }}
[check]
even = "number % 2 = 0"
known = "country IS NOT NULL"
"""

RECORDS = 240

TRAPS = [Trap(0, "CreatePlan", is_behind=True), Trap(1, "MarkDone", is_behind=False)]


@pytest.fixture
def pipeline(tmp_path, broker):
    """Make a pipeline's file with a name of its own, and read it."""

    def make(name: str, text: str = FILE):
        (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
        path = tmp_path / "pipeline.toml"
        path.write_text(text.format(name=name))
        return read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})

    return make


def value_of(number: int) -> bytes:
    if number % 40 == 0:
        return b"no JSON %d" % number
    country = None if number % 20 == 4 else "DE"
    return json.dumps({"number": number, "country": country}).encode()


def is_well(number: int) -> bool:
    return number % 40 != 0 and number % 2 == 0 and number % 20 != 4


def fill(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(topic, value_of(number), key=b"%d" % (number % 7))


@pytest.mark.timeout(900)
def test_each_record_is_in_one_topic_once_and_in_the_archive_whatever_dies(
    spark, broker, pipeline, tmp_path, monkeypatch
):
    made = pipeline("killed-pipe")
    fill(broker.bootstrap, "killed-pipe")
    spark.dataSource.register(trapped_source(TRAPS, str(tmp_path)))
    monkeypatch.setattr(queries, "SINK", "tarry-trapped")
    # The data source of this test is known to its session only.
    monkeypatch.setattr(run, "session_of", lambda session: session)
    told: list[str] = []

    sums = run_pipeline(spark, made, RunOptions(once=True, restarts_max=20, tell=told.append))

    assert snapped(str(tmp_path), len(TRAPS)) == len(TRAPS)
    assert sums["clean"].restarts >= len(TRAPS)
    assert all("It starts again in" in one or "could not be decoded" in one for one in told)
    well = {value_of(number): 1 for number in range(RECORDS) if is_well(number)}
    bad = {value_of(number): 1 for number in range(RECORDS) if not is_well(number)}
    assert values_of(broker.bootstrap, "killed-pipe.clean") == well
    assert values_of(broker.bootstrap, "killed-pipe.rejected") == bad
    found = verify(made.archive.path, made.reading())
    assert (found.faults, found.rows) == ([], RECORDS + len(well))


def test_a_pipeline_goes_on_where_it_was_and_tells_its_lag(spark, broker, pipeline, tmp_path):
    made = pipeline("twice-pipe")
    fill(broker.bootstrap, "twice-pipe")
    lines: list[object] = []
    told: list[str] = []

    first = run_pipeline(
        spark,
        made,
        RunOptions(once=True, restarts_max=20, listeners=(lines.append,), tell=told.append),
    )
    again = run_pipeline(spark, made, RunOptions(once=True, restarts_max=20))

    assert first["clean"].records == RECORDS
    assert first["clean"].lag == 0
    # All are of one reason, which the first of them tells.
    (sample,) = [one for one in told if "could not be decoded" in one]
    assert re.search(
        r"twice-pipe \[\d\] offset \d+ could .* invalid character \(byte 4\)\. ", sample
    )
    assert first["clean"].rejected == {"decode": 6, "even": 120, "known": 12}
    assert first["archive"].records == 2 * RECORDS - sum(first["clean"].rejected.values())
    assert sum(one.records for one in again.values()) == 0
    file = tmp_path / "checkpoint" / "_pipeline" / "progress.jsonl"
    assert len(file.read_text().splitlines()) >= len(lines)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        (offsets,) = admin.group_offsets(["twice-pipe-pipe"]).values()
    assert sum(one.offset for one in offsets.values()) == RECORDS


def test_records_that_are_gone_end_a_run_that_may_go_on_without_them(spark, broker, pipeline):
    made = pipeline("lost-pipe")
    fill(broker.bootstrap, "lost-pipe")
    run_pipeline(spark, made, RunOptions(once=True, restarts_max=20))
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send("lost-pipe", value_of(1_002 + 2 * number), partition=0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        (end,) = admin.offsets({("lost-pipe", 0): LATEST}).values()
        admin.delete_records({("lost-pipe", 0): end.offset - 7})

    with pytest.raises(StageFailed, match=r"lost-pipe \[0\] from .* once with --skip-lost"):
        run_pipeline(spark, made, RunOptions(once=True))
    sums = run_pipeline(spark, made, RunOptions(once=True, skips_lost=True, restarts_max=20))

    assert sums["clean"].records == 7
    reason = f"the log starts at {end.offset - 7}"
    lost = [("lost-pipe", 0, end.offset - 10, end.offset - 7, reason)]
    for stage in ("clean", "archive"):
        assert [msgspec.structs.astuple(one) for one in sums[stage].lost] == lost
    assert verify(made.archive.path, made.reading()).lost == 3


def test_stages_run_on_until_they_are_stopped(spark, broker, pipeline):
    made = pipeline("on-pipe")
    fill(broker.bootstrap, "on-pipe")
    archived = 0

    def look(one):
        nonlocal archived
        archived += one.records if one.stage == "archive" else 0
        if archived == RECORDS + sum(is_well(number) for number in range(RECORDS)):
            options.stopping.set()

    options = RunOptions(restarts_max=20, listeners=(look,))
    sums = run_pipeline(spark, made, options)

    assert sums["clean"].records == RECORDS
    with pytest.raises(StageFailed, match="belongs to the pipeline 'on-pipe', and this is 'off-p"):
        run_pipeline(spark, pipeline("off-pipe", FILE.replace('["{name}"', '["on-pipe"')))


STATEFUL = """\
name = "{name}"
checkpoint = "checkpoint"
source = {{ topics = ["{name}"], time = "at" }}
decode = {{ format = "json", schema = "events.json" }}
deduplicate = {{ by = ["event"], within = "24h" }}
clean = {{ topic = "{name}.clean", rejected = "{name}.rejected" }}
[[aggregate]]
name = "sums"
window = "1h"
late = "1m"
by = ["kind"]
values = {{ cents = "sum(cents)" }}
topic = "{name}.sums"
[[wait]]
name = "unpaid"
key = "order"
from = "kind = 'placed'"
until = "kind = 'paid'"
within = "30m"
late = "1m"
topic = "{name}.unpaid"
"""

EVENTS = [
    ("a", 1, "placed", 10, "08:00:00"),
    ("a", 1, "placed", 10, "08:00:00"),
    ("b", 2, "placed", 20, "08:05:00"),
    ("c", 1, "paid", 10, "08:10:00"),
    ("d", 3, "placed", 40, "11:00:00"),
]
# Older than what is remembered: nobody knows whether it came before.
OLD_EVENT = ("e", 4, "placed", 10, "08:00:00")


def send_events(broker, topic, date, events):
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for event, order, kind, cents, at in events:
            told = {"event": event, "order": order, "kind": kind, "cents": cents}
            value = json.dumps({**told, "at": f"{date}T{at}Z"}).encode()
            producer.send(topic, value, key=b"%d" % order)


def test_doubled_events_are_rejected_and_windows_and_waits_end(spark, broker, pipeline, tmp_path):
    types = {"event": "string", "order": "integer", "kind": "string", "cents": "integer"}
    fields: dict[str, object] = {name: {"type": kind} for name, kind in types.items()}
    fields["at"] = {"type": "string", "format": "date-time"}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    (tmp_path / "events.json").write_text(json.dumps(schema))
    made = pipeline("state-pipe", STATEFUL)
    assert expression_mistakes(run.session_of(spark), made) == []
    make_topic(broker.bootstrap, "state-pipe", 1)
    send_events(broker, "state-pipe", "2026-11-22", EVENTS)

    sums = run_pipeline(spark, made, RunOptions(once=True, restarts_max=20))
    send_events(broker, "state-pipe", "2026-11-20", [OLD_EVENT])
    more = run_pipeline(spark, made, RunOptions(once=True, only="clean", restarts_max=20))

    assert sums["clean"].rejected == {"duplicate": 1}
    assert more["clean"].rejected == {"late": 1}
    results = [json.loads(value) for value in values_of(broker.bootstrap, "state-pipe.sums")]
    by_kind = {(one["start"][11:13], one["kind"]): one["cents"] for one in results}
    assert by_kind == {("08", "placed"): 30, ("08", "paid"): 10}
    ended = [json.loads(value) for value in values_of(broker.bootstrap, "state-pipe.unpaid")]
    outcomes = {one["key"]: one["outcome"] for one in ended}
    assert {int(key): outcome for key, outcome in outcomes.items()} == {
        1: "completed",
        2: "expired",
    }


def test_expressions_that_spark_refuses_are_told_with_their_lines(spark, pipeline):
    rules = 'even = "numbr % 2 = 0"\nknown = "country IS"\nfine = "number > 0"\nsum = "number"'
    made = pipeline("wrong-pipe", FILE[: FILE.index("even")] + rules)

    mistakes = expression_mistakes(spark, made)

    assert [(one.line, one.key) for one in mistakes] == [
        (9, "check.even"),
        (10, "check.known"),
        (12, "check.sum"),
    ]
    assert "numbr" in mistakes[0].sentence
    assert Path(made.path).name == "pipeline.toml"
