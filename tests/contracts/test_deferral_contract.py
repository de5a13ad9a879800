"""Records that a consumer defers: they come again, and at last go to the dead-letter topic."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.support.client.faces import SyncFace as Face

from tarry.client import ClientClosed, DecodeError, Json, SchedulingUnsupported
from tarry.testing import Tarry

BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}


class Failing:
    """A consumer whose every record fails."""

    def __init__(self, face: Face, broker: Tarry, configs: dict[str, str]) -> None:
        self.face = face
        self.run = face.run
        self.broker = broker
        self.topic = broker.topic("orders", 3, retention_ms=-1, **configs)
        self.dead = broker.topic("orders.dead")
        self.consumers: list[Any] = []
        self.consumer = self.make()

    def make(self, **settings: Any) -> Any:
        given = {"group_id": "billing", "auto_offset_reset": "earliest", **settings}
        made = self.face.Consumer(self.topic, bootstrap_servers=self.broker.bootstrap, **given)
        self.consumers.append(made)
        return made

    def write(self, value: bytes, **arguments: Any) -> None:
        with self.broker.producer() as producer:
            producer.send_and_wait(self.topic, value, **arguments)

    def next(self) -> Any:
        (record,) = self.face.take(self.consumer, 1)
        return record

    def defer(self, record: Any, after: Any = "5m", **arguments: Any) -> Any:
        arguments.setdefault("dead_letter", self.dead)
        return self.run(self.consumer.defer(record, after, **arguments))

    def close(self) -> None:
        for consumer in self.consumers:
            self.run(consumer.close())


@pytest.fixture(params=[BY_HEADER], ids=[""])
def failing(face: Face, broker: Tarry, request: pytest.FixtureRequest) -> Iterator[Failing]:
    made = Failing(face, broker, request.param)
    yield made
    made.close()


@pytest.mark.parametrize(
    "failing", [BY_HEADER, BY_TIMESTAMP], ids=["header", "timestamp"], indirect=True
)
def test_a_record_comes_again_and_at_last_to_the_dead_letter_topic(failing: Failing) -> None:
    headers = {"kind": b"new"}
    failing.write(b"coffee", key=b"7", headers=headers, timestamp=1_700)

    seen = []
    for wait in ("1m", "5m", "30m"):
        record = failing.next()
        seen.append(record)
        sent = failing.defer(record, ["1m", "5m", "30m"], attempts=3)
        assert (sent.topic, sent.partition) == (failing.topic, record.partition)
        failing.broker.clock.advance(wait)
    last = failing.next()
    given_up = failing.defer(last, ["1m", "5m", "30m"], attempts=3)

    assert given_up.topic == failing.dead
    assert [(one.key, one.value) for one in seen] == [(b"7", b"coffee")] * 3
    (dead,) = failing.broker.records(failing.dead)
    assert (dead.key, dead.value) == (b"7", b"coffee")
    assert dead.headers == [
        ("kind", b"new"),
        ("x-defer-timestamp", b"1700"),
        ("x-defer-attempt", b"3"),
        ("x-defer-topic", b"orders"),
        ("x-defer-partition", b"%d" % last.partition),
        ("x-defer-offset", b"%d" % last.offset),
    ]


@pytest.mark.parametrize("after", ["5m", timedelta(minutes=5), 300_000, ["5m"], ("5m", "1h")])
def test_a_record_does_not_come_before_its_time(failing: Failing, after: Any) -> None:
    failing.write(b"coffee")

    failing.defer(failing.next(), after)
    failing.broker.clock.advance("4m")
    before = len(failing.broker.records(failing.topic))
    failing.broker.clock.advance("1m")

    assert before == 1
    assert ("x-defer-attempt", b"1") in failing.next().headers


def test_what_was_deferred_may_be_committed(failing: Failing) -> None:
    failing.write(b"coffee")
    record = failing.next()

    failing.defer(record)
    failing.run(failing.consumer.commit(record))
    failing.run(failing.consumer.close())
    failing.broker.clock.advance("5m")
    failing.consumer = failing.make()

    again = failing.next()
    assert (again.value, again.offset) == (b"coffee", record.offset + 1)


def test_no_attempt_is_a_dead_letter_at_once(failing: Failing) -> None:
    failing.write(b"coffee")

    failing.defer(failing.next(), attempts=0)

    (dead,) = failing.broker.records(failing.dead)
    assert ("x-defer-attempt", b"0") in dead.headers


def test_codecs_of_the_consumer_do_not_change_what_is_sent_again(failing: Failing) -> None:
    failing.consumer = failing.make(group_id="others", value=Json())
    failing.write(b'{"drink":  "tea"}')

    record = failing.next()
    failing.defer(record, 0)
    again = failing.next()

    assert record.value == again.value == {"drink": "tea"}
    assert failing.broker.records(failing.topic)[-1].value == b'{"drink":  "tea"}'


def test_a_record_that_does_not_decode_goes_to_the_dead_letter_topic(failing: Failing) -> None:
    failing.consumer = failing.make(group_id="others", value=Json())
    failing.write(b"no JSON at all", partition=0)
    failing.write(b"{}", partition=0)

    with pytest.raises(DecodeError) as caught:
        failing.next()
    failing.defer(caught.value.record, attempts=0)
    caught.value.skip()

    assert failing.next().value == {}
    (dead,) = failing.broker.records(failing.dead)
    assert (dead.value, dead.headers[-1]) == (b"no JSON at all", ("x-defer-offset", b"0"))


def test_headers_of_an_earlier_delay_do_not_count_again(failing: Failing) -> None:
    headers = {"x-deliver-after": b"0", "x-sched-id": b"call-7", "x-defer-attempt": b"many"}
    failing.write(b"coffee", headers=headers)

    failing.defer(failing.next(), 0)

    names = [name for name, _ in failing.next().headers]
    assert sorted(names) == ["x-defer-attempt", "x-defer-timestamp", "x-deliver-after"]


@pytest.mark.parametrize("failing", [{}], ids=["plain"], indirect=True)
def test_a_topic_that_does_not_delay_is_refused(failing: Failing) -> None:
    failing.write(b"coffee")
    record = failing.next()

    with pytest.raises(SchedulingUnsupported, match=r"set delay\.enable=true"):
        failing.defer(record)

    assert len(failing.broker.records(failing.topic)) == 1
    # Giving it up needs no delay.
    assert failing.defer(record, attempts=0).topic == failing.dead


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"record": b"coffee"}, TypeError, "defer takes a record of this consumer, not b'coffee'"),
        ({"after": "soon"}, ValueError, "after='soon' is no duration"),
        ({"after": []}, ValueError, "after holds no duration"),
        ({"after": ["1m", None]}, TypeError, "after is of type NoneType"),
        ({"attempts": -1}, ValueError, "attempts=-1 is not between 0 and"),
        ({"attempts": True}, TypeError, "attempts=True is no whole number"),
        ({"dead_letter": None}, TypeError, "topic is of type NoneType"),
        ({"dead_letter": ""}, ValueError, "is no name for a topic"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    failing: Failing, arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    failing.write(b"coffee")
    given = {"record": failing.next(), "after": "5m", "dead_letter": failing.dead, **arguments}

    with pytest.raises(error, match=sentence):
        failing.run(failing.consumer.defer(**given))

    assert len(failing.broker.records(failing.topic)) == 1


def test_nothing_of_it_is_left_behind(failing: Failing) -> None:
    failing.write(b"coffee")
    threads = {one for one in threading.enumerate() if one.name == "tarry-sender"}
    record = failing.next()
    failing.defer(record)

    failing.run(failing.consumer.close())

    left = {one for one in threading.enumerate() if one.name == "tarry-sender"}
    assert not any(one.is_alive() for one in left - threads)
    with pytest.raises(ClientClosed):
        failing.defer(record)


def has_two(failing: Failing) -> bool:
    return len(failing.broker.records(failing.topic)) == 2


def close_in_thread(failing: Failing, record: Any) -> None:
    ended: list[BaseException] = []

    def defer() -> None:
        try:
            failing.defer(record, 0)
        except ClientClosed as error:
            ended.append(error)

    thread = threading.Thread(target=defer)
    thread.start()
    while not has_two(failing):
        assert thread.is_alive()
    failing.consumer.close()
    thread.join()

    assert len(ended) == 1


async def close_in_task(failing: Failing, record: Any) -> None:
    deferring = failing.consumer.defer(record, 0, dead_letter=failing.dead)
    task = asyncio.ensure_future(deferring)
    while not await asyncio.to_thread(has_two, failing):
        assert not task.done()
    await failing.consumer.close()

    with pytest.raises(ClientClosed):
        await task


def test_a_close_ends_a_deferral_whose_answer_is_late(failing: Failing) -> None:
    failing.write(b"coffee")
    record = failing.next()
    failing.broker.delay("Produce", 3_600)

    if type(failing.face) is Face:
        close_in_thread(failing, record)
    else:
        failing.run(close_in_task(failing, record))
