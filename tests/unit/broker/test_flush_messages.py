"""flush.messages: how many records of a topic may be lost under flush.policy=os."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, a_batch, produced, values_in

from tarry.base import errors
from tarry.cluster.configs.config_changes import DELETE, SET
from tarry.simulation.by_hand import BrokerByHand

EVERY_RECORD = {"flush_messages": "1"}


def someone(policy: str = "os", **configs: str) -> Operator:
    operator = Operator(BrokerByHand({"flush.policy": policy}))
    operator.create(ORDERS, **configs)
    return operator


@pytest.mark.parametrize("acks", [1, -1])
def test_one_means_that_a_record_is_acknowledged_once_it_is_flushed(acks: int) -> None:
    user = someone(**EVERY_RECORD)

    user.send_produce(a_batch(b"a"), acks=acks)
    before = user.answers()
    user.hand.turn(*user.hand.disk.complete_flushes())
    (after,) = user.answers()

    assert before == []
    assert produced(after)[0].error_code == errors.NONE


def test_one_record_that_was_acknowledged_survives_a_power_loss() -> None:
    user = someone(**EVERY_RECORD)
    user.produce(a_batch(b"a"))

    user.hand.crash()

    assert values_in(Operator(user.hand).fetch(0)) == [b"a"]


def test_a_flush_begins_when_so_many_records_are_not_flushed() -> None:
    user = someone(flush_messages="3")

    begun = []
    for _ in range(7):
        user.send_produce(a_batch(b"a"))
        begun.append(user.hand.broker.flushes.flush_id >= 0)
        user.hand.turn(*user.hand.disk.complete_flushes())

    assert begun == [False, False, True, False, False, True, False]
    assert len(user.answers()) == 7


def test_without_it_nothing_is_flushed_under_os() -> None:
    user = someone()

    user.send_produce(a_batch(*[b"a"] * 100))

    assert user.hand.broker.flushes.flush_id < 0
    assert len(user.answers()) == 1


def test_it_changes_while_records_are_not_flushed() -> None:
    user = someone()
    user.produce(a_batch(b"before"))

    user.change(TOPIC, ORDERS, ("flush.messages", SET, "1"))
    user.hand.settle()
    flushed = user.hand.broker.topics[ORDERS].partitions[0].log.flushed_offset
    user.change(TOPIC, ORDERS, ("flush.messages", DELETE, None))
    user.send_produce(a_batch(b"after"))

    assert flushed == 1
    assert len(user.answers()) == 1
    assert values_in(user.fetch(0)) == [b"before", b"after"]


def test_under_commit_everything_is_flushed_as_ever() -> None:
    user = someone("commit", flush_messages="1000")

    user.send_produce(a_batch(b"a"))

    assert user.answers() == []
    user.hand.settle()
    assert len(user.answers()) == 1
