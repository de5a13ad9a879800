"""The checker of turns and the one of recovery points, with a broker by hand."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, a_batch

from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.checkers.recovery_points import due_recovery_points
from tarry.simulation.checkers.turns import TurnChecker


@pytest.mark.interpreted
def test_turns_that_are_due_at_once_for_ever_are_reported_once() -> None:
    hand = BrokerByHand()
    checker = TurnChecker()
    # A part that asks for turns and does nothing.
    hand.broker.groups.has_work_left = lambda: True  # type: ignore[method-assign]
    found: list[str] = []
    for _ in range(150):
        hand.turn()
        found += checker.after_turn(hand.broker)

    assert len(found) == 1
    assert "turns in a row were due at once" in found[0]


@pytest.mark.interpreted
def test_a_turn_that_leaves_nothing_to_do_begins_the_count_anew() -> None:
    hand = BrokerByHand()
    checker = TurnChecker()
    found: list[str] = []
    for number in range(300):
        has_work = number % 60 != 0
        hand.broker.groups.has_work_left = lambda has_work=has_work: has_work  # type: ignore
        found += checker.after_turn(hand.broker)

    assert found == []


def test_a_log_that_waits_for_a_round_is_named_until_a_round_has_taken_it() -> None:
    hand = BrokerByHand()
    user = User(hand)
    user.create("orders")
    user.produce(a_batch(b"a"))
    hand.broker.topics.partitions()[0].log.ask_for_start(1)

    early = due_recovery_points(hand.broker)
    for _ in range(15):
        hand.turn(after_ms=400)
        hand.settle()

    assert "orders-0" in early
    assert "orders-0" not in due_recovery_points(hand.broker)
