"""Assignments to attributes of another package's objects are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "check_neighbours.py"

PART = """
class Part:
    limit = 1

    def __init__(self) -> None:
        self.wire = None

    def act(self) -> None:
        local = 2
"""


def findings(directory: Path, statement: str, part: str = PART) -> str:
    """Return what the check says of a statement in another package than the part's."""
    for name, text in (
        ("broker/parts/part.py", part),
        ("broker/start.py", f"def start(part):\n    {statement}\n"),
    ):
        path = directory / "tarry" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == int("nothing found" not in done.stdout)
    return done.stdout


def test_an_assignment_from_outside_is_found(tmp_path: Path) -> None:
    for statement in ("part.wire = 1", "part.limit += 1", "part.wire, part.limit = 1, 2"):
        assert "broker/start.py:2: part." in findings(tmp_path, statement)


def test_an_attribute_that_its_class_declares_as_open_may_be_assigned(tmp_path: Path) -> None:
    part = PART.replace(
        "        self.wire", "        # open: the start knows it\n        self.wire"
    )

    assert "nothing found" in findings(tmp_path, "part.wire = 1", part)
    assert "part.limit" in findings(tmp_path, "part.limit = 1", part)


def test_objects_of_the_same_package_may_be_assigned(tmp_path: Path) -> None:
    part = PART + "\n\ndef start(part: Part) -> None:\n    part.wire = 1\n"

    assert "nothing found" in findings(tmp_path, "pass", part)


def test_a_local_variable_of_a_method_is_no_attribute_of_its_class(tmp_path: Path) -> None:
    holder = "class Holder:\n    def act(self):\n        wire = 1\n\n\n"
    statement = f"pass\n\n\n{holder}def other(part):\n    part.wire = 1"

    assert "part.wire" in findings(tmp_path, statement)
