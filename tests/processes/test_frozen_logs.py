"""Logs that a running broker makes are frozen, and freed all the same when their topic goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S

from tarry.runtime.memory import FROZEN_LOGS_MIN

ROOT = Path(__file__).parents[2]


def test_logs_made_by_a_running_broker_are_frozen_and_freed_with_their_topic(
    tmp_path: Path,
) -> None:
    program = [sys.executable, "-m", "tests.support.processes.freezing"]
    paths = os.pathsep.join([str(ROOT), *sys.path])

    done = subprocess.run(
        [*program, str(tmp_path), str(FROZEN_LOGS_MIN)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    at_first, made, deleted = (int(line) for line in done.stdout.split())
    assert made >= at_first + 10 * FROZEN_LOGS_MIN
    assert deleted < at_first + 5 * FROZEN_LOGS_MIN
