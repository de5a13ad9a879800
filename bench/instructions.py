"""Instructions that a broker takes for one request, counted by Valgrind's callgrind.

A host that shares its cores with others gives CPU times that differ by a third from minute to
minute.  Instructions of the process do not: the same requests take the same number within a
hundredth.  What the kernel does is not counted, nor what a cache misses.
"""

from __future__ import annotations

import json
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


def is_missing() -> str:
    """Return what this needs and the machine does not have; "" if it has all."""
    return "" if shutil.which("callgrind_control") else "it needs valgrind: apt install valgrind"


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
    brokers.create_topic(broker, topic, 4)
    if work.name.startswith("fetch"):
        brokers.fill(wireload, broker, topic)
    _load(wireload, broker, topic, work, WARM_SECONDS)
    known = set(directory.glob("counts.*"))
    _control("-z", broker)
    requests = _load(wireload, broker, topic, work, SECONDS)
    _control("-d", broker)
    return _counted(directory, known) / requests / 1000


def _load(
    wireload: Path, broker: peers.Broker, topic: str, work: brokers.Work, seconds: float
) -> float:
    words = [str(wireload), "-b", broker.address, "-t", topic, "-parts", "4"]
    words += ["-d", str(seconds), "-pid", str(broker.pid), *work.arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["req_s"]) * seconds


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
