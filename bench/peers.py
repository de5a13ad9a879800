"""Brokers under measurement, ours and Apache Kafka, started alike for every comparison.

Both leave flushing to the page cache unless a benchmark says otherwise; each is ready when its
context is entered, listens on a free port of 127.0.0.1 and is gone at the end.  The line of the
machine stands above each table.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.interop.kafka_server import KafkaServer, KafkaUnavailable, free_port  # noqa: E402

TARRY: Final = ROOT / ".venv" / "bin" / "tarry"
KAFKA_HEAP_MEGABYTES: Final = 1024
STOP_SECONDS_MAX: Final = 60


class Broker(NamedTuple):
    """Running broker."""

    name: str
    address: str
    pid: int


@contextlib.contextmanager
def tarry(
    directory: Path,
    settings: Mapping[str, str],
    policy: str = "os",
    name: str = "Tarry",
    program: Path = TARRY,
    prefix: Sequence[str] = (),
) -> Iterator[Broker]:
    """Start our broker, or that of another checkout (`program`), with a flush policy; `os` leaves
    flushing to the page cache, as Kafka does.  The words of `prefix` stand before its command."""
    given = {
        **settings,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "flush.policy": policy,
    }
    words = [f"--set={key}={value}" for key, value in given.items()]
    process = subprocess.Popen(
        [*prefix, str(program), "serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    first_line = process.stdout.readline()
    port = first_line.partition(";")[0].rpartition(":")[2].strip()
    try:
        yield Broker(name, f"127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS_MAX)
        process.stdout.close()


@contextlib.contextmanager
def kafka(
    directory: Path, settings: Mapping[str, str], name: str = "Apache Kafka"
) -> Iterator[Broker]:
    """Start Apache Kafka, one KRaft node; raises KafkaUnavailable where it cannot run."""
    server = KafkaServer(
        directory,
        free_port(),
        heap_megabytes=KAFKA_HEAP_MEGABYTES,
        is_measured=True,
        properties=dict(settings),
    )
    server.start()
    try:
        assert server.process is not None
        yield Broker(name, server.address, server.process.pid)
    finally:
        server.stop()


def started(
    stack: contextlib.ExitStack,
    directory: Path,
    settings: Mapping[str, str],
    name: str = "Apache Kafka",
) -> tuple[list[Broker], list[str]]:
    """Start Apache Kafka where it can run; return it, or none and the line that says why."""
    try:
        return [stack.enter_context(kafka(directory, settings, name))], []
    except KafkaUnavailable as reason:
        return [], [f"without Apache Kafka: {reason}"]


def build_load(directory: Path, name: str) -> Path:
    """Compile the load generator `bench/name`, which is a program in Go; return its path."""
    if shutil.which("go") is None:
        raise SystemExit("the load generator needs Go: install Debian's golang or from go.dev")
    binary = directory / name
    source = ROOT / "bench" / name
    subprocess.run(["go", "build", "-o", str(binary), "."], cwd=source, check=True)
    return binary


def form() -> str:
    """Return the first line of `tarry version`: the version, and whether it is compiled."""
    told = subprocess.run([str(TARRY), "version"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[0]


def machine() -> str:
    """Describe the machine on which the figures are measured, and what is measured."""
    return (
        f"{date.today()} · {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before · "
        f"{platform.platform()} · {form()}"
    )


def tell_progress() -> None:
    """Print a dot on stderr: one more figure is taken."""
    print(".", end="", flush=True, file=sys.stderr)
