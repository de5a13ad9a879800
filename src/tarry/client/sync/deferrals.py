"""Deferrals: the producer of a consumer that defers records, made with the first such record."""

from __future__ import annotations

import threading

from tarry.client.errors import ClientClosed
from tarry.client.face.deferral import Deferral, deferring_settings
from tarry.client.settings import ConsumerSettings
from tarry.client.sync.producer import Producer
from tarry.client.sync.receipt import Receipt


class Deferrals:
    """Deferrals of one consumer, for all threads of a program."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        self._producer: Producer[bytes, bytes] | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def send(self, deferral: Deferral) -> Receipt:
        """Send a record to its topic, and wait until the broker has it."""
        return self._open().send_and_wait(
            deferral.topic,
            deferral.value,
            key=deferral.key,
            headers=deferral.headers,
            partition=deferral.partition,
            deliver_after=deferral.after_ms,
        )

    def _open(self) -> Producer[bytes, bytes]:
        with self._lock:
            if self._is_closed:
                raise ClientClosed("the consumer was closed")
            if self._producer is None:
                self._producer = Producer(deferring_settings(self._settings))
            return self._producer

    def close(self) -> None:
        """Close without waiting; a call that waits for a record gets an error that leaves its fate
        open."""
        with self._lock:
            self._is_closed = True
            if self._producer is not None:
                self._producer.abort()
