"""How often a request is looked at before it waits, and when what it waits for has come."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, a_batch

from tarry.broker.delayed.produce import Produced
from tarry.broker.reads import Fetch, FetchStatus
from tarry.protocol import api_keys
from tarry.simulation.by_hand import BrokerByHand


@pytest.fixture
def user(hand: BrokerByHand) -> User:
    return User(hand)


def counted(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[object]:
    """Return a list that grows by the object of each call of this method."""
    calls: list[object] = []
    honest = getattr(kind, name)

    def call(self: object, *words: object, **terms: object) -> object:
        calls.append(self)
        return honest(self, *words, **terms)

    monkeypatch.setattr(kind, name, call)
    return calls


@pytest.mark.interpreted
def test_a_fetch_is_looked_at_once_before_it_waits_and_once_when_records_have_come(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = counted(monkeypatch, FetchStatus, "look")
    reader = User(user.hand)
    reader.send_fetch(0, max_wait_ms=60_000)
    user.hand.turn()
    waiting = len(looks)

    user.produce(a_batch(b"a"))

    assert (waiting, len(looks), len(reader.answers())) == (1, 2, 1)


@pytest.mark.interpreted
def test_a_produce_is_looked_at_once_before_it_waits_and_once_when_its_records_are_flushed(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = counted(monkeypatch, Produced, "settle")
    user.send_produce(a_batch(b"a"))
    user.hand.turn()
    waiting = len(looks)

    user.hand.settle()

    assert (waiting, len(looks), len(user.answers())) == (1, 2, 1)


@pytest.mark.interpreted
def test_a_produce_to_many_partitions_is_looked_at_once_when_they_are_flushed_together(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = counted(monkeypatch, Produced, "settle")
    user.create("many", 100)
    user.hand.settle()
    request = user.produce_request(*[a_batch(b"a")] * 100, topic="many")
    user.client.send(api_keys.PRODUCE, 11, request)
    user.hand.turn()

    user.hand.settle()

    assert (len(looks), len(user.answers())) == (2, 1)


@pytest.mark.interpreted
def test_a_fetch_of_many_partitions_is_looked_at_once_when_records_come_to_all_together(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = counted(monkeypatch, Fetch, "is_enough")
    user.create("many", 100)
    user.hand.settle()
    reader = User(user.hand)
    reader.send_fetch(*[0] * 100, topic="many", max_wait_ms=60_000, min_bytes=1_000_000)
    user.hand.turn()
    waiting = len(tries)

    request = user.produce_request(*[a_batch(b"a")] * 100, topic="many")
    user.client.ask(api_keys.PRODUCE, 11, request)

    assert (waiting, len(tries), reader.answers()) == (1, 2, [])
