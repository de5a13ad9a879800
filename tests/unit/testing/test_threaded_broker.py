"""A broker in a thread of the test's process, used without pytest's fixtures."""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
from collections.abc import Iterator

import pytest
from tests.support.patience import PATIENCE_S

from tarry.client import Consumer, Listener
from tarry.runtime.thread import BrokerStopped
from tarry.testing import Tarry


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    with Tarry() as broker:
        yield broker


def test_what_is_sent_is_read(broker: Tarry) -> None:
    topic = broker.topic("sent", partitions=2)

    broker.send(topic, b"one", b"two", partition=1)
    broker.send(topic, b"three", partition=0)

    records = broker.records(topic)
    assert [(one.partition, one.value) for one in records] == [
        (0, b"three"),
        (1, b"one"),
        (1, b"two"),
    ]


def test_clients_of_the_fixture_find_the_broker(broker: Tarry) -> None:
    with broker.producer() as producer:
        producer.send("mine", b"hello")

    with broker.consumer("mine", group_id="readers") as consumer:
        assert next(iter(consumer)).value == b"hello"
        consumer.finish()

    broker.wait_for_lag("readers")


def test_a_wait_says_how_far_it_came(broker: Tarry) -> None:
    broker.send("few", b"one")

    with pytest.raises(AssertionError, match=r"topic 'few' has [01] of 2 records after 0\.05 s"):
        broker.wait_for_records("few", 2, timeout=0.05)
    with pytest.raises(AssertionError, match=r"group 'nobody' reads nothing after 0\.05 s"):
        broker.wait_for_lag("nobody", timeout=0.05)


def test_settings_of_topics_and_brokers_are_written_either_way(broker: Tarry) -> None:
    topic = broker.topic("short", retention_ms=1000, **{"cleanup.policy": "delete"})

    configs = {entry.name: entry.value for entry in broker.admin.describe_topic_configs(topic)}

    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("1000", "delete")


def test_the_process_stays_as_it_is() -> None:
    def state() -> tuple[object, ...]:
        return (
            [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
            resource.getrlimit(resource.RLIMIT_NOFILE),
            gc.get_threshold(),
            gc.get_freeze_count(),
            threading.active_count(),
            len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
        )

    with Tarry() as broker:
        broker.send("warm", b"up")
    before = state()

    with Tarry() as broker:
        producer = broker.producer()
        producer.send("orders", b"one")
        producer.flush()
        consumer = broker.consumer("orders", group_id="readers")
        assert next(iter(consumer)).value == b"one"
        directory = broker._data.path

    assert state() == before
    assert not os.path.exists(directory)


def sockets() -> list[str]:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sorted(
        target
        for link in links
        if os.path.lexists(link) and (target := os.readlink(link)).startswith("socket:")
    )


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_lets_go_and_the_parent_goes_on() -> None:
    before = sockets()
    with Tarry() as broker:
        broker.send("orders", b"one")
        process_id = os.fork()
        if process_id == 0:
            code = 1
            try:
                with pytest.raises(BrokerStopped, match="from which this one was forked"):
                    broker.heal()
                broker.close()
                code = 0 if set(sockets()) <= set(before) else 2
            finally:
                os._exit(code)

        _, status = os.waitpid(process_id, 0)
        broker.send("orders", b"two")

        assert os.waitstatus_to_exitcode(status) == 0
        assert [record.value for record in broker.records("orders")] == [b"one", b"two"]


def test_a_broker_that_has_ended_says_so() -> None:
    broker = Tarry()
    broker.close()

    with pytest.raises(BrokerStopped, match="the broker does not run any more: it was stopped"):
        broker.heal()
    broker.close()
    assert repr(broker).endswith(", closed>")


def test_a_callback_that_raises_in_a_close_leaves_no_client_open() -> None:
    class Failing(Listener):
        def on_revoked(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
            raise LookupError("a mistake of the test")

    with pytest.raises(LookupError, match="a mistake of the test"), Tarry() as broker:
        topic = broker.topic("closed")
        producer = broker.producer()
        member = broker.consumer(topic, group_id="g", listener=Failing())
        other = broker.consumer()
        broker.send(topic, b"one")
        assert member.poll(PATIENCE_S)

    for client in (producer, member, other):
        assert "closed" in repr(client)
