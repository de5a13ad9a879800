"""What the log says of a request that is not served: the API by its name, and who asks for it."""

from __future__ import annotations

import pytest

from tarry.broker.unserved import api_sentence, version_sentence
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.api_names import api_name
from tarry.simulation.by_hand import BrokerByHand


def test_every_served_api_has_its_name() -> None:
    named = {key: api_name(key) for key in APIS}

    assert named == {key: f"{api.name} (API key {key})" for key, api in APIS.items()}


@pytest.mark.parametrize(
    ("client_id", "software", "words"),
    [
        (
            "kafkactl",
            "sarama 1.45.0",
            "client kafkactl (sarama 1.45.0) is closed, and it will tell of EOF",
        ),
        (
            "a",
            "librdkafka 2.16.0",
            "client a (librdkafka 2.16.0) is closed, and it will tell of Disconnected",
        ),
        ("a", "", "client a is closed, and it will tell of a lost connection"),
        (None, "", "a client without an id is closed, and it will tell of a lost connection"),
    ],
)
def test_a_sentence_names_api_client_and_what_it_will_say(
    client_id: str | None, software: str, words: str
) -> None:
    told = api_sentence(65, client_id, software)

    assert (
        told == f"DescribeTransactions (API key 65) is not served here; the connection of {words}"
    )


def test_a_sentence_about_a_version_names_those_that_are_served(hand: BrokerByHand) -> None:
    route = hand.broker.routes[api_keys.FETCH]

    told = version_sentence(route, 99, "a", "kgo 1.18.0")

    assert told.startswith("version 99 of Fetch (API key 1) is not served; 4 to 18 are; ")
    assert told.endswith("client a (kgo 1.18.0) is closed, and it will tell of EOF")


def test_what_a_stranger_calls_himself_does_not_fill_the_line() -> None:
    assert len(api_sentence(65, "c" * 30_000, "s" * 30_000)) < 300
