"""The release before feature levels, as a wheel of its commit in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

import pytest
from tests.support.patience import PATIENCE_S

ROOT: Final = Path(__file__).resolve().parents[2]

# The last commit without feature levels: it stops at the first row of a kind that it does not know.
COMMIT: Final = "175159fd61bca7e695c4d475a1c6d87e64c9ff1b"


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def older_python(directory: Path) -> str:
    """Build that release's wheel and return a Python that runs it; its dependencies are those of
    this environment.
    """
    is_there = subprocess.run(
        ["git", "-C", ROOT, "cat-file", "-e", f"{COMMIT}^{{commit}}"],
        capture_output=True,
        check=False,
    )
    if is_there.returncode != 0:
        pytest.skip(f"there is no git history with commit {COMMIT[:8]}: clone the repository whole")
    tree, wheels, home = (directory / name for name in ("tree", "wheels", "venv"))
    tree.mkdir()
    archive = directory / "tree.tar"
    run("git", "-C", ROOT, "archive", f"--output={archive}", COMMIT)
    run("tar", "-xf", archive, "-C", tree)
    words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, tree)
    run(sys.executable, "-m", "pip", *words, TARRY_COMPILE="0")
    (wheel,) = wheels.glob("*.whl")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return str(python)
