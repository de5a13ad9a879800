"""The fixture's broker in a process of its own: killed, paused, started again."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tarry.client import TimedOut
from tarry.testing import TarryProcess


@pytest.fixture(scope="module")
def broker() -> Iterator[TarryProcess]:
    with TarryProcess() as broker:
        yield broker


def test_a_killed_broker_comes_back_with_its_records_and_its_address(broker: TarryProcess) -> None:
    address = broker.bootstrap
    producer = broker.producer()
    producer.send("orders", b"one").result()

    broker.kill()
    receipt = producer.send("orders", b"two")
    broker.start()

    assert receipt.result().offset == 1
    assert broker.bootstrap == address
    assert [record.value for record in broker.records("orders")] == [b"one", b"two"]


def test_a_paused_broker_answers_when_it_goes_on(broker: TarryProcess) -> None:
    producer = broker.producer()
    producer.send("paused", b"one").result()

    with broker.pause():
        receipt = producer.send("paused", b"two")
        with pytest.raises(TimedOut):
            receipt.result(timeout=0.05)

    assert receipt.result().offset == 1


def test_what_cannot_be_is_told(broker: TarryProcess) -> None:
    with pytest.raises(RuntimeError, match="the broker runs already: kill or stop it first"):
        broker.start()
    broker.stop()
    with pytest.raises(RuntimeError, match="the broker does not run: start it first"):
        broker.kill()
    with pytest.raises(RuntimeError, match=r"the broker did not start: .*log\.dirs"):
        TarryProcess({"log.dirs": os.devnull})
