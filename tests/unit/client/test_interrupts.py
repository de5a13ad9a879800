"""Ctrl-C in the middle of a call: it waits until nothing is half done, and takes nothing along."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from tests.support.client.scripted_cluster import ScriptedCluster
from tests.support.client.scripted_consumer import consumer_of

from tarry.client.sync.interrupts import Interrupts

pytestmark = pytest.mark.usefixtures("interruptible")


def interrupt_next_nudge(consumer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the consumer sends its next fetch, with records in its hands."""

    def nudge(interrupts: Interrupts) -> None:
        interrupts.hold()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(consumer._driver, "nudge", nudge)


def test_an_interrupt_comes_out_when_it_is_released() -> None:
    interrupts = Interrupts()
    interrupts.hold()
    signal.raise_signal(signal.SIGINT)
    assert interrupts.has_come

    with pytest.raises(KeyboardInterrupt):
        interrupts.release()

    assert not interrupts.has_come
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_call_has_taken_is_given_back_before_an_interrupt_comes_out() -> None:
    given_back: list[bool] = []
    interrupts = Interrupts()
    interrupts.hold()
    signal.raise_signal(signal.SIGINT)

    def give_back() -> None:
        # Another Ctrl-C waits until all of it is given back.
        signal.raise_signal(signal.SIGINT)
        given_back.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupts.release_or(give_back)

    assert given_back == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_an_interrupt_nothing_is_given_back() -> None:
    interrupts = Interrupts()
    interrupts.hold()

    interrupts.release_or(pytest.fail)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_calls_in_calls_hold_for_themselves() -> None:
    outer, inner = Interrupts(), Interrupts()
    outer.hold()
    inner.hold()
    signal.raise_signal(signal.SIGINT)
    inner.release()

    with pytest.raises(KeyboardInterrupt):
        outer.release()


def test_other_threads_hold_nothing() -> None:
    handlers: list[Any] = []

    def hold() -> None:
        interrupts = Interrupts()
        interrupts.hold()
        handlers.append(signal.getsignal(signal.SIGINT))
        interrupts.release()

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()

    assert handlers == [signal.default_int_handler]


def test_a_handler_that_is_set_meanwhile_stays() -> None:
    interrupts = Interrupts()
    interrupts.hold()
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupts.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_records_that_an_interrupt_meets_come_with_the_next_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(*(b"%d" % number for number in range(4)))
    consumer = consumer_of(cluster, auto_offset_reset="earliest")
    consumer.assign([("t", 0)])
    consumer.poll(1.0, max_records=1)
    with monkeypatch.context() as nudged:
        interrupt_next_nudge(consumer, nudged)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(1.0, max_records=2)

    (group,) = consumer.poll(1.0)

    assert [record.value for record in group.records] == [b"1", b"2", b"3"]
