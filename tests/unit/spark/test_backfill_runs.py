"""Runs of a backfill on a broker, without Spark: what each of them stands for, and writes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.base.ids import TopicPartition
from tarry.client import Producer
from tarry.spark import file_locks
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.backfill.backfill import BACKFILLS, Backfiller, BackfillOptions
from tarry.spark.backfill.plan import BackfillRefused, FrozenBackfill
from tarry.spark.backfill.state import BackfillState, ResultCounts, state_path
from tarry.spark.pipeline.driver_lock import own_directory
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import stages_of
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.directory import SinkDirectory
from tarry.spark.writing.plan import TaskOutput
from tarry.spark.writing.write_options import WriteOptions
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow as pa

FILE = """\
name = "{name}"
checkpoint = "checkpoint"
source = {{ topics = ["{name}"] }}
decode = {{ format = "text" }}
clean = {{ topic = "{name}.clean", rejected = "{name}.rejected" }}
archive = {{ path = "lake", topics = ["{name}.clean"] }}
[[aggregate]]
name = "sums"
window = "1h"
values = {{ orders = "count(*)" }}
topic = "{name}.sums"
"""

OLD_MS = 1_760_000_000_000
NEW_MS = OLD_MS + 3_600_000

ONE_NEW = ResultCounts(windows=1, new=1)


def prepare(broker: Tarry, path: Path, name: str) -> Pipeline:
    """Make a pipeline whose archive has one record, and whose stage has closed old windows."""
    for topic in (name, f"{name}.clean", f"{name}.rejected"):
        broker.topic(topic, partitions=1, retention_ms=-1)
    (path / "pipeline.toml").write_text(FILE.format(name=name))
    made = read_pipeline(path / "pipeline.toml", {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})
    send(broker, made)
    choice = TopicChoice(names=(f"{name}.clean",))
    list(archive(None, choice, path / "lake", ArchiveOptions(made.reading())))
    close_windows(made, 0, OLD_MS)
    return made


def send(broker: Tarry, pipeline: Pipeline) -> None:
    assert pipeline.clean is not None
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(pipeline.clean.topic, b"x")


def close_windows(pipeline: Pipeline, number: int, watermark_ms: int) -> None:
    """Note a micro-batch of the stage that is done, as Spark does."""
    (stage,) = (one for one in stages_of(pipeline) if one.name == "sums")
    for name in ("offsets", "commits"):
        (stage.path / name).mkdir(parents=True, exist_ok=True)
    metadata = json.dumps({"batchWatermarkMs": watermark_ms, "conf": {}})
    (stage.path / "offsets" / str(number)).write_text(f"v1\n{metadata}\n{{}}\n")
    (stage.path / "commits" / str(number)).write_text("v1\n{}")


def results(broker: Tarry, pipeline: Pipeline) -> list[bytes | None]:
    return [record.value for record in broker.records(pipeline.aggregates[0].topic)]


class SparklessBackfiller(Backfiller):
    """A backfill with one result: up to which offset it would have read."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(cast("Any", None), pipeline, pipeline.aggregates[0], BackfillOptions())
        self.frozen: list[FrozenBackfill] = []
        # Events while the run reads manifests, and while it computes.
        self.while_freezing: Callable[[], None] = lambda: None
        self.while_computing: Callable[[], None] = lambda: None

    def _lost(self) -> Mapping[TopicPartition, int]:
        self.while_freezing()
        return super()._lost()

    def _computed(
        self, state: BackfillState, frozen: FrozenBackfill, options: WriteOptions
    ) -> list[TaskOutput]:
        self.frozen.append(frozen)
        self.while_computing()
        state.note(ONE_NEW)
        row = pa.RecordBatch.from_pydict({"key": [b"k"], "value": [b"%d" % frozen.spans[0].end]})
        return [TaskWriter(options, ["key", "value"], 0).write([row])]

    @property
    def newest(self) -> FrozenBackfill:
        return self.frozen[-1]

    def state(self, number: int) -> BackfillState:
        directory = own_directory(self._pipeline) / BACKFILLS
        return BackfillState(state_path(directory, self._asked()), number)


