"""DescribeProducers tells the last sequence of both logs, and of what counts in them."""

from __future__ import annotations

from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.schedule_user import ScheduleUser

from tarry.protocol import api_keys
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tarry.records.batch import SEQUENCE_MAX

WAITS = ([("x-deliver-after", b"1000")],)


def last_sequences(user: ScheduleUser) -> dict[int, tuple[int, int]]:
    """By producer the epoch and the sequence."""
    request = DescribeProducersRequest([TopicRequest(ORDERS, [0])])
    answer = user.client.ask(api_keys.DESCRIBE_PRODUCERS, 0, request)
    assert isinstance(answer, DescribeProducersResponse)
    (partition,) = answer.topics[0].partitions
    return {
        each.producer_id: (each.producer_epoch, each.last_sequence)
        for each in partition.active_producers
    }


def test_the_later_batch_counts_wherever_it_lies():
    user = ScheduleUser()
    user.produce(a_batch(b"a", producer_id=7, sequence=0))
    user.produce(a_batch(b"b", headers=WAITS, producer_id=7, sequence=1))
    user.produce(a_batch(b"c", headers=WAITS, producer_id=8, sequence=0))
    user.produce(a_batch(b"d", producer_id=8, sequence=1))

    assert last_sequences(user) == {7: (0, 1), 8: (0, 1)}


def test_a_release_changes_nothing():
    user = ScheduleUser()
    user.produce(a_batch(b"b", headers=WAITS, producer_id=7, sequence=0))

    user.pass_time(1_000)

    assert user.values() == [b"b"]
    assert last_sequences(user) == {7: (0, 0)}


def test_a_newer_epoch_and_a_sequence_that_has_gone_round_are_later():
    user = ScheduleUser()
    user.produce(a_batch(b"a", producer_id=7, epoch=0, sequence=0))
    user.produce(a_batch(b"b", headers=WAITS, producer_id=7, epoch=1, sequence=0))
    user.produce(a_batch(b"c", headers=WAITS, producer_id=8, sequence=SEQUENCE_MAX))
    user.produce(a_batch(b"d", producer_id=8, sequence=0))

    assert last_sequences(user) == {7: (1, 0), 8: (0, 0)}
