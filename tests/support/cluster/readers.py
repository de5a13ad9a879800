"""Readers that go on while brokers of a cluster come and go: one of partitions, one in a group."""

from __future__ import annotations

import threading

from tests.support.broker_process import wait_until
from tests.support.patience import PATIENCE_S

from tarry.client import Consumer
from tarry.client.errors import ClientError

PARTITIONS = 6


class Reader(threading.Thread):
    """A consumer of all partitions of a topic; in a group, if it is given one, it commits too."""

    def __init__(self, addresses: str, topic: str, group_id: str = "") -> None:
        super().__init__()
        self.topic = topic
        self.consumer = Consumer(
            bootstrap_servers=addresses,
            group_id=group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            default_api_timeout_ms=PATIENCE_S * 1_000,
            reconnect_backoff_max_ms=200,
        )
        if not group_id:
            self.consumer.assign([(topic, index) for index in range(PARTITIONS)])
        else:
            self.consumer.subscribe([topic])
        self._commits = bool(group_id)
        self.found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        # Polls that brought records, whose positions are committed if that is done.
        self.rounds = 0
        self.is_over = False
        self.error: ClientError | None = None

    def run(self) -> None:
        try:
            while not self.is_over:
                self._read()
        except ClientError as error:
            self.error = error
        self.consumer.close()

    def _read(self) -> None:
        groups = self.consumer.poll(0.2)
        for group in groups:
            self.found[group.partition] += [record.value or b"" for record in group.records]
        if groups:
            if self._commits:
                self.consumer.commit()
            self.rounds += 1

    def wait_for_more(self) -> None:
        """Wait until more has been read, and committed, than now."""
        # A read that is under way now may have begun before.
        wanted = self.rounds + 2
        wait_until(
            lambda: "yes" if self.error is not None or self.rounds >= wanted else "",
            f"more records of {self.topic}",
        )

    def end(self, written: list[list[bytes]]) -> None:
        """End when it has read all this, and check that it has read just this."""
        count = sum(map(len, written))
        wait_until(
            lambda: "yes" if self.error is not None or sum(map(len, self.found)) >= count else "",
            f"all records of {self.topic}",
        )
        self.is_over = True
        self.join(PATIENCE_S)
        if self.error is not None:
            raise self.error
        assert self.found == written
