"""Clients of Go and Node that write and read in a process of their own, as the other faces do."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Final

from tests.support.interop.client_face import STEP_SECONDS_MAX, ProducerFace
from tests.support.interop.foreign_clients import ask_client, client_command
from tests.support.interop.records_sent import ReadRecord, SentRecord

# The places of partitions before the one that is read; none of them is asked for.
NOTHING: Final = "0"


class ForeignProducer:
    """A program that sends what it is given, and ends when it is flushed."""

    def __init__(self, client: str, address: str) -> None:
        self.client = client
        self.address = address
        self.run: subprocess.Popen[str] | None = None
        self.sent = 0

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        if self.run is None:
            command, environment = client_command(self.client, "stream", self.address, topic)
            self.run = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        assert self.run.stdin is not None
        self.run.stdin.write(f"{partition} {(record.value or b'').decode()}\n")
        self.run.stdin.flush()
        self.sent += 1

    def flush(self) -> None:
        if self.run is None:
            return
        run, self.run = self.run, None
        sent, self.sent = self.sent, 0
        told: dict[str, Any] = json.loads(run.communicate(timeout=STEP_SECONDS_MAX)[0])
        assert "error" not in told, told
        assert told["acknowledged"] == sent

    def close(self) -> None:
        if self.run is not None:
            self.run.kill()
            self.run.communicate()
            self.run = None


class ForeignFace:
    """One of the clients of Go and Node; what it writes is idempotent with acks=all."""

    def __init__(self, client: str, address: str) -> None:
        self.name = client
        self.address = address
        # Raises what says why the client cannot run here.
        client_command(client, "read", address)

    def producer(self) -> ProducerFace:
        return ForeignProducer(self.name, self.address)

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        """`count` records from the beginning: these programs begin nowhere else."""
        assert offset == 0
        counts = ",".join([NOTHING] * partition + [str(count)])
        told = ask_client(self.name, "read", self.address, topic, counts)
        assert "error" not in told, told
        read = told["read"][partition]
        return [ReadRecord(found, SentRecord(value.encode())) for found, value in read]

    def close(self) -> None:
        return
