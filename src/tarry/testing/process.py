"""Broker in a process of its own: killed, stopped for a while, and started again by a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

from tarry.testing.access import BrokerAccess
from tarry.testing.data import TemporaryData
from tarry.testing.settings import TEST_SETTINGS, texts_of

# Time that the process has to end after a signal, on a busy machine as well.
END_S_MAX: Final = 30.0


class ProcessEnded(RuntimeError):
    """The broker's process does not run; the text holds what it wrote last."""


class TarryProcess(BrokerAccess):
    """Broker in a process, started at once, that keeps its data and port over restarts."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._data = TemporaryData()
        self._texts = {**TEST_SETTINGS, **texts_of(settings or {})}
        self._texts.setdefault("log.dirs", os.path.join(self._data.path, "data"))
        self._log_path = Path(self._data.path, "log")
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""
        try:
            self.start()
        except BaseException:
            self._data.remove()
            raise

    @property
    def bootstrap(self) -> str:
        return self._address

    @property
    def log(self) -> str:
        """Lines that the broker has written about itself, in all its lives."""
        return self._log_path.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """True while the process exists, paused or not."""
        return self._process is not None

    # --- Lives

    def start(self) -> None:
        """Start the broker, again on the data and the port that it had; returns when it is
        ready."""
        if self._process is not None:
            raise RuntimeError("the broker runs already: kill or stop it first")
        words = [f"--set={key}={value}" for key, value in self._texts.items()]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tarry", "serve", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._data.path,
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().decode()
        if not ready:
            self._wait()
            raise ProcessEnded(f"the broker did not start: {self.log.strip()}")
        self._address = ready.split(";")[0].split()[-1]
        # Keep the port, so that clients find the broker again after a restart.
        if self._texts["listeners"].endswith(":0"):
            self._texts["listeners"] = f"PLAINTEXT://{self._address}"

    def kill(self) -> None:
        """End the process as `kill -9` does."""
        self._signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """Stop the broker as its operator does: it answers waiting requests and stops cleanly."""
        self._signal(signal.SIGTERM)
        self._wait()

    def pause(self) -> ProcessPause:
        """Stop the process without ending it, until `resume` or to the end of a `with` block."""
        self._signal(signal.SIGSTOP)
        return ProcessPause(self)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise ProcessEnded("the broker does not run: start it first")
        self._process.send_signal(number)

    def _wait(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdout is not None
        try:
            process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()

    def close(self) -> None:
        """End the broker, close the clients that were made here, and remove the data."""
        try:
            if self._process is not None:
                # Consumers leave their groups at the close, for which a paused broker must run.
                self.resume()
                try:
                    self.close_clients()
                finally:
                    self.kill()
            else:
                self.close_clients(0)
        finally:
            self._data.remove()

    def __repr__(self) -> str:
        return f"<TarryProcess at {self.bootstrap}{'' if self.is_running else ', not running'}>"


class ProcessPause:
    """Pause of a process, which ends with its `with` block if it has one."""

    def __init__(self, process: TarryProcess) -> None:
        self._process = process

    def __enter__(self) -> None:
        """Begin nothing: the process is paused already."""

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.is_running:
            self._process.resume()
