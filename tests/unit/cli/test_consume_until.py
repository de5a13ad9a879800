"""`tarry consume --follow --to` with a time that is still to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from tarry.cli import reading
from tarry.cli.consume import consume
from tarry.testing import Tarry

# In UTC: 2096-10-02 07:06:40.
TO = "2096-10-02T07:06:40Z"
TO_MS = 4_000_000_000_000


class Clock:
    """The module `time` of a reading, whose calendar is set by hand."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, looks_before: int) -> None:
        self._looks_before = looks_before
        # Done when the time is over, right before the reading sees that.
        self.at_end: Callable[[], object] = lambda: None

    def time(self) -> float:
        if self._looks_before > 0:
            self._looks_before -= 1
            return TO_MS / 1000 - 1
        self.at_end()
        self.at_end = lambda: None
        return TO_MS / 1000


@pytest.fixture
def broker() -> Iterator[Tarry]:
    with Tarry() as made:
        yield made


def send(broker: Tarry, *records: tuple[bytes, int], partition: int = 0) -> None:
    with broker.producer() as producer:
        for value, timestamp in records:
            producer.send("t", value, timestamp=timestamp, partition=partition)


def run(broker: Tarry) -> Any:
    words = ["-b", broker.bootstrap, "t", "--follow", "--to", TO]
    return CliRunner().invoke(consume, words)


def test_a_later_record_ends_it_and_is_not_printed(broker: Tarry) -> None:
    broker.topic("t", message_timestamp_after_max_ms=2**62, retention_ms=-1)
    send(broker, (b"before", TO_MS - 1))
    send(broker, (b"later", TO_MS), (b"before, behind it", TO_MS - 1))

    result = run(broker)

    assert (result.exit_code, result.stdout) == (0, "before\n")


def test_it_ends_when_the_time_has_come(broker: Tarry, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.topic("t", partitions=2, message_timestamp_after_max_ms=2**62, retention_ms=-1)
    send(broker, (b"one", TO_MS - 2))
    clock = Clock(looks_before=2)
    clock.at_end = lambda: send(broker, (b"two", TO_MS - 1), partition=1)
    monkeypatch.setattr(reading, "time", clock)

    result = run(broker)

    assert result.exit_code == 0
    assert sorted(result.stdout.split()) == ["one", "two"]
