"""Freed memory stays with the process, and a full collection is rare."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.patience import PATIENCE_S

PROGRAM = """
import resource
from tarry.runtime.memory import keep_freed_memory
keep_freed_memory()
def frames():
    for _ in range(50):
        held = [b"".join([b"x" * 130_000 for _ in range(8)]) for _ in range(6)]
        del held
frames()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
frames()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_large_frames_fault_no_pages_once_the_process_is_warm() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )

    # Without it: 87,000.
    assert int(done.stdout) < 1_000


COLLECTING = """
import gc
from tarry.runtime.memory import calm_collector
with calm_collector():
    assert not gc.isenabled()
    kept = [[] for _ in range(100_000)]
assert gc.isenabled()
full = []
gc.callbacks.append(lambda phase, info: full.append(1) if info["generation"] == 2 else None)
waiting = [[[]] for _ in range(10_000)]
for _ in range(50):
    waiting = [[[]] for _ in range(10_000)]
print(len(full), gc.get_freeze_count() > 100_000)
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="collects in steps by itself")
def test_ten_thousand_waiting_requests_cause_no_full_collection() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTING],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )

    assert done.stdout == "0 True\n"
