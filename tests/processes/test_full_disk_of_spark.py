"""A full disk below sink and archive: rounds that a driver without Spark goes through."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

pytest.importorskip("pyspark", reason="pyspark is not installed")

# A disk of its own that is gone with the program; whoever is not root is root of a name space.
MOUNTED = 'mount -t tmpfs -o size=400k tmpfs "$0" && exec "$@"'


def on_small_disk(disk: Path, *command: str) -> subprocess.CompletedProcess[str]:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no disk can be mounted here: there is no unshare")
    flags = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    return subprocess.run(
        [unshare, *flags, "sh", "-c", MOUNTED, str(disk), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_sink_and_archive_go_on_when_there_is_room_again(tmp_path: Path) -> None:
    tried = on_small_disk(tmp_path, "true")
    if tried.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {tried.stderr.strip()}")
    program = [sys.executable, "-m", "tests.support.spark.full_disk", "--rounds", "8"]

    done = on_small_disk(tmp_path, *program, "--seed", "1", str(tmp_path))

    # Sink and archive both met a full disk, and both had room enough.
    told = [line.partition(" x ")[2] for line in done.stdout.splitlines()[:-1]]
    assert told == ["archive", "archive: room enough", "sink", "sink: room enough"], done.stderr
    assert done.stdout.splitlines()[-1] == "all is well"
    assert done.returncode == 0
