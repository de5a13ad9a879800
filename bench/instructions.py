"""Instructions that a broker takes for one request, counted by Valgrind's callgrind.

A host that shares its cores with others gives CPU times that differ by a third from minute to
minute.  Instructions of the process do not: the same requests take the same number within a
hundredth.  What the kernel does is not counted, nor what a cache misses.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

import brokers
import peers

# Requests of one kind, some thousands of them: a broker runs fifty times slower here.
SECONDS: Final = 10
WARM_SECONDS: Final = 4
DUMP_SECONDS_MAX: Final = 60
WORKS: Final = (
    brokers.Work("one at a time, 100 B", ("-mode", "pingpong", "-c", "1", "-n", "1"), "", ""),
    *(work for work in brokers.WORKS if work.unit != "ms"),
)


def check_tools() -> None:
    """End the program if callgrind is missing."""
    if shutil.which("callgrind_control") is None:
        raise SystemExit("instructions are counted by valgrind: install Debian's valgrind")


def command(directory: Path) -> tuple[str, ...]:
    """Return the words before the broker's own, which make it write its counts to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    return (
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={directory}/counts.%p",
        f"--log-file={directory}/log",
    )


def count(wireload: Path, broker: peers.Broker, directory: Path, work: brokers.Work) -> float:
    """Return the instructions of one request, in thousands."""
    topic = re.sub(r"\W", "-", work.name)
    brokers.prepare(wireload, broker, work, topic, WARM_SECONDS)
    known = set(directory.glob("counts.*"))
    _control("-z", broker)
    figures = brokers.run_load(wireload, broker, work, topic, SECONDS)
    _control("-d", broker)
    return _counted(directory, known) / (figures["req_s"] * SECONDS) / 1000


def _control(what: str, broker: peers.Broker) -> None:
    subprocess.run(["callgrind_control", what, str(broker.pid)], capture_output=True, check=True)


def _counted(directory: Path, known: set[Path]) -> int:
    """Return the sum of the dump that has come since."""
    deadline_s = time.monotonic() + DUMP_SECONDS_MAX
    while time.monotonic() < deadline_s:
        for path in set(directory.glob("counts.*")) - known:
            found = re.findall(r"^(?:summary|totals): (\d+)", path.read_text(), re.MULTILINE)
            if found:
                return int(found[-1])
        time.sleep(0.1)
    raise SystemExit("callgrind has dumped no counts")
