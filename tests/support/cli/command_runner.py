"""Runs a command over a scripted cluster, as `tarry` would run it over brokers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.client.scripted_admin import serve_admins
from tests.support.client.scripted_groups import GroupCluster

from tarry.cli.main import tarry


class CommandRunner:
    """`run` for any end, `ok` for the output of a success, `json` for what it prints so."""

    def __init__(self, cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = cluster
        serve_admins(cluster, monkeypatch)

    def run(self, line: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(tarry, line.split(), prog_name="tarry", input=stdin)

    def ok(self, line: str) -> str:
        result = self.run(line)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, line: str) -> Any:
        return json.loads(self.ok(f"{line} --json"))

    def refused(self, line: str, code: int = 1) -> str:
        """The sentence on stderr of a command that fails."""
        result = self.run(line)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.stderr
