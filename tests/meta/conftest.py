"""A copy of the project to plant offences in, and the commands of `make check` to catch them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


class Project:
    """A copy of what `make check` reads; its commands are run as they stand in tools/check.sh."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("src", "tools"):
            ignored = shutil.ignore_patterns("*.so", "_compiled.*", "__pycache__")
            shutil.copytree(ROOT / name, directory / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", directory)
        self._outputs: dict[str, str] = {}

    def plant(self, path: str, text: str) -> None:
        """Write a module of the package; its folder is made where it is not there yet."""
        place = self.directory / "src" / "tarry" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f'"""Planted."""\n\nfrom __future__ import annotations\n\n{text}\n')

    def check(self, name: str) -> str:
        """The output of one check; a check that finds nothing gives an empty text."""
        if name not in self._outputs:
            done = self.run(command_of(name))
            self._outputs[name] = done.stdout + done.stderr if done.returncode else ""
        return self._outputs[name]

    def run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        source = str(self.directory / "src")
        return subprocess.run(
            command,
            cwd=self.directory,
            env=os.environ | {"PYTHONPATH": source, "TARRY_PURE": "0"} | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )


def command_of(name: str) -> list[str]:
    script = (ROOT / "tools" / "check.sh").read_text()
    found = re.search(rf"^check {name} (.+)$", script, re.MULTILINE)
    assert found, f"tools/check.sh has no check {name}"
    program, *arguments = shlex.split(found.group(1))
    return [str(Path(sys.executable).parent / Path(program).name), *arguments]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One copy for a module of tests, where many offences are planted and each check runs once."""
    return Project(tmp_path_factory.mktemp("project"))
