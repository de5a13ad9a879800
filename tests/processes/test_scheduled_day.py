"""A short day of scheduled records on three brokers, under hardships, and its audit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S
from tests.support.places import ROOT

PROGRAM = [sys.executable, "-m", "tests.support.processes.scheduled_day"]
# Clients that need little CPU, and as much time as a few hardships take.
SHORT = ("--minutes", "0.2", "--clients", "sync,confluent-kafka,aiokafka", "--actors", "1")


def test_an_auditor_finds_each_record_and_each_answer_in_order(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, *SHORT, "--partitions", "2"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-4_000:]
    assert done.stdout.endswith("violations: none\n")
