"""Freed memory stays with the process, so that large frames touch no new pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=20
    )

    # Without it: 87,000.
    assert int(done.stdout) < 1_000
