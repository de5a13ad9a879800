"""Man pages and the reference page: made from the commands, and readable."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_every_man_page_is_rendered_without_a_warning() -> None:
    pages = sorted((ROOT / "man").glob("*.1"))

    done = subprocess.run(
        ["man", "--warnings", "-P", "cat", "-l", *map(str, pages)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
    )

    assert done.stderr == ""
    for text in ("tarry produce [OPTIONS] TOPIC [FILE]...", "echo hello | tarry produce greetings"):
        assert text in done.stdout
    # Backslashes and leading dots are what roff would swallow.
    assert "-f '%T{iso} %k = %s\\n'" in done.stdout


def test_the_reference_page_names_every_command_option_and_exit_code() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()

    for text in ("## tarry produce", "### tarry perf latency", "`--keep-place`", "| 130 |"):
        assert text in page
    assert "| `-h, --help` |" in page
