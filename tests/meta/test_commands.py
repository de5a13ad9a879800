"""The commands that README, CONTRIBUTING and the Makefile's help name are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"]


def named(pattern: str) -> list[str]:
    found: dict[str, None] = {}
    for text in TEXTS:
        for block in code_of(ROOT / text):
            found.update(dict.fromkeys(re.findall(pattern, block, re.MULTILINE)))
    return sorted(found)


def code_of(path: Path) -> list[str]:
    text = path.read_text()
    return [*re.findall(r"```.*?\n(.*?)```", text, re.DOTALL), *re.findall(r"`([^`\n]+)`", text)]


def make_targets() -> list[str]:
    text = (ROOT / "Makefile").read_text()
    return re.findall(r"^([a-z-]+):", text, re.MULTILINE)


def test_every_make_target_that_is_named_exists() -> None:
    targets = make_targets()

    assert [name for name in named(r"\bmake ([a-z-]+)") if name not in targets] == []


@pytest.mark.parametrize(
    "target",
    [
        "setup",
        "serve",
        "test",
        "quick",
        "check",
        "bench",
        "bench-timer",
        "bench-limits",
        "dist",
        "clean",
    ],
)
def test_the_targets_that_the_project_promises_exist(target: str) -> None:
    assert target in make_targets()


@pytest.mark.parametrize("command", named(r"(?:^|[ \t]|bin/)tarry ([a-z]+)"))
def test_every_tarry_command_that_is_named_exists(command: str) -> None:
    tarry = Path(sys.executable).parent / "tarry"

    done = subprocess.run(
        [tarry, command, "--help"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )

    assert done.returncode == 0, done.stderr


def test_every_file_that_is_named_exists() -> None:
    paths = named(r"\b((?:src|tools|tests|bench|docs)/[\w./-]*\w)")

    assert [path for path in paths if not (ROOT / path).exists()] == []
