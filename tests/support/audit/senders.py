"""Senders of an audited day: one call that sends letters with any client and says what it was told.

Ours take due times and ids as arguments, the others as timestamps and headers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tests.support.audit.account import ACKED, DOUBT, REFUSED
from tests.support.client.faces import make_face
from tests.support.interop.aiokafka_face import AiokafkaFace
from tests.support.interop.client_face import ClientFace
from tests.support.interop.confluent_face import ConfluentFace
from tests.support.interop.java_face import JavaFace, JavaProgram
from tests.support.interop.kafka_python_face import KafkaPythonFace
from tests.support.interop.kcat_face import KcatFace
from tests.support.interop.records_sent import Header, SentRecord
from tests.support.patience import PATIENCE_S

from tarry.base.errors import INVALID_RECORD
from tarry.client.errors import BrokerError

OURS: Final = ("sync", "aio")
FOREIGN: Final = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")
CLIENTS: Final = (*OURS, *FOREIGN)


@dataclass
class Letter:
    """A record to be sent: due at a time or after one, by its timestamp or by headers."""

    topic: str
    partition: int
    value: bytes
    due_ms: int = -1
    after_ms: int = -1
    schedule_id: str = ""
    is_cancel: bool = False
    is_by_timestamp: bool = False
    headers: list[Header] = field(default_factory=list)

    def sent_record(self) -> SentRecord:
        headers = list(self.headers)
        if not self.is_by_timestamp:
            if self.due_ms >= 0:
                headers.append(("x-deliver-at", b"%d" % self.due_ms))
            if self.after_ms >= 0:
                headers.append(("x-deliver-after", b"%d" % self.after_ms))
        if self.schedule_id:
            headers.append(("x-sched-id", self.schedule_id.encode()))
        if self.is_cancel:
            headers.append(("x-sched-cancel", b"1"))
        timestamp_ms = self.due_ms if self.is_by_timestamp and self.due_ms >= 0 else None
        return SentRecord(self.value, b"k", tuple(headers), timestamp_ms)


class Told:
    """What a client said of a letter: its answer, an offset or -1, and an error."""

    def __init__(self, answer: str, offset: int = -1, error: str = "") -> None:
        self.answer = answer
        self.offset = offset
        self.error = error


class Sender(Protocol):
    """A client that sends letters, all of them at once, and waits for the answers."""

    def send(self, letters: list[Letter]) -> list[Told]: ...

    def close(self) -> None: ...


class OurSender:
    """A producer of ours: sync, or aio in a loop of its own."""

    def __init__(self, name: str, addresses: str) -> None:
        self.face = make_face("sync" if name == "sync" else "asyncio")
        self.producer = self.face.Producer(
            bootstrap_servers=addresses,
            acks="all",
            linger_ms=5,
            delivery_timeout_ms=PATIENCE_S * 1_000,
            max_block_ms=PATIENCE_S * 1_000,
            reconnect_backoff_max_ms=200,
        )

    def send(self, letters: list[Letter]) -> list[Told]:
        receipts = [self._send(letter) for letter in letters]
        return [self._told(each) for each in receipts]

    def _send(self, letter: Letter) -> Any:
        run, producer = self.face.run, self.producer
        if letter.is_cancel:
            receipt = producer.cancel(
                letter.topic, schedule_id=letter.schedule_id, partition=letter.partition
            )
            return run(receipt)
        due: dict[str, Any] = {}
        if letter.due_ms >= 0:
            due["deliver_at"] = letter.due_ms
        if letter.after_ms >= 0:
            due["deliver_after"] = letter.after_ms
        if letter.schedule_id:
            due["schedule_id"] = letter.schedule_id
        return run(
            producer.send(
                letter.topic,
                letter.value,
                headers=letter.headers,
                partition=letter.partition,
                **due,
            )
        )

    def _told(self, receipt: Any) -> Told:
        try:
            done = self.face.outcome(receipt)
        except Exception as error:
            is_refused = isinstance(error, BrokerError) and error.code == INVALID_RECORD
            return Told(REFUSED if is_refused else DOUBT, error=repr(error)[:500])
        return Told(ACKED, -1 if done.is_parked else done.offset)

    def close(self) -> None:
        self.face.run(self.producer.close())
        self.face.close()


class ForeignSender:
    """A client of others, behind the face that the interop tests have of it."""

    def __init__(self, face: ClientFace) -> None:
        self.face = face
        self.producer = face.producer()

    def send(self, letters: list[Letter]) -> list[Told]:
        try:
            for letter in letters:
                self.producer.send(letter.topic, letter.partition, letter.sent_record())
            offsets = self.producer.flush()
        except Exception as error:
            # Which of them it means is not told, and a producer may keep its errors.
            self.producer.close()
            self.producer = self.face.producer()
            return [Told(DOUBT, error=repr(error)[:500])] * len(letters)
        if len(letters) == 1 and offsets:
            # Of several, some clients count on from the -1 of a batch that waits.
            offset = -1 if offsets[0] is None else offsets[0]
            return [Told(ACKED, offset)]
        return [Told(ACKED) for _ in letters]

    def close(self) -> None:
        self.producer.close()
        self.face.close()


def make_sender(name: str, addresses: str, program: JavaProgram | None) -> Sender:
    """Make a client; `ClientMissing` says why it is not there."""
    if name in OURS:
        return OurSender(name, addresses)
    if name == "java":
        assert program is not None
        return ForeignSender(JavaFace(addresses, program))
    faces: dict[str, Callable[[str], ClientFace]] = {
        "confluent-kafka": ConfluentFace,
        "kafka-python": KafkaPythonFace,
        "aiokafka": AiokafkaFace,
        "kcat": KcatFace,
    }
    face = faces[name](addresses)
    if isinstance(face, KcatFace):
        # Lost connections are what the day is about.
        face.command += ["-X", "log_level=0"]
    return ForeignSender(face)
