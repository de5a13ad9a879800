"""Progress: what Spark tells of a micro-batch, as lines, sums and metrics."""

from __future__ import annotations

import errno
import json
import os
from io import FileIO
from urllib.request import urlopen

import pytest
from tests.support.spark.batches import TOLD, batch

from tarry.spark.pipeline.progress import (
    REASONS_MAX,
    BatchProgress,
    Progress,
    ProgressFile,
    UndecodedTeller,
    batch_of,
    progress_line,
)
from tarry.spark.reading.loss import LostOffsets


def test_a_micro_batch_is_told_in_one_line():
    line = json.loads(progress_line(batch_of(TOLD, "orders", "clean")))

    assert line == {
        "at": "2026-11-22T08:00:00.000Z",
        "pipeline": "orders",
        "stage": "clean",
        "batch": 7,
        "records": 500,
        "bytes": 4_000_000,
        "seconds": 2.0,
        "records_per_second": 250.0,
        "mb_per_second": 2.0,
        "lag": 1000,
        "seconds_left": 4.0,
        "rejected": {"a.b": 12},
        "late": 3,
        "lost": [],
        "undecoded": [],
    }


def test_records_that_do_not_fit_are_told_once_a_reason():
    told: list[str] = []
    teller = UndecodedTeller(told.append, "orders.rejected")
    number, cut = "field amount: expected integer, got string", "the value is no JSON: truncated"
    samples = [
        {"undecoded:first": f"orders [0] offset 5: {number}", "undecoded:last": None},
        {
            "undecoded:first": f"orders [0] offset 7: {number}",
            "undecoded:last": f"orders [1] offset 9: {cut}",
        },
        {"undecoded:first": f"orders [1] offset 11: {cut}"},
    ]

    for observed in samples:
        teller.add(batch_of({**TOLD, "observedMetrics": {"tarry": observed}}, "orders", "clean"))

    end = "Such records go to orders.rejected; a reason is told once a run"
    assert told == [
        f"stage clean: orders [0] offset 5 could not be decoded: {number}. {end}",
        f"stage clean: orders [1] offset 9 could not be decoded: {cut}. {end}",
    ]


def test_reasons_that_are_always_new_end_after_some():
    told: list[str] = []
    teller = UndecodedTeller(told.append, "orders.rejected")

    for number in range(100):
        observed = {"undecoded:first": f"orders [0] offset 1: reason {number}"}
        teller.add(batch_of({**TOLD, "observedMetrics": {"tarry": observed}}, "orders", "clean"))

    assert len(told) == REASONS_MAX


def test_what_spark_does_not_tell_is_null():
    told = {**TOLD, "sources": [{"numInputRows": 0, "endOffset": None}], "observedMetrics": {}}

    one = batch_of(told, "orders", "clean")

    assert (one.records, one.lag, one.seconds_left, one.rejected) == (0, None, None, {})


def test_sums_are_kept_by_stage():
    heard: list[BatchProgress] = []
    progress = Progress((heard.append,))

    progress.add(batch("clean"))
    progress.add(batch("clean", rejected={"a.b": 1, "decode": 5}, lag=0))
    progress.add(batch("archive", rejected={}, late=0))
    progress.restarted("archive")

    sums = progress.sums()
    assert (sums["clean"].batches, sums["clean"].records, sums["clean"].late) == (2, 1000, 6)
    assert sums["clean"].rejected == {"a.b": 13, "decode": 5}
    assert sums["clean"].lag == 0
    assert (sums["archive"].restarts, sums["archive"].rejected) == (1, {})
    assert len(heard) == 3


def test_a_listener_that_fails_ends_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[int] = []
    asked: list[int] = []

    def fail(one: BatchProgress) -> None:
        asked.append(one.batch)
        raise BrokenPipeError("Broken pipe")

    progress = Progress((fail, lambda one: heard.append(one.batch)))
    for number in range(3):
        progress.add(batch_of({**TOLD, "batchId": number}, "orders", "clean"))

    assert asked == heard == [0, 1, 2]
    assert progress.batches("clean") == 3
    assert caplog.messages == ["progress could not be told: Broken pipe"]


