"""What a request repeats a thousand times costs the broker once, and a turn stays short."""

from __future__ import annotations

from collections.abc import Callable

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.fetch import FetchRequest
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
