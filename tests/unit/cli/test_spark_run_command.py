"""`tarry spark run`: what is refused before Spark is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tarry.cli.spark.commands import spark
from tarry.spark.pipeline.driver_lock import bind, locked
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.stages import stages_of
from tarry.testing import Tarry

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
decode = { format = "text" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.toml"
    path.write_text(FILE)
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(spark, list(words))


def test_mistakes_are_listed_and_counted(file: Path) -> None:
    file.write_text(FILE.replace("format", "formt").replace("[", "").replace("]", ""))

    for words in (["run", str(file)], ["run", str(file), "--check"], ["verify", str(file)]):
        result = run(*words)

        assert result.exit_code == 2
        assert result.stdout == ""
        assert [line.rsplit(":", 1)[0] for line in result.stderr.splitlines()[:3]] == [
            "orders.toml:3: source.topics",
            "orders.toml:4: decode.format",
            "orders.toml:4: decode.formt",
        ]
        assert result.stderr.splitlines()[3] == f"tarry: 3 mistakes in {file}"


def test_a_stage_that_is_not_there_is_refused(file: Path) -> None:
    result = run("run", str(file), "--only", "archive")

    assert result.exit_code == 2
    assert result.stderr == "tarry: there is no stage 'archive'; there are clean\n"


def test_a_broker_that_is_away_is_asked_again_and_then_told(file: Path) -> None:
    """Before a Spark is started: with none it takes seconds only."""
    settings = {"default.api.timeout.ms": 400, "reconnect.backoff.ms": 20}
    text = "".join(f'"{key}" = "{value}"\n' for key, value in settings.items())
    source = FILE.replace('["orders"]', '["orders"], bootstrap = "127.0.0.1:1"', 1)
    file.write_text(f"{source}[settings]\n{text}")

    result = run("run", str(file))

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("tarry: cannot connect to 127.0.0.1:1: ")
    assert "is a broker running there?" in result.stderr
    assert not (file.parent / "checkpoint").exists()


def test_a_second_run_is_refused_before_a_spark_is_started(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setattr("tarry.cli.spark.run.spark_session", None)
    with Tarry() as broker:
        monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
        pipeline = read_pipeline(file)
        bind(pipeline, "a")
        with locked(pipeline, stages_of(pipeline)):
            result = run("run", str(file), "--once")

    assert result.exit_code == 1
    assert result.stderr == (
        f"tarry: stage clean is run by process {os.getpid()} already, on the checkpoint "
        f"{pipeline.checkpoint}: end that one, or leave it to it\n"
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = run("run", str(tmp_path / "none.toml"))

    assert result.exit_code == 1
    assert "none.toml" in result.stderr


def test_a_pipeline_without_an_archive_has_nothing_to_recount(file: Path) -> None:
    result = run("verify", str(file))

    assert result.exit_code == 2
    assert result.stderr.endswith("has no [archive], so there is nothing to recount\n")
