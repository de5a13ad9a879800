"""Apache Kafka as a peer: one KRaft node on 127.0.0.1, for interop tests and the benchmark.

The jars come by Maven from `java/pom.xml` (offline first, then by whatever set-up the user has);
their class path is kept in `build/`.  As a script it starts a server that stays:

    python -m tests.support.interop.kafka_server start --port 19192
    python -m tests.support.interop.kafka_server stop --port 19192
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.support.patience import PATIENCE_S
from tests.support.places import BUILD, PEERS

POM: Final = PEERS / "java" / "pom.xml"

# The console tools have a pom of their own: where they cannot be had, all the rest still runs.
TOOLS_POM: Final = POM.with_name("tools-pom.xml")

# A node with an empty directory needs 4 to 6 s on an idle machine with two cores.
START_SECONDS_MAX: Final = PATIENCE_S
STOP_SECONDS_MAX: Final = PATIENCE_S
CLUSTER_ID: Final = "dGFycnktaW50ZXJvcC0wMQ"

PROPERTIES: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Deleted segments go at once, so that tests which delete topics do not fill the disk.
    "log.segment.delete.delay.ms": "1000",
    # A node that stands still on a busy machine stays a leader in its controller's eyes.
    "broker.session.timeout.ms": str(PATIENCE_S * 1_000),
    # A connection that a module of tests keeps is not closed behind its back.
    "connections.max.idle.ms": "86400000",
}


class KafkaUnavailable(Exception):
    """Apache Kafka cannot be run on this machine; the text says what is missing."""


def class_path(pom: Path = POM) -> str:
    """The jars of Kafka, found by Maven once and then remembered while they exist."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise KafkaUnavailable(f"{tool} is not installed")
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    remembered = BUILD / f"kafka-classpath-{digest}"
    if remembered.exists():
        text = remembered.read_text().strip()
        if text and all(Path(jar).exists() for jar in text.split(os.pathsep)):
            return text
    BUILD.mkdir(exist_ok=True)
    # Another process may read the file at any time.
    unfinished = remembered.with_name(f"{remembered.name}.{os.getpid()}")
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"]
    command.append(f"-Dmdep.outputFile={unfinished}")
    for mode in (["-o"], []):
        done = subprocess.run(
            command + mode, capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode == 0:
            return unfinished.replace(remembered).read_text().strip()
    raise KafkaUnavailable(f"Maven could not fetch Kafka's jars: {done.stdout[-500:]}")


def java_command(
    main_class: str,
    *arguments: str,
    heap_megabytes: int = 256,
    pom: Path = POM,
    is_measured: bool = False,
) -> list[str]:
    """The command line of one of Kafka's programs, such as `kafka.tools.StorageTool`."""
    options = [f"-Xmx{heap_megabytes}m", "-XX:+UseSerialGC"]
    if not is_measured:
        # A program that runs for seconds gains nothing from the slow compiler.
        options.append("-XX:TieredStopAtLevel=1")
    return ["java", *options, "-cp", class_path(pom), main_class, *arguments]


class KafkaServer:
    """One node of Apache Kafka with a directory of its own."""

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        heap_megabytes: int = 384,
        properties: dict[str, str] | None = None,
        is_measured: bool = False,
    ) -> None:
        self.directory = directory
        self.port = port
        self.controller_port = free_port()
        self.heap_megabytes = heap_megabytes
        self.is_measured = is_measured
        self.properties = properties or {}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Format the directory if it is new, start the node, wait until it takes connections."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self._write_properties()
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(configuration)
        output = (self.directory / "output.log").open("ab")
        with output:
            self.process = subprocess.Popen(
                java_command(
                    "kafka.Kafka",
                    str(configuration),
                    heap_megabytes=self.heap_megabytes,
                    is_measured=self.is_measured,
                ),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Ask it to stop; kill it when it does not."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_SECONDS_MAX)
        self.process = None

    def _write_properties(self) -> Path:
        settings = {
            **PROPERTIES,
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.directory / "data"),
            **self.properties,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _format(self, configuration: Path) -> None:
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(configuration)]
        done = subprocess.run(
            java_command("kafka.tools.StorageTool", *arguments),
            capture_output=True,
            text=True,
            timeout=START_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaUnavailable(f"Kafka did not format its storage: {done.stdout}{done.stderr}")

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                tail = (self.directory / "output.log").read_text(errors="replace")[-1000:]
                raise KafkaUnavailable(f"Kafka ended with {self.process.returncode}: {tail}")
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1),
            ):
                return
            time.sleep(0.1)
        self.stop()
        raise KafkaUnavailable(f"Kafka was not ready after {START_SECONDS_MAX} s")


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(description="Apache Kafka, one node on 127.0.0.1")
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("--port", type=int, default=19192)
    parser.add_argument("--heap-megabytes", type=int, default=384)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    directory = arguments.directory or Path(tempfile.gettempdir()) / f"kafka-{arguments.port}"
    pid_file = directory / "pid"
    if arguments.action == "start":
        server = KafkaServer(
            directory,
            arguments.port,
            heap_megabytes=arguments.heap_megabytes,
            properties=dict(item.split("=", 1) for item in arguments.set),
        )
        server.start()
        assert server.process is not None
        pid_file.write_text(str(server.process.pid))
        sys.stdout.write(f"{server.address}\n")
    elif pid_file.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        pid_file.unlink()


if __name__ == "__main__":
    main()
