"""The page about monitoring: its fields and metrics are those that there are; its example runs."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.support.spark.batches import batch
from tests.support.spark.page_examples import (
    HOW_TO,
    blocks_of,
    commands_of,
    parse_command,
    walk_page,
)

from tarry.spark.pipeline.progress import ProgressFile, progress_line

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Sample

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


def samples() -> list[Sample]:
    """Return what Prometheus reads of a pipeline with one micro-batch."""
    metrics = PipelineMetrics()
    metrics.add(batch("clean"))
    found = [sample for one in metrics.registry.collect() for sample in one.samples]
    return [sample for sample in found if not sample.name.endswith("_created")]


def test_each_metric_is_told() -> None:
    names = {sample.name for sample in samples()}

    assert sorted(first_cells("| metric |")) == sorted(names)


def test_what_prometheus_is_told_to_ask_for_is_there() -> None:
    pytest.importorskip("yaml", reason="pyyaml is not installed")
    parsed: list[dict[str, Any]] = [
        msgspec.yaml.decode(text) for text in blocks_of("monitor-a-pipeline.md", "yaml")
    ]
    (scraped,) = [one["scrape_configs"] for one in parsed if "scrape_configs" in one]
    (groups,) = [one["groups"] for one in parsed if "groups" in one]
    rules = [rule for group in groups for rule in group["rules"]]
    asked = " ".join(rule["expr"] for rule in rules)

    names = set(re.findall(r"\btarry_pipeline_\w+", asked))
    matched = re.findall(r"(tarry_pipeline_\w+)\{(\w+)=\"([^\"]*)\"\}", asked)
    grouped = {
        word for words in re.findall(r"\bby \(([^)]*)\)", asked) for word in words.split(", ")
    }
    there = samples()

    assert len(rules) == 3
    assert len(names) == 3
    assert names <= {sample.name for sample in there}
    assert matched
    for name, label, value in matched:
        assert value in {one.labels.get(label) for one in there if one.name == name}
    assert grouped <= set.intersection(*(set(sample.labels) for sample in there))
    jobs = [job["job_name"] for job in scraped]
    assert re.findall(r"up\{job=\"([^\"]*)\"\}", asked) == jobs
    (served,) = [line for line in commands_of("monitor-a-pipeline.md") if "--metrics" in line]
    targets = [place for job in scraped for place in job["static_configs"][0]["targets"]]
    assert targets == [parse_command(shlex.split(served))["address"]]


def test_each_command_has_the_options_that_it_is_given() -> None:
    unit = configparser.ConfigParser()
    (text,) = blocks_of("monitor-a-pipeline.md", "ini")
    unit.read_string(text)
    lines = [line.partition(" | ")[0] for line in commands_of("monitor-a-pipeline.md")]

    given = [parse_command(shlex.split(line)) for line in lines]
    started = parse_command(shlex.split(unit["Service"]["ExecStart"]))

    assert len(given) == 4
    assert started in given
    assert started["path"] == Path("orders.toml")
    assert Path(unit["Service"]["WorkingDirectory"]).is_absolute()


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
