"""Idempotent producer of librdkafka that notes when it is told that a record is kept."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterable
from typing import Self

from cluster_nodes import READY_S_MAX, Cluster
from confluent_kafka import KafkaError, Message, Producer


class Acknowledgements:
    """Times at which an idempotent producer was told that a record is kept.

    Inside the block a thread of its own writes a record a millisecond, whatever is done to brokers.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.times: list[float] = []
        self._topic = topic
        self._must_end = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.addresses,
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 20,
            }
        )

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.times.append(time.monotonic())

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._must_end.set()
        self._writer.join()
        self._producer.flush(READY_S_MAX)

    def _write(self) -> None:
        while not self._must_end.is_set():
            with contextlib.suppress(BufferError):
                self._producer.produce(
                    self._topic, b"x", partition=0, on_delivery=self._on_delivery
                )
            self._producer.poll(0.001)


def longest_gap_s(times: Iterable[float]) -> float:
    """Return the longest time between two of these moments, in s."""
    return max(after - before for before, after in itertools.pairwise(sorted(times)))
