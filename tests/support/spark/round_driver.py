"""Drivers of rounds as processes: their runs, and what of them is killed or sleeps."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.places import ROOT
from tests.support.spark.round_program import DONE

# A run ends in so long, also on a machine that is busy.
RUN_SECONDS_MAX: Final = 600

NO_END: Final = f"no end in {RUN_SECONDS_MAX} s"

# The supervisor's words where a fault has ended a stage.
STARTS_AGAIN: Final = b"It starts again in"

# Kinds of processes by a part of their command lines.
JVM: Final = "org.apache.spark.deploy.SparkSubmit"
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
WORKER: Final = " pyspark.daemon pyspark.worker"
# The driver's own: they plan what the source reads, and carry out the steps of the sink.
PLANNER: Final = " pyspark.sql."

Step = tuple[str, bool, int]


class RoundDriver:
    """Driver in a process group of its own; it lives on from run to run."""

    def __init__(self, directory: Path, bootstrap: str, master: str) -> None:
        program = [sys.executable, "-m", "tests.support.spark.round_program"]
        words = [str(directory / "orders.toml"), str(directory), master]
        environment = {
            **os.environ,
            "TARRY_BOOTSTRAP_SERVERS": bootstrap,
            "SPARK_LOCAL_DIRS": str(directory / "spark"),
        }
        # Dozens of Python processes a round would each compile all that they import.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._log = directory / "runs.log"
        # How long it was when the run began.
        self._log_size = 0
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*program, *words],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, step: Step | None = None, what: str = "kill", *, is_alone: bool = True) -> None:
        """Begin a run.  `what` happens at the step: "kill", "stop", or "tell", which is the file
        that says that it was met and nothing more."""
        assert self.process.stdin is not None
        self._log_size = self._log.stat().st_size
        line = json.dumps({"step": step, "what": what, "is_alone": is_alone})
        with suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def is_over(self, seconds: float) -> bool:
        """Wait so long for the end of a run, or of the process."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def has_started_again(self) -> bool:
        """Return whether a stage of this run was ended by a fault."""
        return STARTS_AGAIN in self._log.read_bytes()[self._log_size :]

    def wait(self) -> str:
        """Wait for the end of a run; return `done`, or what the process ended with."""
        assert self.process.stdout is not None
        if not self.is_over(RUN_SECONDS_MAX):
            self.kill()
            return NO_END
        told = self.process.stdout.readline().decode().strip()
        if told == DONE:
            return DONE
        return f"status {self.process.wait(RUN_SECONDS_MAX)}"

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the driver: Spark's daemons of Python workers have
        groups of their own."""
        below = processes_of([self.pid], "")
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def die(self) -> None:
        """Kill the driver and its Java; daemons of Python workers come to their end by themselves,
        which may take a moment."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill all there is, one that sleeps too."""
        self.send(signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def processes_of(ancestors: list[int], kind: str) -> list[int]:
    """Return the processes below these whose command line has such a part."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for path in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            pid = int(path.name)
            # Behind the name, which may have spaces.
            parents[pid] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            commands[pid] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    found: list[int] = []
    for pid, command in commands.items():
        at = parents[pid]
        while at > 1 and at not in ancestors:
            at = parents.get(at, 0)
        if at in ancestors and kind in command:
            found.append(pid)
    return sorted(found)


def kill_some(pids: list[int]) -> int:
    """Kill processes, and tell how many there were."""
    count = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count


def wait_for(seconds: float, flag: Path, driver: RoundDriver) -> None:
    """Wait until a step was met or a run is over, so long at most."""
    end_s = time.monotonic() + seconds
    while not flag.exists() and not driver.is_over(0.05) and time.monotonic() < end_s:
        pass
