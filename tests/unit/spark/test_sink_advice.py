"""What the sink tells a query to do, in the words of a job that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.base.errors import NOT_ENOUGH_REPLICAS
from tarry.client import NewTopic
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.backfill.backfill import Backfiller, BackfillOptions
from tarry.spark.backfill.plan import AskedBackfill, BackfillRefused
from tarry.spark.backfill.state import BackfillState
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.writing.advice import stop_sentence
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.commit import commit
from tarry.spark.writing.plan import SinkInterrupted, SinkRefused
from tarry.spark.writing.write_options import WriteOptions
from tarry.testing import Tarry

pyarrow = pytest.importorskip("pyarrow")

ANEW = "remove the directory /state"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            SinkRefused("x: bring them back, or begin the query with a checkpoint of its own"),
            f"the job stopped: x: bring them back, or {ANEW}",
        ),
        (
            SinkRefused(
                "give the servers of the former, or begin a query with a checkpoint of its own"
            ),
            f"the job stopped: give the servers of the former, or {ANEW}",
        ),
        (
            SinkRefused("Change the topic, and start the query again"),
            "the job stopped: Change the topic, and start the same command again",
        ),
        (
            SinkInterrupted("y. Start the query again; it goes on where it stopped"),
            "the job stopped: y. Start the same command again; it goes on where it stopped",
        ),
        (
            SinkInterrupted("the disk is slow"),
            "the job stopped: the disk is slow. The same command goes on from there",
        ),
        (
            SinkRefused("late. Another driver runs this query on the same checkpoint; end one"),
            "the job stopped: late. Another driver does this with the same state; end one",
        ),
    ],
)
def test_a_job_that_is_no_query_is_told_what_it_can_do(error: SinkRefused, sentence: str) -> None:
    assert stop_sentence("the job stopped", error, ANEW) == sentence


# --- A backfill.

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { bootstrap = "%s", topics = ["orders"] }
decode = { format = "text" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
[[aggregate]]
name = "revenue"
window = "1h"
values = { orders = "count(*)" }
topic = "revenue"
"""
IMPATIENT = {
    "request.timeout.ms": "200",
    "delivery.timeout.ms": "300",
    "default.api.timeout.ms": "2000",
}


class FrozenScene:
    """A backfill that was killed when its results were frozen, and not in their topic."""

    def __init__(self, tarry: Tarry, tmp_path: Path) -> None:
        tarry.topic("revenue")
        ArchiveDirectory(tmp_path / "lake").bind("cluster", "hour")
        path = tmp_path / "orders.toml"
        path.write_text(FILE % tarry.bootstrap)
        pipeline = read_pipeline(path, {})
        (one,) = pipeline.aggregates
        options = BackfillOptions(archive=tmp_path / "lake")
        self.state = BackfillState(tmp_path / "state", 1)
        self.frozen = self.state.freeze(AskedBackfill("orders", {}, {}, "clean", "/lake"), [], 0)
        # Any: what is frozen needs no Spark.
        spark: Any = None
        self.backfiller = Backfiller(spark, pipeline, one, options)
        tarry.fail("Produce", NOT_ENOUGH_REPLICAS, None)
        settings = {"bootstrap.servers": tarry.bootstrap, **IMPATIENT}
        writing = WriteOptions("revenue", True, str(self.state.path), None, settings)
        rows = pyarrow.record_batch({"value": [b"x"]})
        output = TaskWriter(writing, ["value"], 0).write([rows])
        with pytest.raises(SinkInterrupted):
            commit(writing, self.frozen.backfill_id, 0, [output])
        tarry.heal()

    def go_on(self) -> None:
        self.backfiller._write(self.state, self.frozen)


def test_a_backfill_whose_topic_was_made_anew_names_what_to_remove(
    tarry: Tarry, tmp_path: Path
) -> None:
    scene = FrozenScene(tarry, tmp_path)
    tarry.admin.delete_topics(["revenue"])
    tarry.admin.create_topics([NewTopic("revenue", 1)])

    with pytest.raises(BackfillRefused, match="was deleted and made anew: remove ") as told:
        scene.go_on()

    assert f"remove the directory {scene.state.path}" in str(told.value)
    for false in ("checkpoint of its own", "goes on"):
        assert false not in str(told.value)


def test_a_backfill_that_was_interrupted_goes_on(tarry: Tarry, tmp_path: Path) -> None:
    scene = FrozenScene(tarry, tmp_path)
    (file,) = scene.state.path.glob("task-*")
    content = file.read_bytes()
    file.unlink()

    with pytest.raises(BackfillRefused, match="bring them back, or remove the directory"):
        scene.go_on()
    file.write_bytes(content)
    scene.go_on()

    assert [record.value for record in tarry.records("revenue")] == [b"x"]
