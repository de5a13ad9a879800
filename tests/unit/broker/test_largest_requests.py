"""Every version of every API takes its largest requests, and nobody else notices."""

from __future__ import annotations

import pytest
from tests.support.largest_requests import largest_requests

from tarry.base.limits import (
    ELEMENTS_PER_TURN_MAX,
    LONG_ANSWER_FIRST_UNITS_PER_TURN,
    LONG_ANSWER_UNITS_PER_TURN,
    REQUEST_ELEMENTS_MAX,
)
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.simulation.by_hand import BrokerByHand

# The newest version of each API has requests as large as they may be, the others a fortieth.
NEWEST = [
    pytest.param(
        key,
        route.version_max,
        REQUEST_ELEMENTS_MAX,
        id=f"{APIS[key].name}-largest",
        marks=[pytest.mark.slow, pytest.mark.heavy],
    )
    for key, route in BrokerByHand().broker.routes.items()
]
OLDER = [
    pytest.param(key, version, REQUEST_ELEMENTS_MAX // 40, id=f"{APIS[key].name}-v{version}")
    for key, route in BrokerByHand().broker.routes.items()
    for version in range(route.version_min, route.version_max)
]

# A step that costs more than is left ends a turn's share: all names of a request are looked up in
# one, a portion of a change of metadata is decided on in one.
OVERSHOOT = REQUEST_ELEMENTS_MAX // ELEMENTS_PER_UNIT + LONG_ANSWER_FIRST_UNITS_PER_TURN


def a_broker() -> BrokerByHand:
    hand = BrokerByHand({"auto.create.topics.enable": "false"})
    client = hand.connect()
    orders = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    client.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[orders], timeout_ms=1_000))
    client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    return hand


@pytest.mark.parametrize(("key", "version", "count"), [*NEWEST, *OLDER])
def test_the_largest_requests_are_handled_in_bounded_turns(
    key: int, version: int, count: int
) -> None:
    hand = a_broker()
    topic_id = hand.broker.topics["orders"].topic_id
    for label, request in largest_requests(key, version, count, topic_id):
        client, other = hand.connect(), hand.connect()
        client.send(key, version, request)
        for _ in range(2_000):
            events = hand.disk.complete_flushes()
            hand.turn(*events, after_ms=10)
            other.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())

            assert len(other.answers()) == 1, label
            assert hand.broker.long_answers.units_spent <= LONG_ANSWER_UNITS_PER_TURN + OVERSHOOT, (
                label
            )
            assert hand.broker.this_turn.elements_decoded <= ELEMENTS_PER_TURN_MAX, label
            if (
                client.is_closed
                or not hand.broker.answers.connections[client.connection_id].has_waiting()
            ):
                break
        assert client.is_closed or len(client.answers()) == 1, label
        hand.settle()
