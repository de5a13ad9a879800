"""Parts of a turn are compiled: each of their methods runs in every turn of the broker."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tarry"


def modules_with_parts() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if bases & {"Part", "WaitingPart"}:
                    found.add(str(path.relative_to(SOURCE)))
    return found


def test_each_part_of_a_turn_is_compiled() -> None:
    """An interpreted part costs a turn as much as a tenth of a produce."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        hot = set(tomllib.load(file)["tool"]["tarry"]["hot"])

    modules = modules_with_parts()

    assert "broker/scheduling/scheduling.py" in modules
    # It is told of stalls and of the stop alone.
    assert modules - hot == {"broker/peers/peers.py"}
