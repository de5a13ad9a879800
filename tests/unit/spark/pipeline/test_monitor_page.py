"""The page about monitoring: its fields and metrics are those that there are; its example runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.spark.batches import batch
from tests.support.spark.page_examples import HOW_TO, walk_page

from tarry.spark.pipeline.progress import ProgressFile, progress_line

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from tarry.spark.pipeline.metrics import PipelineMetrics

PAGE = HOW_TO / "monitor-a-pipeline.md"


def first_cells(begin: str) -> list[str]:
    """Names in the first cells of the table whose head begins so."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index(begin) :].split("\n\n")[0]
    rows = table.splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_each_field_of_a_line_is_told() -> None:
    assert sorted(first_cells("| field |")) == sorted(json.loads(progress_line(batch("clean"))))


def test_each_metric_is_told() -> None:
    metrics = PipelineMetrics()
    metrics.add(batch("clean"))

    samples = [sample for one in metrics.registry.collect() for sample in one.samples]

    names = {sample.name for sample in samples if not sample.name.endswith("_created")}
    assert sorted(first_cells("| metric |")) == sorted(names)


def test_the_example_sums_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lake/checkpoints/orders/_pipeline/progress.jsonl"
    path.parent.mkdir(parents=True)
    file = ProgressFile(path)
    file.add(batch("clean", records=1001, rejected={"decode": 1, "known": 4, "positive": 10}))
    file.add(batch("archive", records=1000, rejected={}))
    file.add(batch("archive", records=987, rejected={}))
    file.close()
    monkeypatch.chdir(tmp_path)

    (ran,) = walk_page(PAGE, "", tmp_path)

    assert ran.printed == ran.expected
