"""The demo of `make spark-demo`, with a small day: all that it says happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.conftest import what_is_missing
from tests.support.patience import PATIENCE_S

DEMO = Path(__file__).resolve().parents[2] / "examples" / "orders" / "demo.py"
# Some four micro-batches of 200 events.
ORDERS = 300
CHECKS = 8
REPORTS = ("health", "lag", "rebalances", "waits")
DEMO_S_MAX = 10 * PATIENCE_S


@pytest.mark.slow
@pytest.mark.timeout(DEMO_S_MAX + 2 * PATIENCE_S)
def test_a_day_of_orders_is_well_though_its_driver_is_killed_in_the_middle(tmp_path: Path) -> None:
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    directory = tmp_path / "demo"

    status, told = run_demo(directory)

    assert status == 0, told[-4000:]
    killed_with = int(found_in(r"^killed with (\d+) records in orders\.clean$", told))
    clean = int(found_in(r"^well .* in, (\d+) clean \+ \d+ rejected$", told))
    assert 0 < killed_with < clean
    assert found_in(r"^(whole ) .* compared with the broker, 0 lost before$", told)
    assert len(re.findall(r"^well ", told, re.MULTILINE)) == CHECKS
    assert found_in(r"^all is well; the demo took (\d+) s$", told)
    pages = sorted((directory / "reports").iterdir())
    assert [page.stem for page in pages] == list(REPORTS)
    assert all("<html" in page.read_text(encoding="utf-8") for page in pages)


def run_demo(directory: Path) -> tuple[int, str]:
    """Run the demo; return its exit status and what it printed."""
    command = [sys.executable, str(DEMO), f"--directory={directory}", f"--orders={ORDERS}"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SPARK_LOCAL_DIRS": str(directory.parent)},
    ) as demo:
        try:
            told, _ = demo.communicate(timeout=DEMO_S_MAX)
        finally:
            # It ends what it has started; one that is over hears nothing.
            demo.terminate()
    return demo.returncode, told


def found_in(pattern: str, told: str) -> str:
    found = re.search(pattern, told, re.MULTILINE)
    assert found is not None, f"{pattern!r} is not in: {told[-4000:]}"
    return found[1]
