"""The how-tos that need a broker: their commands and their Python run from top to bottom.

A line of a block that is marked `sh`, or not at all, and begins with a command is run, unless it
never ends or needs Spark; what stands behind `$` shows an output and is not.  A `python` block
prints what the block `text` below it says.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S
from tests.support.spark.page_examples import needs_spark

ROOT = Path(__file__).resolve().parents[2]
# How many examples and commands of each page run at the least.
PAGES = {
    "docs/how-to/archive-with-spark.md": 7,
    "docs/how-to/administer.md": 6,
    "docs/how-to/arrow-and-data-frames.md": 5,
    "docs/how-to/asyncio.md": 6,
    "docs/how-to/compacted-topics.md": 5,
    "docs/how-to/consume-in-a-group.md": 7,
    "docs/how-to/consumer-groups.md": 5,
    "docs/how-to/delay-a-record.md": 12,
    "docs/how-to/fork-and-workers.md": 6,
    "docs/how-to/look-at-waits-and-rebalances.md": 15,
    "docs/how-to/moving-from-other-clients.md": 6,
    "docs/how-to/objects-and-committed-records.md": 3,
    "docs/how-to/produce-safely.md": 6,
    "docs/how-to/recurring-records.md": 3,
    "docs/how-to/replay-after-a-bug.md": 7,
    "docs/how-to/try-again-later.md": 6,
    "docs/how-to/what-waits.md": 14,
    "docs/tutorial.md": 15,
}
# Settings that a page's broker needs besides.
SETTINGS = {
    "docs/how-to/look-at-waits-and-rebalances.md": {
        "events.enable": "true",
        "events.interval.ms": "100",
    },
}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(tarry|echo|seq|kcat) ")
ENDLESS = ("--follow", "tarry serve")
# A consumer of kcat reads on and on; in a test it ends at the end of what is there.
KCAT_CONSUMER = "kcat -C "
REPORT = re.compile(r"--html (\S+)")

pytestmark = pytest.mark.process


def run_command(line: str, address: str, directory: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TARRY_BOOTSTRAP_SERVERS": address,
    }
    line = line.replace("127.0.0.1:9092", address)
    if line.startswith(KCAT_CONSUMER):
        line += " -e"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        env=environment,
        # Some of them write files.
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def write_progress(directory: Path) -> None:
    """Write what a pipeline leaves, under the name that the page gives it."""
    from tests.support.spark.batches import batch

    from tarry.spark.pipeline.progress import ProgressFile

    path = directory / "CHECKPOINT" / "_pipeline" / "progress.jsonl"
    path.parent.mkdir(parents=True)
    with contextlib.closing(ProgressFile(path)) as file:
        file.add(batch("clean"))


@pytest.fixture
def broker(tmp_path: Path, page: str) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path)
    broker.start({"group.initial.rebalance.delay.ms": "0", **SETTINGS.get(page, {})})
    yield broker
    broker.close()


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_examples_do_what_the_page_says(
    page: str, broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any(word in page for word in ("archive", "arrow", "delay", "rebalances", "replay")):
        pytest.importorskip(
            "pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'"
        )
    if "kcat " in (ROOT / page).read_text(encoding="utf-8") and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt install kcat)")
    if "archive" in page:
        pytest.importorskip(
            "deltalake", reason="deltalake is not installed: pip install 'tarry[delta]'"
        )
    if "rebalances" in page:
        pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
        write_progress(tmp_path)
    # Some of them write files.
    monkeypatch.chdir(tmp_path)
    blocks = FENCED.findall((ROOT / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0

    for place, (kind, text) in enumerate(blocks):
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(text.replace("127.0.0.1:9092", broker.address), namespace)
            follows, expected = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
            assert printed.getvalue() == (expected if follows == "text" else "")
            ran += 1
        elif kind in ("", "sh"):
            for line in text.splitlines():
                if not COMMAND.match(line) or any(word in line for word in ENDLESS):
                    continue
                if not needs_spark(line):
                    told = run_command(line, broker.address, tmp_path)
                    # A line that sums something up has found something.
                    assert told or not line.startswith("tarry spark"), line
                    for name in REPORT.findall(line):
                        assert "<html" in (tmp_path / name).read_text(encoding="utf-8")
                    ran += 1

    assert ran >= PAGES[page]
