"""A producer that writes while brokers of a cluster come and go, and what a reader finds of it."""

from __future__ import annotations

import threading

from tests.support.broker_process import wait_until
from tests.support.patience import PATIENCE_S, tries

from tarry.client import Consumer, Producer
from tarry.client.errors import ClientError


def take(consumer: Consumer, count: int) -> list[tuple[int, bytes]]:
    """Partition and value of the next records, so many."""
    found: list[tuple[int, bytes]] = []
    for _ in tries():
        if len(found) >= count:
            break
        for group in consumer.poll(1.0):
            found += [(group.partition, record.value or b"") for record in group.records]
    return found


class Writer(threading.Thread):
    """An idempotent producer that writes numbers to each partition until it is told to stop."""

    def __init__(self, addresses: str, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.producer = Producer(
            bootstrap_servers=addresses,
            delivery_timeout_ms=int(PATIENCE_S) * 1_000,
            max_block_ms=int(PATIENCE_S) * 1_000,
            reconnect_backoff_max_ms=200,
        )
        self.written: list[list[bytes]] = [[] for _ in range(6)]
        self.acknowledged = [0] * 6
        self.is_over = False
        self.error: ClientError | None = None

    def run(self) -> None:
        try:
            while not self.is_over:
                receipts = []
                for index, values in enumerate(self.written):
                    values.append(b"%d" % len(values))
                    receipts.append(self.producer.send(self.topic, values[-1], partition=index))
                for index, receipt in enumerate(receipts):
                    receipt.result(PATIENCE_S)
                    self.acknowledged[index] += 1
        except ClientError as error:
            self.error = error
        self.producer.close()

    def wait_for_more(self) -> None:
        """Wait until each partition has acknowledged more than now."""
        before = list(self.acknowledged)
        wait_until(
            lambda: (
                "yes"
                if self.error is not None
                or all(now > then for now, then in zip(self.acknowledged, before, strict=True))
                else ""
            ),
            "acknowledgements of every partition",
        )

    def end(self) -> None:
        self.is_over = True
        self.join(PATIENCE_S)
        if self.error is not None:
            raise self.error
