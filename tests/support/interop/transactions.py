"""Transactions that Java writes to Apache Kafka, step by step."""

from __future__ import annotations

import time
import uuid

from tests.support.broker_process import wait_until
from tests.support.interop.java_face import JavaProducer, JavaProgram
from tests.support.interop.records_sent import SentRecord

from tarry.client import Consumer


class Transactions:
    """A transactional producer of Java that writes to one partition."""

    def __init__(self, program: JavaProgram, address: str, topic: str, codec: str) -> None:
        self.program = program
        self.address = address
        self.topic = topic
        name = f"transactions-{uuid.uuid4().hex[:8]}"
        settings = {
            "transactional.id": name,
            # Longer than any test waits: the coordinator aborts what is open for too long.
            "transaction.timeout.ms": "900000",
            "compression.type": codec,
            "batch.size": "2000",
        }
        self.producer = JavaProducer(program, address, settings)
        self.step("init")

    def step(self, step: str) -> None:
        self.program.ask("transaction", producer=self.producer.producer, step=step)

    def end(self, step: str) -> None:
        """Commit or abort; the marker is in the log afterwards.

        Apache Kafka answers when the transaction's end is decided and writes the markers later.
        """
        with Consumer(bootstrap_servers=self.address) as consumer:
            before = consumer.end_offsets([(self.topic, 0)])
            self.step(step)
            wait_until(
                lambda: "written" if consumer.end_offsets([(self.topic, 0)]) != before else "",
                f"the marker of a {step}",
            )

    def write(self, *values: bytes) -> None:
        """Write records into the open transaction; they are in the log afterwards."""
        # Of today, because Kafka removes what is older than a week.
        now_ms = time.time_ns() // 1_000_000
        for value in values:
            self.producer.send(self.topic, 0, SentRecord(value, None, (), now_ms))
        self.producer.flush()
