"""Pipelines on a real Spark: topics that are deleted and made anew, and unusual records."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.client import Producer
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.run import RunOptions, run_pipeline
from tarry.testing import Tarry

FILE = """\
name = "flow"
checkpoint = "checkpoint"
source = { topics = ["flow"] }
decode = { format = "json", schema = "schema.json" }
check = { even = "100 / number > 0 AND number % 2 = 0" }
clean = { topic = "flow.clean", rejected = "flow.rejected" }
"""
SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
    "required": ["number"],
}

LARGE_BYTES = 20_000_000


def value(number: int, text: str = "") -> bytes:
    return json.dumps({"number": number, "text": text}).encode()


def make(broker: Tarry, topic: str) -> None:
    """Make a topic that takes large records, in place of one that is there."""
    if broker.admin.find_topics([topic]):
        broker.admin.delete_topics([topic])
    # Of any size and of any time.
    limits = {"max_message_bytes": 30_000_000, "message_timestamp_after_max_ms": 2**63 - 1}
    broker.topic(topic, partitions=2, **limits)


def send(bootstrap: str, *records: dict[str, Any]) -> None:
    large = {"max.request.size": "30000000", "buffer.memory": "64000000"}
    with Producer({"bootstrap.servers": bootstrap, **large}) as producer:
        for record in records:
            producer.send("flow", **{"partition": 0, **record})


@pytest.mark.timeout(600)
def test_a_pipeline_says_what_to_do_about_topics_made_anew_and_takes_any_record(
    spark, broker, tmp_path
):
    bootstrap = broker.bootstrap
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    made = read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": bootstrap})
    make(broker, "flow")
    send(bootstrap, {"value": value(2)}, {"value": value(4)})
    once = RunOptions(once=True, restarts_max=20)
    run_pipeline(spark, made, once)

    make(broker, "flow")
    send(
        bootstrap,
        {"value": None, "key": b"k", "headers": [("h", b"x"), ("h", None)]},
        {"value": value(6, "x" * LARGE_BYTES), "headers": [("large", b"yes")]},
        {"value": value(7)},
        # A division by it, and a time in nanoseconds, which Spark's type cannot hold.
        {"value": value(0)},
        {"value": value(10), "timestamp": 1_760_000_000_000_000_000},
    )
    with pytest.raises(StageFailed, match=r"made anew.*\. Start the run once with --skip-lost"):
        run_pipeline(spark, made, once)
    skipping = RunOptions(once=True, restarts_max=20, skips_lost=True)
    sums = run_pipeline(spark, made, skipping)["clean"]

    assert (sums.records, sums.rejected) == (5, {"decode": 2, "even": 2})
    clean = [(len(one.value), list(one.headers)) for one in broker.records("flow.clean")]
    large = len(value(6, "x" * LARGE_BYTES)), [("large", b"yes")]
    assert clean == [(len(value(2)), []), (len(value(4)), []), large]
    by_value = {one.value: one for one in broker.records("flow.rejected")}
    told = by_value[None]
    assert (told.key, list(told.headers)[:2]) == (b"k", [("h", b"x"), ("h", None)])
    assert dict(told.headers)["x-error"] == b"the record has no value (null)"
    assert set(by_value) == {None, value(7), value(0), value(10)}
    assert b"the event time, and it has none" in dict(by_value[value(10)].headers)["x-error"]

    make(broker, "flow.clean")
    send(bootstrap, {"value": value(8)})
    with pytest.raises(StageFailed, match=r"'flow\.clean' was .* another checkpoint in"):
        run_pipeline(spark, made, once)
    assert broker.records("flow.clean") == []
