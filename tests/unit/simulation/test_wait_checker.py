"""The checker of waits, with a broker by hand."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, a_batch

from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.checkers.waits import WaitChecker


@pytest.fixture
def hand() -> BrokerByHand:
    """A broker with a topic."""
    hand = BrokerByHand()
    User(hand).create("orders")
    return hand


@pytest.mark.interpreted
def test_a_fetch_that_nobody_wakes_is_reported(hand: BrokerByHand) -> None:
    reader, writer = User(hand), User(hand)
    reader.send_fetch(0, max_wait_ms=10_000)
    honest = WaitChecker().after_turn(hand.broker, hand.now_ms)
    # As if nobody told the fetches that a log has moved.
    hand.broker.fetches.on_moved = lambda partition: None  # type: ignore[method-assign]

    writer.produce(a_batch(b"a"))

    assert honest == []
    assert WaitChecker().after_turn(hand.broker, hand.now_ms) == [
        "a DelayedFetch waits, and what it waits for is there"
    ]
