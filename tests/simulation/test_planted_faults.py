"""The simulation's grade: each planted fault is found by a seed that finds nothing without it.

The faults replace functions of the product in processes of their own, two at a time.  Nearly all
are found within the seeds of `test_seeds`; the seeds of the few rare ones lie beyond.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.process_lines import start_reader
from tests.support.simulation.search import names

pytestmark = [pytest.mark.interpreted, pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, tuple[int, str]]:
    """Seed and sentence for each of the faults that were chosen."""
    chosen = [item.callspec.params for item in request.session.items if item.path == request.path]
    names = [params["name"] for params in chosen]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.simulation.search", *names],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TARRY_PURE": "1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    lines: queue.Queue[bytes] = queue.Queue()
    reader = start_reader(process.stdout, lines.put)
    found = {}
    try:
        # On a busy machine all of them together take long: what hangs is one that tells nothing.
        for _ in names:
            name, seed, *sentence = lines.get(timeout=PATIENCE_S).decode().strip().split(" ", 2)
            found[name] = int(seed), "".join(sentence)
        process.wait(PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()
    return found


@pytest.mark.parametrize("name", names())
def test_a_planted_fault_is_found(name: str, found: dict[str, tuple[int, str]]) -> None:
    seed, sentence = found[name]

    assert seed >= 1, (
        sentence
        or "its seed is lost: `python -m tests.support.simulation.search --seeds 2000 NAME`"
    )
    assert sentence
