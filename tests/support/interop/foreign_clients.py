"""Programs of Go (franz-go, sarama, goka) and of Node (kafkajs); a client does one task.

The programs of Go are built once and kept in `build/` by a digest of their sources, kafkajs is
installed there.  What cannot be built or installed raises `ClientMissing` with the reason.  As a
script it makes all, which takes a minute of CPU where Go has compiled nothing yet:

    python -m tests.support.interop.foreign_clients
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.support.interop.client_face import STEP_SECONDS_MAX, ClientMissing
from tests.support.places import BUILD, PEERS

GO_SOURCES: Final = PEERS / "go"
GOKA_SOURCES: Final = PEERS / "go-streams"
NODE_SOURCES: Final = PEERS / "node"

# Fetching and compiling everything for the first time, on a machine that is busy.
BUILD_SECONDS_MAX: Final = 600

GO_CLIENTS: Final = ("franz-go", "sarama")
CLIENTS: Final = (*GO_CLIENTS, "kafkajs")

Environ = dict[str, str]

# Not optimised and without what a debugger needs: that is half of the time.
GO_FLAGS: Final = ("-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w")


def go_program(sources: Path = GO_SOURCES, name: str = "go-clients") -> Path:
    """The compiled program of a module of Go, by default that of both clients."""
    if shutil.which("go") is None:
        raise ClientMissing("Go is not installed; Debian has it in golang")
    program = BUILD / f"{name}-{_digest(sources, '*')}"
    with _one_at_a_time(program):
        if not program.exists():
            unfinished = program.with_suffix(".unfinished")
            _make(["go", "build", *GO_FLAGS, "-o", str(unfinished), "."], sources)
            unfinished.rename(program)
    return program


def goka_program() -> Path:
    """The compiled stream processor of goka."""
    return go_program(GOKA_SOURCES, "go-streams")


def node_modules(sources: Path = NODE_SOURCES, name: str = "node-clients") -> Path:
    """The directory of the modules that a package asks for, by default kafkajs."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise ClientMissing(f"{tool} is not installed; Debian has it in nodejs and npm")
    directory = BUILD / f"{name}-{_digest(sources, 'package*.json')}"
    with _one_at_a_time(directory):
        if not directory.exists():
            unfinished = directory.with_suffix(".unfinished")
            unfinished.mkdir(exist_ok=True)
            for source in sources.glob("package*.json"):
                shutil.copy(source, unfinished)
            _make(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], unfinished)
            unfinished.rename(directory)
    return directory / "node_modules"


def client_command(client: str, task: str, address: str, *words: str) -> tuple[list[str], Environ]:
    """The command line and the environment in which the client does a task."""
    environment = dict(os.environ)
    if client in GO_CLIENTS:
        return [str(go_program()), client, task, address, *words], environment
    environment["NODE_PATH"] = str(node_modules())
    return ["node", str(NODE_SOURCES / "clients.js"), task, address, *words], environment


def ask_client(client: str, task: str, address: str, name: str = "", *words: str) -> dict[str, Any]:
    """What the client tells of a task; `error` is among it if the task failed."""
    command, environment = client_command(client, task, address, name or "clients", *words)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS_MAX,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@contextlib.contextmanager
def _one_at_a_time(made: Path) -> Iterator[None]:
    """The workers of a test run need the same; one makes it and the others wait."""
    BUILD.mkdir(exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest(directory: Path, pattern: str) -> str:
    digest = hashlib.sha256()
    for source in sorted(directory.glob(pattern)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _make(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise ClientMissing(f"{command[0]} took longer than {BUILD_SECONDS_MAX} s") from late
    if done.returncode != 0:
        raise ClientMissing(f"{' '.join(command[:2])}: {done.stderr.strip()[-500:]}")


def main() -> None:
    """Make all of them; a test says what cannot be made."""
    for make in (node_modules, go_program, goka_program):
        with contextlib.suppress(ClientMissing):
            make()


if __name__ == "__main__":
    main()
