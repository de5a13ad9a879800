"""A kind of waiting request that the tests add, through the list of parts and the route table."""

from __future__ import annotations

import logging
from functools import partial
from random import Random

import pytest
from tests.support.broker.awaited_offsets import (
    AWAIT_OFFSET,
    AwaitedOffsets,
    AwaitOffsetRequest,
    serve_awaited_offsets,
)
from tests.support.broker.broker_user import ORDERS, User, a_batch

from tarry.base import errors
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import SERVICES, start_broker
from tarry.purgatory.operation import DelayedOperation
from tarry.purgatory.purgatory import Purgatory
from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.records.workload import RecordsWorkload
from tarry.simulation.workload_run import WorkloadRun

ANSWER_BYTES = 4 + 4 + 2


class AwaitingUser(User):
    """A user that may also wait for an offset."""

    def __init__(self) -> None:
        services = [*SERVICES, serve_awaited_offsets]
        super().__init__(BrokerByHand(start=partial(start_broker, services=services)))
        self.create(ORDERS)
        self.other = self.hand.connect()

    @property
    def awaited(self) -> Purgatory:
        return next(
            each for each in self.hand.broker.parts.purgatories() if each.name == "AwaitOffset"
        )

    def wait_for(self, offset: int, *, timeout_ms: int = 10_000) -> None:
        """Ask on a connection of its own to be told when the offset is there."""
        self.other.send(AWAIT_OFFSET, 0, AwaitOffsetRequest(ORDERS, 0, offset, timeout_ms))

    def codes(self) -> list[int]:
        """The error codes of the answers so far."""
        sent = self.hand.transport.sent.get(self.other.connection_id, b"")
        answers = [sent[at : at + ANSWER_BYTES] for at in range(0, len(sent), ANSWER_BYTES)]
        return [int.from_bytes(answer[8:], "big") for answer in answers]


@pytest.fixture
def user() -> AwaitingUser:
    return AwaitingUser()


def test_it_waits_and_is_completed_by_its_key(user: AwaitingUser) -> None:
    user.wait_for(2)

    user.produce(a_batch(b"a"))
    after_one = user.codes()
    user.produce(a_batch(b"b"))

    assert after_one == []
    assert user.codes() == [errors.NONE]
    assert user.awaited.watched == 0


def test_it_expires_at_its_deadline(user: AwaitingUser) -> None:
    user.wait_for(1, timeout_ms=500)

    user.hand.turn(after_ms=499)
    before = user.codes()
    user.hand.turn(after_ms=2)

    assert before == []
    assert user.codes() == [errors.REQUEST_TIMED_OUT]


def test_it_is_counted(user: AwaitingUser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    user.wait_for(1, timeout_ms=100_000)

    for _ in range(61):
        user.hand.turn(after_ms=1_000)

    line = "purgatory AwaitOffset: watched 1, delayed 1, completed 0, expired 0"
    assert line in caplog.messages


def test_it_ends_with_its_connection(user: AwaitingUser) -> None:
    user.wait_for(1)

    user.hand.broker.answers.close(
        user.hand.broker.answers.connections[user.other.connection_id], "the peer is gone"
    )

    assert user.awaited.delayed == 0


def test_what_it_could_do_at_once_is_work_left(user: AwaitingUser) -> None:
    user.wait_for(1)
    user.hand.settle()
    at_rest = not user.hand.broker.has_work_left()

    user.hand.broker.parts.on_moved(user.hand.broker.topics[ORDERS].partitions[0])

    assert at_rest
    assert user.hand.broker.has_work_left()


class Forgotten(DelayedOperation):
    """Waits for ever."""

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Tells nobody."""


class ForgetfulWorkload(RecordsWorkload):
    """Leaves an operation behind in each life of the broker."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.duration_ms = 2_000

    def on_life_begins(self, broker: Broker) -> None:
        super().on_life_begins(broker)
        operation = Forgotten(broker.this_turn.now_ms + 1_000_000_000)
        broker.parts.add(AwaitedOffsets(broker.timer)).watch(operation, ["no key"])


def test_the_simulation_sees_that_it_waits_for_nobody() -> None:
    sentences = WorkloadRun(ForgetfulWorkload, 1).run()

    assert sentences[0] == (
        "1 operations wait in purgatory AwaitOffset when every client has its answers"
    )
