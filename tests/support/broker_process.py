"""A `tarry serve` in a process of its own, on a free port; for tests that need a real broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S

START_S_MAX = PATIENCE_S


class BrokerProcess:
    """Started by `start`, on the same directory and port again after `kill` or `stop`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log_path = directory / "stderr"
        self.texts = {
            "log.dirs": str(directory / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
        self.program = [sys.executable, "-m", "tarry"]
        self.process: subprocess.Popen[bytes] | None = None
        self.first_line = ""
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def command(self, texts: Mapping[str, str] | None = None) -> list[str]:
        self.texts.update(texts or {})
        words = [f"--set={key}={value}" for key, value in self.texts.items()]
        return [*self.program, "serve", *words]

    def start(
        self,
        texts: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        words: Sequence[str] = (),
        stderr: int | None = None,
    ) -> None:
        """Start and wait until it is ready; the log goes to `stderr`, or on in `log_path`."""
        assert self.process is None
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command(texts), *words],
                stdout=subprocess.PIPE,
                stderr=log if stderr is None else stderr,
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
            )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().decode().strip()
        if not self.first_line:
            code = self.wait()
            raise AssertionError(f"no start, exit code {code}: {self.log()}")
        self.port = int(self.first_line.split(";")[0].rpartition(":")[2])
        if self.texts["listeners"] == "PLAINTEXT://127.0.0.1:0":
            # The same port after a restart, so that clients find it again.
            self.texts["listeners"] = f"PLAINTEXT://127.0.0.1:{self.port}"

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask for a clean stop; the exit code."""
        self.send_signal(number)
        return self.wait()

    def stop_cleanly(self) -> None:
        """Ask for a clean stop, and show the end of the log if it was not clean."""
        code = self.stop()
        assert code == 0, f"exit code {code}; the end of its log:\n{self.log()[-4000:]}"

    def kill(self) -> None:
        """kill -9: what was not written is gone, what was written stays."""
        self.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        code = self.process.wait(START_S_MAX)
        self.process.stdout.close()
        self.process = None
        return code

    def close(self) -> None:
        """For the end of a test, whatever has happened."""
        if self.process is not None:
            self.kill()

    def log(self) -> str:
        """Everything on its standard error output so far."""
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, words: str) -> str:
        """The log once it holds these words."""
        return wait_until(lambda: self.log() if words in self.log() else "", words)


def wait_until(look: Callable[[], str], what: str) -> str:
    """What `look` sees as soon as that is true."""
    end = time.monotonic() + START_S_MAX
    while not (seen := look()):
        assert time.monotonic() < end, f"did not come: {what}"
        time.sleep(0.005)  # another process does it
    return seen
