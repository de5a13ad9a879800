"""Time of a broker from its start to its ready line, and the memory it then holds.

`make bench` runs it: an empty directory each time, the best of five, wall time from the start of
the command, memory as the kernel's resident set half a second after the ready line.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from pathlib import Path

TARRY = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "tarry"
RUNS = 5
IDLE_SECONDS = 0.5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident_megabytes(pid: int) -> float:
    """Return the resident memory in MiB, from `ps`, which Linux and macOS have."""
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def measure() -> tuple[float, float]:
    """Seconds to the ready line, and megabytes."""
    with tempfile.TemporaryDirectory() as directory:
        listener = f"listeners=PLAINTEXT://127.0.0.1:{free_port()}"
        command = [str(TARRY), "serve", "--set", f"log.dirs={directory}/data", "--set", listener]
        begun = time.perf_counter()
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert broker.stdout is not None
        while b"ready" not in broker.stdout.readline():
            assert broker.poll() is None, "the broker ended"
        seconds = time.perf_counter() - begun
        time.sleep(IDLE_SECONDS)
        megabytes = resident_megabytes(broker.pid)
        broker.terminate()
        broker.communicate()
    return seconds, megabytes


def main() -> None:
    runs = [measure() for _ in range(RUNS)]
    seconds = min(run[0] for run in runs)
    megabytes = min(run[1] for run in runs)
    print(f"ready from an empty directory in {seconds:.2f} s, idle memory {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
