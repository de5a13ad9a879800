"""Retention and the expiry of producers visit a bounded number of logs in one turn."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.broker.broker_user import ORDERS, User, a_batch, produced

from tarry.base import errors
from tarry.broker.duties.log_walks import LOGS_PER_STEP_MAX
from tarry.protocol import api_keys
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# Logs of two whole steps and a part of a third one.
LOGS = 2 * LOGS_PER_STEP_MAX + 7
STEPS = [LOGS_PER_STEP_MAX, 2 * LOGS_PER_STEP_MAX, LOGS]


def a_user_of_many_logs(
    settings: dict[str, str], batch: bytes, **topic: str
) -> tuple[BrokerByHand, User]:
    """A broker with a batch in each of many partitions."""
    hand = BrokerByHand(settings)
    user = User(hand)
    user.create(ORDERS, partitions=LOGS, **topic)
    answer = user.client.ask(api_keys.PRODUCE, 11, user.produce_request(*[batch] * LOGS))
    assert {one.error_code for one in produced(answer)} == {errors.NONE}
    return hand, user


def counts_of_turns(hand: BrokerByHand, count: Callable[[], int]) -> list[int]:
    """The counts after the turn in which something first counts, and after the turns behind it."""
    for _ in range(100):
        if count():
            break
        hand.turn(after_ms=400)
    counts = [count()]
    for _ in range(3):
        hand.turn(after_ms=1)
        counts.append(count())
    return counts


def logs_given_up(hand: BrokerByHand) -> int:
    """Number of logs whose only batch retention has given up."""
    logs = hand.broker.topics.partitions()
    return sum(1 for each in logs if each.log.coming_start_offset == 1)


def test_retention_visits_a_bounded_number_of_logs_in_a_turn() -> None:
    hand, _ = a_user_of_many_logs(
        {"log.retention.check.interval.ms": "10000"},
        a_batch(b"old", times=(START_WALL_MS - DAY_MS,)),
        retention_ms="60000",
    )

    counts = counts_of_turns(hand, lambda: logs_given_up(hand))

    assert counts == [*STEPS, LOGS]


def test_a_clock_that_is_set_between_two_steps_of_retention_deletes_nothing() -> None:
    hand, user = a_user_of_many_logs(
        {"log.retention.check.interval.ms": "10000"},
        a_batch(b"new"),
        retention_ms=str(DAY_MS),
    )
    user.produce(a_batch(b"old", times=(START_WALL_MS - DAY_MS,)))
    hand.broker.topics[ORDERS].partitions[0].log.roll()
    for _ in range(24):
        hand.turn(after_ms=400)
    assert hand.now_ms % 10_000 > 9_000

    hand.turn(after_ms=400)
    hand.now_wall_ms += 3 * DAY_MS
    for _ in range(3):
        hand.turn(after_ms=1)

    assert logs_given_up(hand) == 0


def test_producers_expire_in_a_bounded_number_of_logs_in_a_turn() -> None:
    hand, _ = a_user_of_many_logs(
        {
            "producer.id.expiration.ms": "3000",
            "producer.id.expiration.check.interval.ms": "5000",
        },
        a_batch(b"a", producer_id=7, sequence=0),
    )
    logs = hand.broker.topics.partitions()

    counts = counts_of_turns(hand, lambda: sum(1 for each in logs if not each.producers.active()))

    assert counts == [*STEPS, LOGS]
