"""Error answers of every API, in every version and at each place that has a code."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.broker.admin_user import Operator
from tests.support.broker.broker_user import ORDERS
from tests.support.sound_requests import request_of

from tarry.protocol.api_keys import APIS
from tarry.protocol.registry import MESSAGES
from tarry.simulation.by_hand import BrokerByHand
from tarry.testing.answers import ApiRefusal, CodePlace, ErrorAnswers
from tarry.testing.faults import Faults
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

CODE = 29
TOPIC_ID = bytes(range(16))


def codes_at(message: Any, place: CodePlace) -> list[int]:
    found = [message]
    for name in place.path:
        found = [inner for one in found for inner in getattr(one, name)]
    return [getattr(one, place.field) for one in found]


def places_of(version: int, answers: ErrorAnswers) -> list[CodePlace]:
    return [place for place in answers.places if version in place.versions]


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_every_place_of_every_version_can_hold_a_code(api_key: int) -> None:
    api = APIS[api_key]
    answers = ErrorAnswers(api_key)

    for version in range(api.version_min, api.version_max + 1):
        places = places_of(version, answers)
        assert places, version
        for place in places:
            request = request_of(api_key, version, TOPIC_ID, b"")
            answer = answers.refuse(request, ApiRefusal(version, place, CODE))
            writer = Writer()
            answer.encode(writer, version)
            data = writer.joined()
            read = MESSAGES[api_key].decode_response(Reader(data, 0, len(data)), version)

            codes = codes_at(read, place)
            assert codes, (version, place)
            assert set(codes) == {CODE}, (version, place)


def test_a_refusal_names_what_the_request_has_named() -> None:
    answers = ErrorAnswers(0)
    place = answers.place(9, None, by_topic=True)
    assert place is not None

    answer: Any = answers.refuse(request_of(0, 9, TOPIC_ID, b""), ApiRefusal(9, place, CODE))

    (topic,) = answer.responses
    assert (topic.name, [one.index for one in topic.partition_responses]) == ("orders", [0])
    assert topic.partition_responses[0].base_offset == -1


@pytest.fixture(scope="module")
def hand() -> BrokerByHand:
    hand = BrokerByHand({"num.partitions": "1"})
    Operator(hand).create(ORDERS)
    return hand


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_every_api_of_a_broker_fails_once_and_then_answers_as_before(
    api_key: int, hand: BrokerByHand
) -> None:
    api = APIS[api_key]
    handlers = {key: route.handle for key, route in hand.broker.routes.items()}
    faults = Faults(hand.broker)
    client = hand.connect()
    topic_id = hand.broker.topics[ORDERS].topic_id
    version = api.version_max
    try:
        faults.add(failure := faults.failure(api.name, CODE, 1, None, None))
        place = ErrorAnswers(api_key).place(version, None, by_topic=False)
        assert place is not None

        answer = client.ask(api_key, version, request_of(api_key, version, topic_id, b""))
    finally:
        for key, handle in handlers.items():
            hand.broker.routes[key].handle = handle

    assert set(codes_at(answer, place)) == {CODE}
    assert failure.is_over


@pytest.mark.parametrize(
    ("name", "version", "place"),
    [
        ("Produce", 9, "responses.partition_responses.error_code"),
        ("Fetch", 12, "responses.partitions.error_code"),
        ("Metadata", 12, "topics.error_code"),
        ("FindCoordinator", 3, "error_code"),
        ("FindCoordinator", 4, "coordinators.error_code"),
        ("LeaveGroup", 5, "error_code"),
        ("OffsetFetch", 1, "topics.partitions.error_code"),
        ("OffsetFetch", 7, "error_code"),
        ("OffsetFetch", 8, "groups.error_code"),
        ("DeleteTopics", 5, "responses.error_code"),
        ("DescribeProducers", 0, "topics.partitions.error_code"),
        ("JoinGroup", 9, "error_code"),
    ],
)
def test_the_usual_place_is_where_clients_look_first(name: str, version: int, place: str) -> None:
    api_key = next(key for key, api in APIS.items() if api.name == name)

    found = ErrorAnswers(api_key).place(version, None, by_topic=False)

    assert str(found) == place