def test_windows_that_are_closed_while_a_run_is_frozen_are_left_to_the_stream(
    shared: Tarry, tmp_path: Path
) -> None:
    made = prepare(shared, tmp_path, "closing")
    backfiller = SparklessBackfiller(made)

    def go_on() -> None:
        send(shared, made)
        close_windows(made, 1, NEW_MS)

    backfiller.while_freezing = go_on
    summary = backfiller.run()

    assert [span.end for span in backfiller.newest.spans] == [1]
    assert (backfiller.newest.closed_ms, summary.closed_ms) == (OLD_MS, OLD_MS)


class StoppedComputing(BaseException):
    """The end of a process while it computes, as a test has it."""


def stop() -> None:
    raise StoppedComputing


def test_a_run_that_was_killed_before_its_plan_begins_anew(shared: Tarry, tmp_path: Path) -> None:
    made = prepare(shared, tmp_path, "killed")
    killed = SparklessBackfiller(made)
    killed.while_computing = stop
    with pytest.raises(StoppedComputing):
        killed.run()
    # Another backfill may have mended windows with this event meanwhile.
    send(shared, made)
    close_windows(made, 1, NEW_MS)
    again = SparklessBackfiller(made)

    summary = again.run()

    assert [span.end for span in killed.newest.spans] == [1]
    assert [span.end for span in again.newest.spans] == [2]
    assert (summary.closed_ms, summary.went_on) == (NEW_MS, False)
    assert results(shared, made) == [b"2"]
    # Nothing is left that a later start would go on with.
    assert [again.state(number).finished() for number in (1, 2)] == [ResultCounts(), ONE_NEW]


def test_a_run_is_given_up_though_a_start_was_killed_over_it(
    shared: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare(shared, tmp_path, "givenup")
    for owner, step in ((SinkDirectory, "create_plan"), (BackfillState, "finish")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, lambda *arguments: stop())
            with pytest.raises(StoppedComputing):
                SparklessBackfiller(made).run()
    send(shared, made)

    SparklessBackfiller(made).run()

    assert results(shared, made) == [b"2"]


def test_a_run_that_has_a_plan_goes_on_with_what_it_stands_for(
    shared: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare(shared, tmp_path, "planned")
    killed = SparklessBackfiller(made)
    with monkeypatch.context() as patched:
        patched.setattr(SinkDirectory, "mark_done", lambda *arguments: stop())
        with pytest.raises(StoppedComputing):
            killed.run()
    send(shared, made)
    again = SparklessBackfiller(made)

    summary = again.run()

    assert (summary.went_on, summary.windows) == (True, 1)
    assert again.frozen == []
    assert results(shared, made) == [b"1"]
    assert again.state(1).finished() == ONE_NEW


def test_a_start_leaves_a_run_to_the_process_that_is_at_it(shared: Tarry, tmp_path: Path) -> None:
    """As where a backfill takes longer than the timer that starts it."""
    made = prepare(shared, tmp_path, "busy")
    slow, other = SparklessBackfiller(made), SparklessBackfiller(made)

    def start() -> None:
        with pytest.raises(BackfillRefused, match=rf"^process {os.getpid()} is at the same"):
            other.run()

    slow.while_computing = start
    slow.run()

    assert (slow.state(1).finished(), other.frozen) == (ONE_NEW, [])
    assert results(shared, made) == [b"1"]


def no_locks(*arguments: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_run_that_another_start_has_ended_writes_nothing_and_says_so(
    shared: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_locks.fcntl, "flock", no_locks)
    made = prepare(shared, tmp_path, "twice")
    slow, fast = SparklessBackfiller(made), SparklessBackfiller(made)

    def overtake() -> None:
        send(shared, made)
        fast.run()

    slow.while_computing = overtake
    with pytest.raises(BackfillRefused, match="was started again meanwhile"):
        slow.run()

    assert results(shared, made) == [b"2"]
    assert fast.state(2).finished() == ONE_NEW
