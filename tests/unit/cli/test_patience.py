"""How `tarry produce` waits for a cluster that takes nothing: not in silence, and not for ever."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tarry.cli.input import Shape, read_pieces
from tarry.cli.patience import Patience
from tarry.cli.sending import RecordTarget, Sending, SendingFailed
from tarry.client.errors import BufferFull, DeliveryTimedOut
from tarry.client.settings import ProducerSettings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def looks(patience: Patience, clock: Clock, seconds: float, settled: int = 0) -> None:
    """Look twice a second, as long as that."""
    for _ in range(int(seconds * 2)):
        clock.now += 0.5
        patience.look(settled, is_waiting=True, trouble="too few replicas")


def test_the_trouble_is_told_once_after_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    patience = Patience(60, clock)

    clock.now += 0.4
    patience.look(0, is_waiting=True, trouble="too few replicas")
    assert capsys.readouterr().err == ""

    looks(patience, clock, 50)
    assert capsys.readouterr().err == "tarry: waiting: too few replicas\n"


def test_without_progress_it_gives_up_in_the_time_given() -> None:
    clock = Clock()
    patience = Patience(5, clock)
    looks(patience, clock, 4.5)

    with pytest.raises(DeliveryTimedOut, match=r"acknowledged for 5 s.*too few replicas"):
        looks(patience, clock, 0.5)


def test_progress_begins_the_time_anew() -> None:
    clock = Clock()
    patience = Patience(5, clock)

    for settled in range(1, 10):
        looks(patience, clock, 4.5, settled)


def test_an_input_that_pauses_is_waited_for_without_end() -> None:
    clock = Clock()
    patience = Patience(5, clock)

    for _ in range(100):
        clock.now += 60
        patience.look(3, is_waiting=False, trouble="no broker answers")


def test_it_looks_around_while_an_endless_input_brings_nothing() -> None:
    source, sink = os.pipe()
    looked: list[int] = []

    def look() -> None:
        looked.append(1)
        if len(looked) == 3:
            os.close(sink)

    with open(source, "rb") as stream:
        assert list(read_pieces(stream, b"\n", look)) == []

    assert len(looked) == 3


class StuckProducer:
    """A producer whose buffer is full and whose broker takes nothing."""

    settled = 0
    acknowledged = 0
    is_waiting = True
    settings = ProducerSettings()
    trouble = "too few replicas"

    def __init__(self, tick: Callable[[], None]) -> None:
        self.tick = tick
        self.is_aborted = False

    def send(self, *arguments: object, **options: object) -> None:
        self.tick()
        raise BufferFull("full")

    def flush(self, timeout: float) -> None:
        self.tick()
        raise DeliveryTimedOut("not all")

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize("is_sending", [True, False], ids=["sending", "flushing"])
def test_a_broker_that_takes_nothing_is_told_and_ends_the_command(
    is_sending: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()

    def tick() -> None:
        clock.now += 0.5

    producer = StuckProducer(tick)
    sending = Sending(producer, RecordTarget("t"), None, Patience(10, clock))  # type: ignore[arg-type]

    def send_all() -> None:
        if is_sending:
            sending.send_pieces([b"a"], Shape())

    with pytest.raises(SendingFailed, match="gave up: no record was acknowledged for 10 s"):
        sending.run(send_all)

    assert producer.is_aborted
    assert capsys.readouterr().err == "tarry: waiting: too few replicas\n"
