"""A writer of thousands of producer ids: an honest idempotent producer beside it stays known."""

from __future__ import annotations

from tests.support.broker.broker_user import ORDERS, User, a_batch

from tarry.base.limits import PRODUCER_IDS_PER_PARTITION_MAX
from tarry.simulation.by_hand import BrokerByHand

FIRST_ID = 1_000_000


def flood(hostile: User, *, begin: int, count: int) -> None:
    for number in range(begin, begin + count):
        hostile.send_produce(a_batch(b"x", producer_id=FIRST_ID + number, sequence=0))
        if number % 500 == 0:
            hostile.hand.settle()
            hostile.answers()
    hostile.hand.settle()
    hostile.answers()


def test_a_retry_of_an_honest_producer_is_not_appended_again(hand: BrokerByHand) -> None:
    honest, hostile = User(hand), User(hand)
    batch = a_batch(b"once", producer_id=7, sequence=0)
    first = honest.produce(batch)

    flood(hostile, begin=0, count=PRODUCER_IDS_PER_PARTITION_MAX + 600)

    assert honest.produce(batch).base_offset == first.base_offset


def test_it_stays_known_over_a_crash_of_the_broker(hand: BrokerByHand) -> None:
    honest, hostile = User(hand), User(hand)
    honest.produce(a_batch(b"a", producer_id=7, sequence=0))
    batch = a_batch(b"b", producer_id=7, sequence=1)
    first = honest.produce(batch)
    flood(hostile, begin=0, count=PRODUCER_IDS_PER_PARTITION_MAX - 500)

    hand.crash()
    flood(User(hand), begin=10_000, count=1_200)

    assert User(hand).produce(batch).base_offset == first.base_offset
    assert hand.broker.topics[ORDERS].partitions[0].log.log_end_offset > first.base_offset
