"""Directory of a run: one pipeline, one cluster, and one process for each stage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarry.spark.pipeline.driver_lock import BINDING, bind, locked, own_directory
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import stages_of

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
archive = { path = "lake" }
"""


def pipeline_of(tmp_path: Path, name: str = "orders") -> Pipeline:
    path = tmp_path / f"{name}.toml"
    path.write_text(FILE.replace("orders", name, 1))
    return read_pipeline(path, {})


def test_a_checkpoint_is_of_one_pipeline_and_one_cluster(tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path)
    bind(pipeline, "a")
    bind(pipeline, "a")

    with pytest.raises(
        StageFailed, match=r"belongs to the cluster a, and .* leads to the cluster b"
    ):
        bind(pipeline, "b")
    with pytest.raises(
        StageFailed, match="belongs to the pipeline 'orders', and this is 'returns'"
    ):
        bind(pipeline_of(tmp_path, "returns"), "a")
    (own_directory(pipeline) / BINDING).write_text("{")
    with pytest.raises(StageFailed, match="cannot be read"):
        bind(pipeline, "a")


def test_a_stage_is_run_by_one_process(tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path)
    bind(pipeline, "a")
    stages = stages_of(pipeline)

    with locked(pipeline, stages):
        told = f"stage archive is run by process {os.getpid()} already"
        with pytest.raises(StageFailed, match=told), locked(pipeline, stages):
            pass
    with locked(pipeline, stages):
        pass
