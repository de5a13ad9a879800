"""Command of `tarry spark` in a process of its own, for somebody who has set nothing for Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S
from tests.support.process_lines import start_reader

# The program under the name that Spark falls back to, on a machine without a Python for Spark.
NO_PYTHON = "#!/bin/sh\necho 'python3 was run, in place of the Python that was meant' >&2\nexit 7\n"


def bare_environment(directory: Path) -> dict[str, str]:
    """Return the environment without a variable of Spark's, and with a `python3` that is none.

    `python` and `tarry` are those of the tests.
    """
    programs = directory / "programs"
    if not programs.exists():
        programs.mkdir()
        python = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
        command = f'#!/bin/sh\nexec "{sys.executable}" -m tarry "$@"\n'
        for name, text in (("python", python), ("tarry", command), ("python3", NO_PYTHON)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK_", "SPARK_", "_PYSPARK_"))
    }
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        # Nothing leaves loopback, whatever the machine is called.
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class SparkCommand:
    """`tarry spark …` that runs, and the lines that it has printed so far."""

    def __init__(self, directory: Path, environment: dict[str, str], *words: str) -> None:
        self.printed: list[str] = []
        self.told: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tarry", "spark", *words],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        streams = ((self._process.stdout, self.printed), (self._process.stderr, self.told))
        self._readers = [
            start_reader(stream, lambda line, into=lines: into.append(line.decode().rstrip("\n")))
            for stream, lines in streams
        ]

    def stop(self) -> int:
        """Send SIGTERM to the command alone; return its exit code once it has ended."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Return its exit code once it has ended, and all lines are there."""
        code = self._process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End it with all its processes, if it still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
