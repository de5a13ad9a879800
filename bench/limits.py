#!/usr/bin/env python3
"""Cost of partitions and idle connections in a broker: memory, file descriptors, time to start.

For each number of partitions a broker begins with an empty directory, makes them in one topic per
thousand, takes one record in each, and is measured; then it is stopped and started, killed and
started.  For each number of connections as many clients connect, ask for the metadata once and stay
silent.  Memory is the resident set, file descriptors are counted in /proc where there is one.

    bench/limits.py [--partitions N,N] [--connections N,N]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tarry.client.core.admin.calls import NewTopic
from tarry.client.sync.admin import Admin
from tarry.client.sync.producer import Producer
from tarry.protocol.api_keys import METADATA
from tarry.protocol.frames import encode_request
from tarry.protocol.messages.metadata import MetadataRequest

TARRY = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "tarry"
METADATA_VERSION = 12
PARTITIONS_PER_TOPIC = 1_000
REQUEST_S_MAX = 300.0
# Descriptors of this process beside those of its connections.
DESCRIPTORS_SPARE = 100


class Broker:
    """Broker on a directory; `seconds` is the time from its start to its ready line."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.begin()

    def begin(self) -> None:
        words = (f"log.dirs={self.directory}/data", "listeners=PLAINTEXT://127.0.0.1:0")
        command = [str(TARRY), "serve", *(f"--set={word}" for word in words)]
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.seconds = time.perf_counter() - begun
        assert "ready" in line, "the broker did not start"
        self.port = int(line.split(";")[0].rpartition(":")[2])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def end(self, number: signal.Signals) -> float:
        """Stop the broker; return the seconds until its process was gone."""
        begun = time.perf_counter()
        self.process.send_signal(number)
        self.process.communicate()
        return time.perf_counter() - begun

    def memory_bytes(self) -> int:
        """Return the resident memory in bytes, from `ps`, which Linux and macOS have."""
        command = ["ps", "-o", "rss=", "-p", str(self.process.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout) * 1024

    def descriptors(self) -> int | None:
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except FileNotFoundError:
            return None


def measure_partitions(count: int) -> None:
    """Make, fill, stop, start, kill, start."""
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(directory)
        memory, descriptors = broker.memory_bytes(), broker.descriptors()
        begun = time.perf_counter()
        names = [f"topic-{i}" for i in range(-(-count // PARTITIONS_PER_TOPIC))]
        each = min(count, PARTITIONS_PER_TOPIC)
        with Admin(bootstrap_servers=broker.address) as admin:
            for name in names:
                (made,) = admin.create_topics([NewTopic(name, each)], timeout=REQUEST_S_MAX)
                assert made.error is None, made.error
        made_s = time.perf_counter() - begun
        made_bytes = broker.memory_bytes() - memory
        with Producer(bootstrap_servers=broker.address) as producer:
            for name in names:
                for partition in range(each):
                    producer.send(name, b"x" * 100, partition=partition)
            producer.flush()
        filled_bytes = broker.memory_bytes() - memory
        opened = broker.descriptors()
        stop_s = broker.end(signal.SIGTERM)
        broker.begin()
        clean_s, clean_bytes = broker.seconds, broker.memory_bytes()
        broker.end(signal.SIGKILL)
        broker.begin()
        killed_s = broker.seconds
        broker.end(signal.SIGTERM)
    files = "" if opened is None else f", {opened - (descriptors or 0)} files open"
    print(
        f"{count:>7,} partitions: made in {made_s:.1f} s, {made_bytes / count / 1024:.1f} KB of "
        f"memory each, {filled_bytes / count / 1024:.1f} KB with a record in each{files}; clean "
        f"stop {stop_s:.1f} s, start after it {clean_s:.1f} s with "
        f"{clean_bytes / 1024 / 1024:.0f} MB, start after kill -9 {killed_s:.1f} s"
    )


def measure_connections(count: int) -> None:
    """Connect, ask once, stay silent."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        broker = Broker(directory)
        memory, descriptors = broker.memory_bytes(), broker.descriptors()
        request = encode_request(
            METADATA, METADATA_VERSION, 1, "limits", MetadataRequest(topics=[])
        )
        begun = time.perf_counter()
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), 60))
            one.sendall(request)
            (size,) = struct.unpack(">i", one.recv(4, socket.MSG_WAITALL))
            one.recv(size, socket.MSG_WAITALL)
        seconds = time.perf_counter() - begun
        grown_bytes = broker.memory_bytes() - memory
        opened = broker.descriptors()
        before = cpu_seconds(broker.process.pid)
        time.sleep(10)
        cpu = cpu_seconds(broker.process.pid) - before
        broker.end(signal.SIGTERM)
    files = "" if opened is None else f", {opened - (descriptors or 0)} descriptors"
    print(
        f"{count:>7,} idle connections: {grown_bytes / count / 1024:.1f} KB of memory each{files}, "
        f"{count / seconds:,.0f} connected and answered a second, {cpu / 10 * 100:.1f} % CPU idle"
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of the process in seconds; 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--partitions", type=numbers, default=[1_000, 10_000])
    parser.add_argument("--connections", type=numbers, default=[1_000, 10_000])
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max([0, *arguments.connections]) + DESCRIPTORS_SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    form = subprocess.run([TARRY, "version"], capture_output=True, text=True, check=True).stdout
    today = datetime.date.today().isoformat()
    print(f"{today}, {platform.machine()}, {os.cpu_count()} CPUs: {form.splitlines()[0]}")
    for count in arguments.partitions:
        measure_partitions(count)
    for count in arguments.connections:
        measure_connections(count)


if __name__ == "__main__":
    main()
