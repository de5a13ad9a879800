"""One worker of Kafka Connect with its connectors for files, driven by its REST interface."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.support.interop.kafka_server import POM, free_port, java_command
from tests.support.patience import PATIENCE_S

CONNECT_POM: Final = POM.with_name("connect-pom.xml")
PROGRAMS: Final = {
    "standalone": "org.apache.kafka.connect.cli.ConnectStandalone",
    "distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
}

CONVERTER: Final = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS: Final = {
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "offset.flush.interval.ms": "200",
    "plugin.discovery": "hybrid_warn",
    "reconnect.backoff.max.ms": "200",
    "consumer.reconnect.backoff.max.ms": "200",
    "producer.reconnect.backoff.max.ms": "200",
    # Offsets that a sink whose worker was killed leaves behind.
    "consumer.session.timeout.ms": "10000",
    "consumer.heartbeat.interval.ms": "300",
    "consumer.auto.offset.reset": "earliest",
}
DISTRIBUTED: Final = {
    "group.id": "connect-workers",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "status.storage.partitions": "2",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "300",
    # A worker that comes back gets its connectors again at once.
    "scheduled.rebalance.max.delay.ms": "0",
}

WAIT_SECONDS_MAX: Final = PATIENCE_S
LOOK_AGAIN_SECONDS: Final = 0.05


class ConnectWorker:
    """Started by `start`, on the same directory and port again after `kill`."""

    def __init__(self, mode: str, address: str, directory: Path) -> None:
        self.mode = mode
        self.directory = directory
        self.url = f"http://127.0.0.1:{free_port()}"
        settings = {**SETTINGS, "bootstrap.servers": address, "listeners": self.url}
        if mode == "distributed":
            settings |= DISTRIBUTED
        else:
            settings["offset.storage.file.filename"] = str(directory / "offsets")
        self.properties = directory / "worker.properties"
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        self.properties.write_text("".join(lines))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        assert self.process is None
        command = java_command(PROGRAMS[self.mode], str(self.properties), pom=CONNECT_POM)
        with (self.directory / "output").open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.wait_for(lambda: isinstance(self.ask("GET", "/connectors"), list), "the worker")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def close(self) -> None:
        if self.process is not None:
            self.kill()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the REST interface answers; None while it does not."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(request, timeout=10) as answer,
        ):
            return json.load(answer)
        return None

    def put_connector(self, name: str, **settings: str) -> None:
        """Make the connector and wait until its task runs."""
        self.wait_for(
            lambda: self.ask("PUT", f"/connectors/{name}/config", settings) is not None, name
        )
        self.wait_for(lambda: self.is_running(name), f"{name} running")

    def is_running(self, name: str) -> bool:
        status = self.ask("GET", f"/connectors/{name}/status")
        return status is not None and [task["state"] for task in status["tasks"]] == ["RUNNING"]

    def committed(self, name: str) -> int | None:
        """How far a connector over one file or partition is, by what it has stored."""
        answer = self.ask("GET", f"/connectors/{name}/offsets")
        if answer is None or not answer["offsets"]:
            return None
        offset = answer["offsets"][0]["offset"]
        return int(next(iter(offset.values())))

    def wait_for(self, is_so: Any, what: str) -> None:
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end, f"did not come: {what}; {self.tail()}"
            assert self.process is None or self.process.poll() is None, self.tail()
            time.sleep(LOOK_AGAIN_SECONDS)  # another process does it

    def tail(self) -> str:
        return (self.directory / "output").read_text(errors="replace")[-3000:]
