"""A real etcd of one member, for tests: started, killed, stopped, compacted."""

from __future__ import annotations

import contextlib
import functools
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support.patience import PATIENCE_S, tries

ROOT: Final = Path(__file__).resolve().parents[3]


@functools.cache
def program(release: str = "") -> str:
    """The program of etcd that `make etcd` names, which may have to build it; else a skip."""
    found = subprocess.run(
        [ROOT / "tools" / "etcd.sh", release], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        pytest.skip(found.stderr.strip())
    return found.stdout.strip()


def free_ports(count: int) -> int:
    """The first of so many free ports in a row, below those that the system gives by itself."""
    for _ in tries():
        first = random.randrange(15_000, 30_000)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError(f"no {count} ports in a row are free")


class EtcdServer:
    """One member on ports of its own, its data in `directory`.

    The only one, unless `members` names others with the addresses of their peers.  `release` is
    "3.5" for the older one.
    """

    def __init__(self, directory: Path, name: str = "default", release: str = "") -> None:
        self.directory = directory
        self.name = name
        self.release = release
        self.port = free_ports(2)
        self.peer_port = self.port + 1
        self.members = {name: self.peer_address}
        self.process: subprocess.Popen[bytes] | None = None
        self.scheme = "http"
        self.words: list[str] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def peer_address(self) -> str:
        return f"http://127.0.0.1:{self.peer_port}"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self.begin()
        self.wait_until_open()

    def begin(self) -> None:
        """Start it."""
        found = program(self.release)
        assert self.process is None
        client, peer = f"{self.scheme}://{self.address}", self.peer_address
        members = ",".join(f"{name}={address}" for name, address in self.members.items())
        self.process = subprocess.Popen(
            [
                found,
                *("--name", self.name, "--data-dir", str(self.directory / "etcd")),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", members, "--log-level", "error"),
                *("--heartbeat-interval", "100", "--election-timeout", "1000"),
                *self.words,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait_until_open(self) -> None:
        assert self.process is not None
        for _ in tries():
            try:
                socket.create_connection(("127.0.0.1", self.port), PATIENCE_S).close()
            except OSError:
                assert self.process.poll() is None, "etcd ended at its start"
            else:
                return

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.process = None

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Kill it for the time of the block; it is started again even if the block fails."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process is not None:
            self.kill()