def test_what_was_left_out_is_told_by_the_next_micro_batch_and_in_the_sums():
    gone = LostOffsets("orders", 1, 3, 9, "the log starts at 9")
    later = LostOffsets("orders", 0, 5, None, "the topic was deleted")
    progress = Progress()

    progress.add(batch_of(TOLD, "orders", "clean", [gone]))
    progress.add(batch("clean"))
    progress.left_out("clean", [later])
    progress.left_out("archive", [])

    line = json.loads(progress_line(batch("clean", lost=[gone])))
    assert line["lost"] == [
        {
            "topic": "orders",
            "partition": 1,
            "first": 3,
            "end": 9,
            "reason": "the log starts at 9",
        }
    ]
    assert progress.sums()["clean"].lost == [gone, later]
    assert list(progress.sums()) == ["clean"]
    assert (gone.count, later.count) == (6, 0)


def test_a_file_that_is_large_makes_room(tmp_path):
    path = tmp_path / "progress.jsonl"
    file = ProgressFile(path, bytes_max=600)

    for number in range(6):
        file.add(batch("clean", batch=number))
    file.close()

    older = (tmp_path / "progress.jsonl.1").read_text().splitlines()
    numbers = [json.loads(line)["batch"] for line in [*older, *path.read_text().splitlines()]]
    assert numbers == list(range(6))[-len(numbers) :]
    assert len(numbers) > 2


def test_runs_of_single_stages_share_a_file_and_lose_no_line_of_each_other(tmp_path):
    path = tmp_path / "progress.jsonl"
    size = len(progress_line(batch("clean"))) + 1
    files = [ProgressFile(path, bytes_max=size * 4) for _ in range(2)]

    # The fifth line begins a new file, while the other run has the older one open.
    for number, run in enumerate([0, 1, 0, 0, 0, 1, 1]):
        files[run].add(batch("clean", batch=number))
    for file in files:
        file.close()

    older = (tmp_path / "progress.jsonl.1").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in older] == [0, 1, 2, 3]
    assert [json.loads(line)["batch"] for line in path.read_text().splitlines()] == [4, 5, 6]


class NearlyFull(FileIO):
    """File on a disk that has room for so many bytes."""

    room = 0

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = super().write(bytes(data)[: self.room])
        self.room -= taken
        return taken


def test_lines_that_a_full_disk_does_not_take_are_left_out_whole(tmp_path, caplog):
    path = tmp_path / "progress.jsonl"
    file = ProgressFile(path)
    file.add(batch("clean", batch=1))
    file.close()
    file._file = NearlyFull(path, "ab")
    file._file.room = path.stat().st_size * 3 // 2

    for number in (2, 3, 4):
        file.add(batch("clean", batch=number))
    file._file.room = 10_000
    file.add(batch("clean", batch=5))
    file.close()

    assert [json.loads(line)["batch"] for line in path.read_text().splitlines()] == [1, 2, 5]
    assert [one.getMessage() for one in caplog.records] == [
        f"{path} does not take the progress: No space left on device. Make room"
    ]


def test_prometheus_reads_the_metrics():
    pytest.importorskip("prometheus_client")
    from tarry.spark.pipeline.metrics import PipelineMetrics, served

    metrics = PipelineMetrics()
    metrics.add(batch("clean"))
    metrics.add(batch("clean", rejected={}, lag=3))

    with served(metrics, "127.0.0.1", 0) as port:
        text = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300).read().decode()

    stage = 'pipeline="orders",stage="clean"'
    assert f"tarry_pipeline_records_total{{{stage}}} 1000.0" in text
    assert 'tarry_pipeline_rejected_total{pipeline="orders",rule="a.b",stage="clean"} 12.0' in text
    assert f"tarry_pipeline_lag{{{stage}}} 3.0" in text
