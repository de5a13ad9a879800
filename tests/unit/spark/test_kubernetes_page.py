"""Page about Kubernetes: its files agree with each other, and with the pipeline that they run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.spark.page_examples import blocks_of, parse_command, programs_of

from tarry.spark.pipeline.file.reader import BOOTSTRAP_VARIABLE, read_pipeline

pytest.importorskip("yaml", reason="pyyaml is not installed")

PAGE = "spark-on-kubernetes.md"
CLUSTER_PAGE = "spark-on-a-cluster.md"


@pytest.fixture
def image() -> dict[str, str]:
    """What each instruction of the image says; the last of a kind counts."""
    (text,) = blocks_of(PAGE, "dockerfile")
    return dict(line.split(" ", 1) for line in text.splitlines())


@pytest.fixture
def controller() -> dict[str, Any]:
    (text,) = blocks_of(PAGE, "yaml")
    parsed: dict[str, Any] = msgspec.yaml.decode(text)
    return parsed


def test_the_image_has_the_files_of_the_pipeline_and_starts_it(
    image: dict[str, str], tmp_path: Path
) -> None:
    (pipeline,) = [text for text in blocks_of("run-a-pipeline.md", "toml") if "[source]" in text]
    (schema,) = blocks_of("run-a-pipeline.md", "json")
    copied = image["COPY"].split()[:-1]
    for name, text in zip(copied, (pipeline, schema), strict=True):
        (tmp_path / name).write_text(text)

    started = parse_command(json.loads(image["ENTRYPOINT"]))

    read = read_pipeline(tmp_path / started["path"])
    assert read.decode.schema == tmp_path / copied[1]


def test_what_the_pipeline_keeps_lies_on_the_volume(
    image: dict[str, str], controller: dict[str, Any], tmp_path: Path
) -> None:
    (text,) = [text for text in blocks_of("run-a-pipeline.md", "toml") if "[source]" in text]
    (tmp_path / "orders.toml").write_text(text)
    (tmp_path / "order.json").write_text(blocks_of("run-a-pipeline.md", "json")[0])
    pipeline = read_pipeline(tmp_path / "orders.toml")
    spec = controller["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    (claim,) = spec["volumeClaimTemplates"]

    assert pipeline.archive is not None
    for kept in (pipeline.checkpoint, pipeline.archive.path):
        there = Path(image["WORKDIR"]) / kept.relative_to(tmp_path)
        assert there.is_relative_to(mount["mountPath"])
    assert mount["name"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_the_controller_runs_one_pod_that_it_knows(
    image: dict[str, str], controller: dict[str, Any]
) -> None:
    spec = controller["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    started = parse_command(json.loads(image["ENTRYPOINT"]))

    assert (controller["apiVersion"], controller["kind"]) == ("apps/v1", "StatefulSet")
    assert spec["replicas"] == 1
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert [variable["name"] for variable in container["env"]] == [BOOTSTRAP_VARIABLE]
    assert [f"0.0.0.0:{port['containerPort']}" for port in container["ports"]] == [
        started["address"]
    ]


def test_driver_and_executors_have_one_volume_and_one_python() -> None:
    (text,) = blocks_of(PAGE, "sh")
    words = shlex.split(text.replace("\\\n", " "))
    settings = dict(
        words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--conf"
    )
    program = next(place for place, word in enumerate(words) if word.startswith("local://"))
    arguments = words[program + 1 :]
    (taken,) = re.findall(r"^(.*) = sys\.argv\[1:\]$", programs_of(CLUSTER_PAGE)[0], re.MULTILINE)
    prefix = "spark.kubernetes.{}.volumes.persistentVolumeClaim.lake."

    for name, value in (("options.claimName", "lake"), ("mount.path", arguments[-1])):
        for role in ("driver", "executor"):
            assert settings[prefix.format(role) + name] == value
    assert (
        settings["spark.kubernetes.driverEnv.PYSPARK_PYTHON"]
        == settings["spark.executorEnv.PYSPARK_PYTHON"]
    )
    assert Path(words[program]).name == "program.py"
    assert len(arguments) == len(taken.split(", "))
