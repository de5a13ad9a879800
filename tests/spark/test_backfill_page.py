"""The page about late data: its files, commands and programs, from top to bottom."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.spark.page_examples import FENCED, HOW_TO

from tarry.cli.spark.commands import spark as spark_commands
from tarry.testing import Tarry

FILES = {"json": "visit.json", "toml": "visits.toml"}


@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("commands_share_spark")
def test_what_the_page_shows_happens(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.chdir(tmp_path)
    blocks = FENCED.findall((HOW_TO / "late-data-and-backfill.md").read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for place, (kind, text) in enumerate(blocks):
        printed = io.StringIO()
        if kind in FILES:
            (tmp_path / FILES[kind]).write_text(text)
        elif kind == "python":
            with contextlib.redirect_stdout(printed):
                exec(text.replace("127.0.0.1:9092", broker.bootstrap), namespace)
        elif kind == "sh":
            result = CliRunner().invoke(spark_commands, text.split()[2:])
            assert result.exit_code == 0, result.output
            printed.write(result.stdout)
        ran += 1
        if place + 1 < len(blocks) and blocks[place + 1][0] == "text":
            assert printed.getvalue() == blocks[place + 1][1]
    assert ran == len(blocks) == 13
