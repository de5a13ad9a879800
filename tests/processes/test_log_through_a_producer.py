"""A log that is written to a topic, by the producer whose own warnings it takes."""

from __future__ import annotations

import logging
import threading

import pytest
from tests.support.patience import PATIENCE_S

from tarry.client import ClientError, Producer
from tarry.client.core import reminder

NOBODY = "127.0.0.1:1"


class TopicHandler(logging.Handler):
    """Handler that sends what is logged; fails as user code may."""

    def __init__(self, producer: Producer) -> None:
        super().__init__()
        self.producer = producer
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())
        self.producer.metrics()
        self.producer.send("logs", record.getMessage().encode())


def test_a_producer_may_be_used_by_whoever_listens_to_its_warnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reminder, "LOOK_MS", 20)
    monkeypatch.setattr(reminder, "QUIET_MS", 40)
    raised: list[BaseException] = []

    def use(block_ms: int) -> bool:
        """Send in vain for so long; whether something was heard."""
        settings = {"bootstrap.servers": NOBODY, "reconnect.backoff.ms": 10}
        producer = Producer(settings, max_block_ms=block_ms)
        handler = TopicHandler(producer)
        log = logging.getLogger(reminder.LOGGER)
        log.addHandler(handler)
        try:
            producer.send("t", b"x")
        except ClientError as error:
            raised.append(error)
        finally:
            log.removeHandler(handler)
            producer.abort()
        return bool(handler.heard)

    def use_until_heard() -> None:
        # On a busy machine a short time is over before anything was tried.
        assert any(use(block_ms) for block_ms in (150, 1_500, 15_000, 150_000))

    # A thread that hangs fails the test and does not hold it up.
    thread = threading.Thread(target=use_until_heard, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)

    assert not thread.is_alive()
    assert raised
