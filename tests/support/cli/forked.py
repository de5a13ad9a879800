"""Copies of one process that has loaded the command `tarry`: hundreds of runs cost few starts.

A start costs 0.15 s of CPU, a copy 0.02 s; starts have tests of their own (`tests/processes`).  Run
as a program, this module is the process that is copied: it reads a line of JSON for each run and
writes the exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import select
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S


class ForkedCommand:
    """Command that runs once at a time; its streams are files in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cli.forked"],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(
        self, arguments: tuple[str, ...], data: bytes, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command to its end, with these bytes on its standard input."""
        streams = [self._directory / name for name in ("input", "output", "errors")]
        streams[0].write_bytes(data)
        request = {
            "arguments": arguments,
            "environment": environment,
            "directory": str(Path.cwd()),
            "streams": [str(path) for path in streams],
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        if not select.select([self._server.stdout], [], [], PATIENCE_S)[0]:
            raise subprocess.TimeoutExpired(arguments, PATIENCE_S)
        code = int(self._server.stdout.readline())
        return subprocess.CompletedProcess(
            arguments, code, streams[1].read_bytes(), streams[2].read_bytes()
        )

    def close(self) -> None:
        """End the process that is copied."""
        self._server.communicate(timeout=PATIENCE_S)


def load_everything() -> None:
    """Import what the commands import when they run."""
    for package in ("tarry.cli", "tarry.client"):
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, f"{package}."):
            importlib.import_module(found.name)


def become_the_command(request: dict[str, object]) -> None:
    """Turn this copy of the process into one run of the command."""
    streams = request["streams"]
    assert isinstance(streams, list)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, path in enumerate(streams):
        opened = os.open(path, modes[number > 0], 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(str(request["directory"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv[:] = ["tarry", *request["arguments"]]  # type: ignore[misc]


def main() -> None:
    load_everything()
    from tarry.cli.main import main as run_command

    # The standard streams are those of the copies.
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    codes = os.dup(1)
    for line in requests:
        child = os.fork()
        if child == 0:
            os.close(requests.fileno())
            os.close(codes)
            become_the_command(json.loads(line))
            run_command()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(codes, b"%d\n" % status)


if __name__ == "__main__":
    main()
