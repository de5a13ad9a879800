"""The loop in a process of its own, around a stand-in that keeps what it is sent."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

KEEPER = Path(__file__).parents[1] / "support" / "processes" / "keeper.py"


class Running:
    """A keeper process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.output = process.stdout
        self.first_line = self.output.readline().strip()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(self.first_line)), PATIENCE_S)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Exit code and what it wrote after its first line."""
        rest = self.output.read()
        return self.process.wait(PATIENCE_S), rest.strip()


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def start_one(mode: str = "plain") -> Running:
        process = subprocess.Popen(
            [
                *(sys.executable, str(KEEPER), mode),
                f"log.dirs={tmp_path}",
                "listeners=PLAINTEXT://127.0.0.1:0",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return Running(process)

    yield start_one
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_what_is_answered_was_written_and_flushed(start: Start, tmp_path: Path) -> None:
    running = start()
    with running.connect() as peer:
        for i in range(20):
            data = f"record {i};".encode()
            peer.sendall(data)
            assert peer.recv(100) == b"kept " + data

    assert (tmp_path / "kept").read_bytes().startswith(b"record 0;record 1;")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_and_the_peer_is_told(
    start: Start, number: signal.Signals
) -> None:
    running = start()
    with running.connect() as peer:
        peer.sendall(b"x")
        assert peer.recv(100) == b"kept x"

        running.signal(number)

        assert peer.recv(100) == b""
    assert running.end() == (0, "")


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    running = start("deaf")
    with running.connect() as peer:
        running.signal(signal.SIGTERM)
        # The first one has arrived when nobody can connect any more.
        peer.sendall(b"x")
        while is_listening(running):
            pass

        running.signal(signal.SIGTERM)
        code, _ = running.end()

    # A loop that waits for the deaf one first ends with 1.
    assert code == -signal.SIGTERM


def is_listening(running: Running) -> bool:
    try:
        running.connect().close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


def test_a_broker_that_does_not_stop_is_left_in_the_end(start: Start) -> None:
    running = start("left")

    running.signal(signal.SIGTERM)

    assert running.end() == (
        1,
        "the broker did not finish within 1 s; the next start reads its logs again",
    )


def test_a_broker_that_stops_by_itself_gives_its_reason(start: Start) -> None:
    running = start("broken")
    with running.connect() as peer:
        peer.sendall(b"x")

        assert running.end() == (1, "it broke")


def test_a_start_that_fails_at_the_disk_is_refused_in_a_sentence(start: Start) -> None:
    running = start("refusing")

    assert running.first_line == "kept: Input/output error"
    assert running.end() == (3, "")


def test_a_second_one_on_the_same_directory_is_refused_until_the_first_is_killed(
    start: Start,
) -> None:
    first = start()
    second = start()
    assert second.first_line.startswith(f"another broker (process {first.process.pid}) uses")
    assert second.end()[0] == 3

    first.signal(signal.SIGKILL)
    first.end()

    with start().connect() as peer:
        peer.sendall(b"x")
        assert peer.recv(100) == b"kept x"


def test_an_idle_loop_costs_nothing(start: Start) -> None:
    running = start()
    with running.connect():
        before = cpu_ticks(running.process.pid)
        time.sleep(1.0)  # the time is what is measured

        # A tick is 10 ms.  A loop that spins takes 100 of them.
        assert cpu_ticks(running.process.pid) - before <= 10


def cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        pytest.skip("no /proc here")
    return int(fields[11]) + int(fields[12])
