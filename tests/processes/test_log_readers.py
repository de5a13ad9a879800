"""A broker whose standard error output is a pipe that nobody reads, or reads late."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.raw_client import RawClient, one_batch

MakeBroker = Callable[[], BrokerProcess]


class FullPipe:
    """A pipe that takes no byte more until `read_until` makes room."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        for size in (4_096, 1):
            try:
                while True:
                    os.write(self.writing, b"x" * size)
            except BlockingIOError:
                continue
        os.set_blocking(self.writing, True)

    def read_until(self, words: bytes) -> None:
        """Read until these words have come."""
        data = b""
        while words not in data:
            data = data[-len(words) :] + os.read(self.reading, 65_536)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def pipe() -> Iterator[FullPipe]:
    made = FullPipe()
    yield made
    made.close()


def test_produces_are_served_while_nobody_reads_the_log(
    make_broker: MakeBroker, pipe: FullPipe
) -> None:
    broker = make_broker()
    broker.start(stderr=pipe.writing)
    with RawClient(broker.port) as client:
        for number in range(20):
            client.create_topic(f"topic-{number}")

            produced = client.produce(one_batch(b"value"), f"topic-{number}")

            assert (produced.error_code, produced.base_offset) == (0, 0)

    pipe.read_until(b"topic-19")


def test_a_broker_whose_log_nobody_reads_stops_cleanly(
    make_broker: MakeBroker, pipe: FullPipe
) -> None:
    broker = make_broker()
    broker.start(stderr=pipe.writing)

    broker.stop_cleanly()
