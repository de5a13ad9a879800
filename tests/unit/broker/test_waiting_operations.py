"""Every operation of the broker holds what it needs as a payload, which its completion drops.

Completed, an operation lingers under the keys that were not touched: hours of answers stayed in
memory that way in Kafka (KAFKA-19389).
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.support.broker.broker_user import User, a_batch

import tarry.broker
from tarry.base.doors import disconnected
from tarry.purgatory import DelayedOperation, PayloadOperation
from tarry.simulation.by_hand import BrokerByHand


def kinds_below(kind: type[DelayedOperation]) -> list[type[DelayedOperation]]:
    found = []
    for each in kind.__subclasses__():
        found += [each, *kinds_below(each)]
    return found


def lingering(hand: BrokerByHand) -> list[DelayedOperation]:
    """The completed operations that are still watched."""
    found = []
    for purgatory in hand.broker.parts.purgatories():
        for watchers in purgatory._watchers.values():
            found += [each for each in watchers.items if each is not None and each.is_completed]
    return found


def test_every_kind_of_operation_has_a_payload() -> None:
    for module in pkgutil.walk_packages(tarry.broker.__path__, "tarry.broker."):
        importlib.import_module(module.name)

    kinds = [
        kind
        for kind in kinds_below(DelayedOperation)
        if kind.__module__.startswith("tarry.broker.")
    ]

    assert len(kinds) > 5
    for kind in kinds:
        assert issubclass(kind, PayloadOperation), kind
        # A completion, with its payload dropped, is reported once.
        assert kind.on_complete is PayloadOperation.on_complete, kind


def test_an_answered_fetch_lingers_with_nothing(hand: BrokerByHand) -> None:
    user, reader = User(hand), User(hand)
    user.create("wide", 2)
    reader.send_fetch(0, 0, topic="wide", max_wait_ms=60_000)

    user.produce(a_batch(b"a"), topic="wide")

    assert len(reader.answers()) == 1
    (operation,) = lingering(hand)
    assert isinstance(operation, PayloadOperation)
    assert operation.payload is None


def test_a_fetch_given_up_with_its_connection_lingers_with_nothing(hand: BrokerByHand) -> None:
    user, reader = User(hand), User(hand)
    user.create("wide", 2)
    reader.send_fetch(0, 0, topic="wide", max_wait_ms=60_000)

    hand.turn(disconnected(reader.client.connection_id))

    left = lingering(hand)
    assert left
    assert all(isinstance(each, PayloadOperation) and each.payload is None for each in left)
