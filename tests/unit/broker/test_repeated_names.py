"""What a request repeats a thousand times costs the broker once, and a turn stays short."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.largest_requests import largest_requests
from tests.support.message_fields import slots_of

from tarry.base import errors
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.produce import ProduceRequest, ProduceResponse
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.compression import ZSTD


def test_a_fetch_that_names_a_partition_again_waits_for_it_once(
    hand: BrokerByHand, fetch: Callable[..., FetchRequest]
) -> None:
    client = hand.connect()
    request = fetch(0, max_wait_ms=1_000)
    request.topics[0].partitions *= 1_000

    client.send(api_keys.FETCH, 12, request)

    assert hand.broker.fetches.purgatory.watched == 1


def test_a_produce_that_names_a_partition_again_is_refused_there(
    hand: BrokerByHand, batch: Callable[..., bytes], produce: Callable[..., ProduceRequest]
) -> None:
    request = produce(batch(b"a"))
    request.topic_data[0].partition_data *= 2

    answer = hand.connect().ask(api_keys.PRODUCE, 11, request)

    assert isinstance(answer, ProduceResponse)
    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert codes == [errors.NONE, errors.INVALID_REQUEST]
    assert hand.broker.topics["orders"].partitions[0].log.log_end_offset == 1


def test_a_resource_that_is_named_again_is_described_once(hand: BrokerByHand) -> None:
    resource = DescribeConfigsResource(2, "orders", None)

    answer = hand.connect().ask(
        api_keys.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource] * 100)
    )

    assert isinstance(answer, DescribeConfigsResponse)
    assert len(answer.results) == 1


def test_few_records_are_opened_in_one_turn_and_the_rest_in_the_next(
    hand: BrokerByHand,
    batch: Callable[..., bytes],
    produce: Callable[..., ProduceRequest],
    topic: Callable[..., None],
) -> None:
    client = hand.connect()
    topic(client, "strict", message_timestamp_before_max_ms="3600000")
    request = produce(batch(*[b"a"] * 2_000, codec=ZSTD), "strict")
    log = hand.broker.topics["strict"].partitions[0].log
    frames = [client.encode(api_keys.PRODUCE, 11, request) for _ in range(5)]

    client.send_bytes(b"".join(frames))
    first_turn = log.log_end_offset
    hand.settle()

    assert first_turn < 5 * 2_000
    assert log.log_end_offset == 5 * 2_000
    assert len(client.answers()) == 5


@pytest.mark.parametrize("count", [1_000, 3_000], ids=["at once", "in steps"])
@pytest.mark.parametrize("version", [12, 18], ids=["by name", "by id"])
def test_a_partition_of_a_topic_that_is_not_there_is_refused_once(
    hand: BrokerByHand, fetch: Callable[..., FetchRequest], version: int, count: int
) -> None:
    request = fetch(0, "nowhere")
    request.topics[0].topic_id = b"\x07" * 16
    request.topics[0].partitions *= count
    request.topics *= 3

    answer = hand.connect().ask(api_keys.FETCH, version, request)

    assert isinstance(answer, FetchResponse)
    (topic,) = answer.responses
    assert len(topic.partitions) == 1


# --- Every API.

# Of these each element is answered in its place, as by Kafka: it has no name, or is refused.
ANSWERED_IN_THEIR_PLACES = (
    "CreateAcls creations",
    "DeleteAcls filters",
    "AlterClientQuotas entries",
    "AlterClientQuotas entries.entity",
    "ChangeScheduledRecords topics",
    "ChangeScheduledRecords topics.partitions",
    "ChangeScheduledRecords topics.partitions.changes",
    "Produce topic_data",
    "Produce topic_data.partition_data",
)
REPEATED = [
    pytest.param(key, count, id=f"{APIS[key].name}-{count}")
    for key in BrokerByHand().broker.routes
    for count in (1_000, LONG_REQUEST_ELEMENTS + 1_000)
]
# A topic has some fifty settings, and so many APIs there are.
ROWS_MAX = 100


def rows_in(message: object) -> int:
    """Return the number of elements of all arrays in a message."""
    values = (getattr(owner, name) for owner, name in slots_of(message))
    return sum(len(each) for each in values if isinstance(each, list))


@pytest.mark.parametrize(("key", "count"), REPEATED)
def test_what_an_array_names_again_and_again_is_answered_once(
    hand: BrokerByHand, key: int, count: int
) -> None:
    api = APIS[key].name
    version = hand.broker.routes[key].version_max
    topic_id = hand.broker.topics["orders"].topic_id
    hand.connect().ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    rows = {}
    for label, request in largest_requests(key, version, count, topic_id):
        client = hand.connect()
        if label.endswith(" alike"):
            client.send(key, version, request)
            hand.settle()
            rows[label.removesuffix(" alike")] = sum(rows_in(each) for each in client.answers())

    many = {f"{api} {name}" for name, found in rows.items() if found > ROWS_MAX}
    assert many == {each for each in ANSWERED_IN_THEIR_PLACES if each.split(" ")[0] == api}
