"""Circles of imports that may not be are found, also those that only types need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "check_circles.py"


def findings(directory: Path, imports: dict[str, str]) -> str:
    """What the check says of modules, each of which imports one other."""
    for name, imported in imports.items():
        path = directory / Path(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        package, _, module = imported.rpartition(".")
        path.write_text(
            "from typing import TYPE_CHECKING\n\n"
            f"if TYPE_CHECKING:\n    from {package} import {module}\n"
        )
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout


def circle_of(count: int, package: str) -> dict[str, str]:
    """Modules each of which imports the next, and the last the first."""
    names = [f"{package}.m{number}" for number in range(count)]
    return dict(zip(names, [*names[1:], names[0]], strict=True))


def test_a_circle_of_four_modules_is_found(tmp_path: Path) -> None:
    found = findings(tmp_path, circle_of(4, "tarry.log"))

    assert "a circle of 4 modules; 3 is the limit" in found
    assert "tarry.log.m0, tarry.log.m1, tarry.log.m2, tarry.log.m3" in found


def test_a_circle_of_three_modules_is_one_idea_in_three_files(tmp_path: Path) -> None:
    assert findings(tmp_path, circle_of(3, "tarry.log")) == ""


@pytest.mark.parametrize("package", ["tarry.broker", "tarry.broker.apis"])
def test_the_broker_has_no_circle_at_all(tmp_path: Path, package: str) -> None:
    found = findings(tmp_path, circle_of(2, package))

    assert "a circle in tarry.broker, which has none" in found


def test_a_chain_is_no_circle(tmp_path: Path) -> None:
    chain = circle_of(5, "tarry.broker")
    chain["tarry.broker.m4"] = "tarry.base.errors"

    assert findings(tmp_path, chain) == ""
