"""Faces that are closed: in any state, by any error, in any order they leave no thread, descriptor
or call at the end of the process behind."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.client.programs import make_topic
from tests.support.patience import PATIENCE_S

from tarry.base.errors import InvalidSetting
from tarry.client import (
    Admin,
    ClientClosed,
    ClientError,
    ConcurrentUse,
    Consumer,
    Listener,
    Producer,
    Receipt,
    TimedOut,
)
from tarry.client.face.at_exit import calls_waiting

TOPIC = "ends"

# No member waits for one of an earlier test, which has not left its group.
GROUPS = itertools.count()


class Place:
    """Addresses to connect to: a broker, one who accepts and never answers, and nobody."""

    def __init__(self, broker: BrokerProcess, silent: socket.socket) -> None:
        self.broker = broker.address
        self.silent = f"127.0.0.1:{silent.getsockname()[1]}"
        self.nobody = "127.0.0.1:1"


@pytest.fixture(scope="module")
def place(shared_broker: BrokerProcess) -> Iterator[Place]:
    make_topic(shared_broker, TOPIC)
    with Producer(bootstrap_servers=shared_broker.address) as producer:
        for number in range(10):
            producer.send(TOPIC, b"%d" % number)
    # The first one leaves what Python keeps for all of them.
    Consumer().close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield Place(shared_broker, silent)


def held() -> Counter[str]:
    """Threads by name, what descriptors stand for, and calls that wait for the end."""
    found = Counter(thread.name for thread in threading.enumerate())
    for number in os.listdir("/proc/self/fd"):
        # The listing's own is gone.
        with contextlib.suppress(FileNotFoundError):
            found[os.readlink(f"/proc/self/fd/{number}").partition(":[")[0]] += 1
    found["at exit"] = calls_waiting()
    return found


def in_thread(call: Callable[[], object], *expected: type[BaseException]) -> threading.Thread:
    """Start a call that ends in one of these errors, or well."""

    def run() -> None:
        with contextlib.suppress(*expected):
            call()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def member(place: Place, **more: Any) -> Consumer:
    return Consumer(
        TOPIC,
        bootstrap_servers=place.broker,
        group_id=f"ends-{next(GROUPS)}",
        auto_offset_reset="earliest",
        **more,
    )


# --- States


def made_and_never_used(place: Place) -> None:
    for one in (Producer(), Consumer("t", group_id="g", close_timeout_ms=1), Admin()):
        one.close()
        one.close()


def nobody_listens(place: Place) -> None:
    producer = Producer(bootstrap_servers=place.nobody, max_block_ms=20)
    with pytest.raises(ClientError):
        producer.send(TOPIC, b"never")
    with Admin(bootstrap_servers=place.nobody) as admin, pytest.raises(TimedOut):
        admin.list_topics(timeout=0.02)
    with Consumer(TOPIC, bootstrap_servers=place.nobody, group_id="g", close_timeout_ms=1) as one:
        one.poll(0.02)
    producer.close()


def the_broker_never_answers(place: Place) -> None:
    producer = Producer(bootstrap_servers=place.silent, max_block_ms=20)
    with pytest.raises(ClientError):
        producer.send(TOPIC, b"never")
    consumer = Consumer(TOPIC, bootstrap_servers=place.silent, group_id="g", close_timeout_ms=20)
    consumer.poll(0.02)
    producer.close()
    consumer.close()


def a_name_is_being_looked_up(place: Place) -> None:
    producer = Producer(bootstrap_servers="no.such.host.invalid:9092", max_block_ms=1)
    with pytest.raises(ClientError):
        producer.send(TOPIC, b"never")
    producer.close()


def records_are_under_way(place: Place) -> None:
    producer = Producer(bootstrap_servers=place.broker, linger_ms=60_000)
    producer.send(TOPIC, b"first").result()
    receipt = producer.send(TOPIC, b"given up")
    producer.abort()
    with pytest.raises(ClientClosed):
        receipt.result()


def the_block_fails(place: Place) -> None:
    for error in (ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit):
        with (
            pytest.raises(error),
            Producer(bootstrap_servers=place.broker) as producer,
            member(place) as consumer,
            Admin(bootstrap_servers=place.broker) as admin,
        ):
            producer.send(TOPIC, b"v")
            consumer.poll(0.0)
            admin.list_topics()
            raise error


def settings_are_refused(place: Place) -> None:
    with pytest.raises(InvalidSetting):
        Producer(acks="some")
    with pytest.raises(ClientError):
        Consumer("without-a-group")


def another_thread_waits(place: Place) -> None:
    producer = Producer(bootstrap_servers=place.silent)
    admin = Admin(bootstrap_servers=place.silent)
    consumer = member(place)
    threads = [
        in_thread(lambda: producer.send(TOPIC, b"never"), ClientClosed),
        in_thread(admin.list_topics, ClientClosed),
        in_thread(lambda: [None for _ in iter(lambda: consumer.poll(60.0), None)], ClientClosed),
    ]
    wait_until(lambda: "yes" if consumer.group.state == "Stable" else "", "the member")
    for one in (consumer, admin, producer):
        one.close() if one is not producer else producer.abort()
    for thread in threads:
        thread.join(PATIENCE_S)


def another_thread_is_in_a_callback(place: Place) -> None:
    is_inside, is_closed = threading.Event(), threading.Event()

    class Slow(Listener):
        def on_assigned(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
            is_inside.set()
            is_closed.wait(PATIENCE_S)

    consumer = member(place, listener=Slow())
    poller = in_thread(lambda: consumer.poll(60.0), ClientClosed)
    is_inside.wait(PATIENCE_S)
    consumer.close()
    is_closed.set()
    poller.join(PATIENCE_S)


def an_iteration_is_left_alone(place: Place) -> None:
    consumer = member(place)
    records = iter(consumer)
    next(records)
    consumer.close()
    with pytest.raises(ClientClosed):
        for _ in records:
            pass


def a_callback_closes(place: Place) -> None:
    class Closing(Listener):
        def on_assigned(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
            consumer.close()

    consumer = member(place, listener=Closing())
    with pytest.raises(ConcurrentUse):
        consumer.poll(PATIENCE_S)
    consumer.close()

    def close(receipt: Receipt) -> None:
        producer.close()

    producer = Producer(bootstrap_servers=place.broker, on_delivery=close)
    producer.send(TOPIC, b"v")
    wait_until(lambda: "yes" if "closed" in repr(producer) else "", "the end")


def nobody_closes(place: Place) -> None:
    with pytest.warns(ResourceWarning, match="was not closed"):
        Producer(bootstrap_servers=place.broker).send(TOPIC, b"v")
        gc.collect()
    with pytest.warns(ResourceWarning, match="was not closed"):
        member(place).poll(0.5)
        gc.collect()
    with pytest.warns(ResourceWarning, match="was not closed"):
        Admin(bootstrap_servers=place.broker).list_topics()
        gc.collect()


def callbacks_raise(place: Place) -> None:
    class Failing(Listener):
        def on_revoked(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
            raise ZeroDivisionError

    consumer = member(place, listener=Failing())
    next(iter(consumer))
    with pytest.raises(ZeroDivisionError):
        consumer.close()


STATES = [
    made_and_never_used,
    nobody_listens,
    the_broker_never_answers,
    a_name_is_being_looked_up,
    records_are_under_way,
    the_block_fails,
    settings_are_refused,
    another_thread_waits,
    another_thread_is_in_a_callback,
    an_iteration_is_left_alone,
    a_callback_closes,
    nobody_closes,
    callbacks_raise,
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_face_that_was_closed_leaves_nothing(
    place: Place, state: Callable[[Place], None]
) -> None:
    gc.collect()
    before = held()

    state(place)

    gc.collect()
    # A thread that looks a name up ends when the system has answered.
    wait_until(lambda: "" if held() - before else "no more", f"the end of all but {before}")


def test_a_close_by_another_thread_commits_what_is_finished_and_leaves(place: Place) -> None:
    group = f"ends-{next(GROUPS)}"
    reader = Consumer(
        TOPIC, bootstrap_servers=place.broker, group_id=group, auto_offset_reset="earliest"
    )
    read: list[int] = []
    has_read = threading.Event()

    def read_all() -> None:
        for record in reader:
            read.append(record.offset)
            if len(read) == 10:
                has_read.set()

    thread = in_thread(read_all, ClientClosed)
    assert has_read.wait(PATIENCE_S)
    reader.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()

    with Admin(bootstrap_servers=place.broker) as admin:
        description = admin.describe_groups([group])[group]
        committed = admin.group_offsets([group])[group]
    assert not isinstance(description, ClientError) and not isinstance(committed, ClientError)
    assert (description.state, description.members) == ("Empty", [])
    # The record in hand is finished only if the poll for the next one had begun.
    assert committed[TOPIC, 0].offset in (len(read) - 1, len(read))
    with pytest.raises(ClientClosed):
        reader.poll()


def test_only_one_thread_calls_back_at_a_time_however_long_it_takes(place: Place) -> None:
    callers: list[str] = []
    other = threading.Thread(target=lambda: None)

    def call(receipt: Receipt) -> None:
        nonlocal other
        callers.append(threading.current_thread().name)
        if len(callers) == 1:
            # A close that has waited long enough for this call does the same.
            other = threading.Thread(target=producer._driver.tell_users, name="other")
            other.start()
            other.join(PATIENCE_S)

    producer = Producer(bootstrap_servers=place.broker, on_delivery=call)
    for number in range(3):
        producer.send(TOPIC, b"%d" % number)
    producer.close()

    assert callers == ["tarry-sender"] * 3
    assert not other.is_alive()


FORGETFUL = """
import asyncio, sys
from tarry.client import aio

kept = []

async def main():
    producer = aio.Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
    await producer.partition_count(sys.argv[2])
    for number in range(1000):
        await producer.send(sys.argv[2], b"x", partition=0)
    if sys.argv[3] == "kept":
        kept.append(producer)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["kept", "forgotten"])
def test_an_asyncio_producer_that_is_not_closed_tells_what_is_lost(place: Place, how: str) -> None:
    program = [sys.executable, "-W", "ignore", "-c", FORGETFUL, place.broker, TOPIC, how]
    ended = subprocess.run(program, capture_output=True, timeout=PATIENCE_S, text=True, check=True)

    assert ended.stderr.splitlines() == [
        "tarry: an aio.Producer was not closed, and 1000 records were not delivered: "
        "use `async with`, or await its close()"
    ]


def test_a_name_is_looked_up_where_no_thread_starts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    port = place.broker.rpartition(":")[2]

    with Admin(bootstrap_servers=f"localhost:{port}") as admin:
        names = [topic.name for topic in admin.list_topics()]

    assert TOPIC in names
