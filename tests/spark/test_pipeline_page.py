"""The page about pipelines: its files, commands and examples, from top to bottom."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.support.spark.page_examples import FENCED, HOW_TO

from tarry.cli.spark.commands import spark as spark_commands
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {"json": "order.json", "toml": "orders.toml"}


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker of this page's own: other pages have topics of the same names."""
    with Tarry() as tarry:
        yield tarry


def test_what_the_page_shows_happens(
    spark: SparkSession, broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def shared(*given: object, **named: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("tarry.cli.spark.run.spark_session", shared)
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.chdir(tmp_path)
    blocks = FENCED.findall((HOW_TO / "run-a-pipeline.md").read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran: list[str] = []
    for place, (kind, text) in enumerate(blocks):
        printed = io.StringIO()
        if kind in FILES:
            (tmp_path / FILES[kind]).write_text(text)
        elif kind == "python":
            with contextlib.redirect_stdout(printed):
                exec(text.replace("127.0.0.1:9092", broker.bootstrap), namespace)
        elif kind == "sh" and text.startswith("tarry spark "):
            result = CliRunner().invoke(spark_commands, text.split()[2:])
            assert result.exit_code == 0, result.output
            printed.write(result.stdout)
        elif text.startswith("[deduplicate]"):
            (tmp_path / "more.toml").write_text((tmp_path / "orders.toml").read_text() + text)
            assert read_pipeline(tmp_path / "more.toml").aggregates
        else:
            continue
        ran.append(text.split("\n")[0])
        if place + 1 < len(blocks) and blocks[place + 1][0] == "text":
            assert printed.getvalue() == blocks[place + 1][1]
        if "--check" in text:
            made = re.findall(r"^makes topic (\S+) with 4 partitions$", printed.getvalue(), re.M)
            assert made == ["orders.clean", "orders.rejected"]
    assert len(ran) == 8
