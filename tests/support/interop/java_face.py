"""Kafka's own Java client, driven through `java/Client.java`, one program for all tests."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any, Final

from tests.support.interop.client_face import CODECS, ClientMissing, ProducerFace
from tests.support.interop.kafka_server import KafkaUnavailable, java_command
from tests.support.interop.records_sent import ReadRecord, SentRecord, records_of_every_kind
from tests.support.patience import PATIENCE_S
from tests.support.places import PEERS

SOURCE: Final = PEERS / "java" / "Client.java"


class JavaError(Exception):
    """What the Java client threw."""


class JavaProgram:
    """The running program; commands go in and answers come out in turn."""

    def __init__(self) -> None:
        try:
            command = java_command(str(SOURCE))
        except KafkaUnavailable as reason:
            raise ClientMissing(str(reason)) from reason
        self.run = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.version = str(self.ask("version"))

    def tell(self, do: str, **fields: Any) -> None:
        assert self.run.stdin is not None
        self.run.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        self.run.stdin.flush()

    def ask(self, do: str, **fields: Any) -> Any:
        self.tell(do, **fields)
        assert self.run.stdout is not None
        line = self.run.stdout.readline()
        assert line, "the Java program ended"
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        assert self.run.stdin is not None
        assert self.run.stdout is not None
        self.run.stdin.close()
        try:
            self.run.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            # A test has failed and left it waiting for an answer.
            self.run.kill()
            self.run.wait()
        self.run.stdout.close()


class JavaProducer:
    def __init__(self, program: JavaProgram, address: str, settings: dict[str, str]) -> None:
        self.program = program
        self.producer = program.ask("open producer", address=address, settings=settings)

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        self.program.tell(
            "send",
            producer=self.producer,
            topic=topic,
            partition=partition,
            key=text(record.key),
            value=text(record.value),
            headers=[[name, text(value)] for name, value in record.headers],
            timestamp=record.timestamp_ms,
        )

    def flush(self) -> list[int]:
        offsets: list[int] = self.program.ask("flush", producer=self.producer)
        return offsets

    def close(self) -> None:
        self.program.ask("close producer", producer=self.producer)


class JavaFace:
    name = "Java kafka-clients"
    codecs = CODECS
    has_admin = True

    def __init__(self, address: str, program: JavaProgram) -> None:
        self.address = address
        self.program = program
        self.version = program.version

    def ask(self, do: str, **fields: Any) -> Any:
        return self.program.ask(do, address=self.address, **fields)

    def records(self) -> list[SentRecord]:
        return records_of_every_kind()

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        self.ask("create topic", topic=topic, partitions=partitions, configs=configs)

    def delete_topic(self, topic: str) -> None:
        self.ask("delete topic", topic=topic)

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace:
        settings = {
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": str(is_idempotent).lower(),
            "max.request.size": "4000000",
            "linger.ms": "5",
        }
        return JavaProducer(self.program, self.address, settings)

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        found = self.ask("read", topic=topic, partition=partition, offset=offset, count=count)
        assert len(found) == count, f"only {len(found)} of {count} records came"
        return [record_of(fields) for fields in found]

    def end_offset(self, topic: str, partition: int) -> int:
        end: int = self.ask("end offset", topic=topic, partition=partition)
        return end

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        offset: int | None = self.ask(
            "offset for time", topic=topic, partition=partition, timestamp=timestamp_ms
        )
        return offset

    def close(self) -> None:
        return


def record_of(fields: list[Any]) -> ReadRecord:
    offset, timestamp, key, value, headers = fields
    pairs = tuple((name, data(held)) for name, held in headers)
    return ReadRecord(offset, SentRecord(data(value), data(key), pairs, timestamp))


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
