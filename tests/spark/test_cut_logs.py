"""A pipeline on a real Spark, whose topic is cut below it and grows again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from tests.support.spark.cut_logs import LosingBroker

from tarry.client import LATEST, Admin
from tarry.client.arrow import scan
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.run import RunOptions, run_pipeline

FILE = """\
name = "cut-flow"
checkpoint = "checkpoint"
source = { topics = ["cut-flow"] }
decode = { format = "json", schema = "schema.json" }
clean = { topic = "cut-flow.clean", rejected = "cut-flow.rejected" }
"""
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def values(*numbers: int) -> list[bytes]:
    return [json.dumps({"number": number}).encode() for number in numbers]


@pytest.fixture
def losing(tmp_path: Path) -> Iterator[LosingBroker]:
    directory = tmp_path / "broker"
    directory.mkdir()
    with closing(LosingBroker(directory)) as broker:
        yield broker


def all_values(broker: LosingBroker, topic: str) -> list[bytes | None]:
    """Values of a topic of one partition, in their order."""
    place = (topic, 0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        (end,) = admin.offsets({place: LATEST}).values()
    rows = scan({place: (0, end.offset)}, bootstrap_servers=broker.bootstrap, columns=["value"])
    return [value for batch in rows for value in batch.column("value").to_pylist()]


@pytest.mark.timeout(600)
def test_a_pipeline_goes_on_at_the_cut_and_says_what_the_broker_lost(spark, losing, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    made = read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": losing.bootstrap})
    losing.make("cut-flow", "cut-flow.clean", "cut-flow.rejected")
    old, new = values(*range(10)), values(*range(100, 109))
    losing.send("cut-flow", *old)
    once = RunOptions(once=True, restarts_max=20)
    assert run_pipeline(spark, made, once)["clean"].records == 10

    losing.lose_from("cut-flow", 6)
    losing.send("cut-flow", *new)
    sentence = r"cut-flow \[0\] from offset 6 to 10 \(read before: .* once with --skip-lost"
    with pytest.raises(StageFailed, match=sentence):
        run_pipeline(spark, made, once)
    skipping = RunOptions(once=True, restarts_max=20, skips_lost=True)
    sums = run_pipeline(spark, made, skipping)["clean"]

    assert sums.records == 9
    assert [msgspec.structs.astuple(one)[:4] for one in sums.lost] == [("cut-flow", 0, 6, 10)]
    assert all_values(losing, "cut-flow.clean") == [*old, *new]
    lines = (tmp_path / "checkpoint" / "_pipeline" / "progress.jsonl").read_text().splitlines()
    told = [one for line in lines for one in json.loads(line)["lost"]]
    assert [(one["first"], one["end"]) for one in told] == [(6, 10)]
