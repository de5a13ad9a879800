"""Run a cluster of three brokers and an etcd on this machine until Ctrl-C; `make cluster` calls it.

Brokers listen on 127.0.0.1:19091 to 19093, etcd on 12379; all data is below ./tarry-data/cluster
and is found again by the next run.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOST: Final = "127.0.0.1"
END_S_MAX: Final = 10
# Longer than a session time-out, so that the others have taken over what it led.
RESTART_S: Final = 15

HOW_TO: Final = """\
A cluster of three brokers is ready: {brokers}
  produce   echo hello | .venv/bin/tarry produce -b {first} orders
  consume   .venv/bin/tarry consume -b {first} orders
  look      kcat -b {first} -L
Topics have three replicas: kill -9 a broker and go on, it is started again after {pause} s.
Ctrl-C ends brokers and etcd."""


class Cluster:
    """The processes, the one of etcd first."""

    def __init__(self, etcd: str, directory: Path, first_port: int, etcd_port: int) -> None:
        self.etcd = etcd
        self.directory = directory
        self.ports = [first_port + number for number in range(3)]
        self.etcd_port = etcd_port
        self.etcd_log = directory / "etcd.log"
        self.processes: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        """Start etcd, then the brokers, and wait for all."""
        client = f"http://{HOST}:{self.etcd_port}"
        peer = f"http://{HOST}:{self.etcd_port + 1}"
        data = self.directory / "etcd"
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = [
            *("--data-dir", str(data), "--log-level", "error"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", "--auto-compaction-retention", "1h"),
        ]
        # In a session of its own: Ctrl-C reaches the brokers, and etcd ends when they have left.
        with self.etcd_log.open("a") as log:
            self.processes.append(
                subprocess.Popen([self.etcd, *words], stderr=log, text=True, start_new_session=True)
            )
        self._wait_for_etcd()
        for number, port in enumerate(self.ports):
            self.processes.append(self._start_broker(number + 1, port))
        for broker in self.processes[1:]:
            assert broker.stdout is not None
            if not broker.stdout.readline():
                sys.exit("make cluster: a broker did not start, see above")

    def _wait_for_etcd(self) -> None:
        while True:
            if self.processes[0].poll() is not None:
                sys.exit(
                    f"make cluster: etcd did not start, see {self.etcd_log}; is port "
                    f"{self.etcd_port} free?"
                )
            try:
                socket.create_connection((HOST, self.etcd_port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return

    def _start_broker(self, broker_id: int, port: int) -> subprocess.Popen[str]:
        settings = {
            "node.id": str(broker_id),
            "metadata.store": f"etcd://{HOST}:{self.etcd_port}/cluster",
            "log.dirs": str(self.directory / f"broker-{broker_id}"),
            "listeners": f"PLAINTEXT://{HOST}:{port}",
            # What is made without a word of replicas outlives a broker too, and so do groups.
            "default.replication.factor": str(len(self.ports)),
            "offsets.topic.replication.factor": str(len(self.ports)),
            "min.insync.replicas": "2",
        }
        words = [f"--set={key}={value}" for key, value in settings.items()]
        return subprocess.Popen(
            [str(ROOT / ".venv" / "bin" / "tarry"), "serve", *words],
            stdout=subprocess.PIPE,
            text=True,
        )

    def watch(self) -> None:
        """Start brokers again that end, until etcd does."""
        ended_s: dict[int, float] = {}
        while self.processes[0].poll() is None:
            for number, broker in enumerate(self.processes[1:]):
                code = broker.poll()
                if code is None:
                    continue
                if number not in ended_s:
                    ended_s[number] = time.monotonic()
                    print(
                        f"make cluster: broker {number + 1} has ended (exit code {code}); the "
                        f"others go on, and it is started again after {RESTART_S} s",
                        file=sys.stderr,
                    )
                elif time.monotonic() - ended_s[number] >= RESTART_S:
                    del ended_s[number]
                    self.processes[number + 1] = self._start_broker(number + 1, self.ports[number])
            time.sleep(0.2)

    def end(self) -> None:
        """End the brokers, then etcd, so that they can leave."""
        for group in (self.processes[1:], self.processes[:1]):
            for process in group:
                process.terminate()
            for process in group:
                try:
                    process.wait(END_S_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()


def main() -> None:
    """Start, tell, wait, end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--etcd", required=True, help="the program of etcd: tools/etcd.sh names it")
    parser.add_argument("--directory", type=Path, default=Path("tarry-data/cluster"))
    parser.add_argument("--port", type=int, default=19091, help="of the first broker")
    parser.add_argument("--etcd-port", type=int, default=12379)
    words = parser.parse_args()
    cluster = Cluster(words.etcd, words.directory.resolve(), words.port, words.etcd_port)

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        cluster.start()
        first = f"{HOST}:{cluster.ports[0]}"
        brokers = ", ".join(f"{HOST}:{port}" for port in cluster.ports)
        print(HOW_TO.format(brokers=brokers, first=first, pause=RESTART_S), flush=True)
        cluster.watch()
        print("make cluster: etcd has ended, so all are ended", file=sys.stderr)
    except KeyboardInterrupt:
        pass
    finally:
        cluster.end()


if __name__ == "__main__":
    main()
