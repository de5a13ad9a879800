"""Topics of a pipeline: what a run makes of those that are missing, and a cluster that is away."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tarry.client import ClientError
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import stages_of
from tarry.spark.pipeline.topics import admin_of, find_topics, make_topics
from tarry.testing import Tarry

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders", "returns"] }
decode = { format = "text" }
clean = { topic = "clean", rejected = "rejected" }
[[aggregate]]
name = "count"
window = "5m"
values = { orders = "count(*)" }
topic = "counts"
"""


def pipeline_at(directory: Path, bootstrap: str) -> Pipeline:
    path = directory / "orders.toml"
    path.write_text(FILE)
    return read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": bootstrap})


def test_topics_that_are_made_take_what_the_sources_take(tarry: Tarry, tmp_path: Path) -> None:
    limits = {"max_message_bytes": 30_000_000, "message_timestamp_after_max_ms": 7_200_000}
    tarry.topic("orders", partitions=2, **limits)
    tarry.topic("returns", partitions=3)
    tarry.topic("rejected", partitions=1)
    pipeline = pipeline_at(tmp_path, tarry.bootstrap)

    with closing(admin_of(pipeline)) as admin:
        plan = find_topics(admin, pipeline, stages_of(pipeline))
        make_topics(admin, plan.missing)
        again = find_topics(admin, pipeline, stages_of(pipeline))

    assert [(one.name, one.partition_count, dict(one.configs)) for one in plan.missing] == [
        (
            "clean",
            3,
            {"max.message.bytes": "30065536", "message.timestamp.after.max.ms": "7200000"},
        ),
        ("counts", 3, {"cleanup.policy": "compact"}),
    ]
    assert again.missing == []


def test_a_record_that_a_usual_source_just_takes_can_be_rejected(
    tarry: Tarry, tmp_path: Path
) -> None:
    for name in ("orders", "returns"):
        tarry.topic(name)
    pipeline = pipeline_at(tmp_path, tarry.bootstrap)

    with closing(admin_of(pipeline)) as admin:
        plan = find_topics(admin, pipeline, stages_of(pipeline))

    # The cluster's default, and room for the headers that say why.
    rejected = {"max.message.bytes": str(1_048_588 + 65_536)}
    assert {one.name: dict(one.configs) for one in plan.missing} == {
        "clean": {},
        "rejected": rejected,
        "counts": {"cleanup.policy": "compact"},
    }


def test_a_cluster_that_is_away_at_the_start_is_asked_again_and_then_told(tmp_path: Path) -> None:
    pipeline = pipeline_at(tmp_path, "127.0.0.1:1")
    limits = {"default.api.timeout.ms": "300", "reconnect.backoff.ms": "20"}

    with (
        closing(admin_of(pipeline, limits)) as admin,
        pytest.raises(ClientError, match=r"cannot connect to 127\.0\.0\.1:1.* is a broker running"),
    ):
        find_topics(admin, pipeline, stages_of(pipeline))
