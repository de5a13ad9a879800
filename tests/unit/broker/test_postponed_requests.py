"""Requests of thousands of elements, which are handled in a turn after they were decoded."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, values_in

from tarry.base.doors import disconnected, received, stop_requested
from tarry.base.limits import (
    ELEMENTS_PER_TURN_MAX,
    LARGE_REQUEST_BYTES,
    LONG_ANSWER_UNITS_PER_TURN,
    LONG_ANSWERS_BYTES_MAX,
    REQUEST_ELEMENTS_MAX,
)
from tarry.broker.apis.list_offsets import SEARCH_UNITS
from tarry.broker.delayed.long_answers import (
    ELEMENT_BYTES,
    LONG_REQUEST_ELEMENTS,
    LongAnswer,
)
from tarry.broker.kafka_connection import KafkaConnection
from tarry.broker.request import RequestContext
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tarry.records.builder import BatchBuilder
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.reader import window_of

PRODUCE_VERSION = FETCH_VERSION = 12
MANY = LONG_REQUEST_ELEMENTS + 1
# Content that gzip needs many turns for.
LARGE = b"".join(b"%d," % number for number in range(120_000))


def a_batch(value: bytes, sequence: int) -> bytes:
    builder = BatchBuilder()
    builder.append(START_WALL_MS, None, value)
    return builder.build(0, producer_id=9, producer_epoch=0, base_sequence=sequence)


def a_produce(batch: bytes, topic: str, count: int, *, acks: int = -1) -> ProduceRequest:
    """A produce to partition 0, and to so many in all, none of which is there besides."""
    rows = [PartitionProduceData(index=0, records=window_of(batch))]
    rows += [PartitionProduceData(index=number) for number in range(1, count)]
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=rows)]
    )


def a_fetch(count: int, forgotten: int = 0) -> FetchRequest:
    """A fetch from partition 0, and from so many in all, none of which is there besides."""
    return FetchRequest(
        max_wait_ms=30_000,
        min_bytes=1,
        topics=[FetchTopic("orders", partitions=[FetchPartition(each) for each in range(count)])],
        forgotten_topics_data=[ForgottenTopic("orders", partitions=[0] * forgotten)],
    )


def an_assignment() -> SyncGroupRequestAssignment:
    return SyncGroupRequestAssignment("member", bytes(LARGE_REQUEST_BYTES))


def keys(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=[f"{number}" for number in range(count)])


def test_what_follows_a_long_produce_waits_until_its_batches_are_made_anew(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    user.create("gzipped", compression_type="gzip", max_message_bytes="2000000")
    first = a_produce(a_batch(LARGE, 0), "gzipped", MANY)
    first.topic_data += a_produce(a_batch(b"first", 0), "orders", 1).topic_data
    second = a_produce(a_batch(b"second", 1), "orders", 1)
    frames = [
        user.client.encode(api_keys.PRODUCE, PRODUCE_VERSION, each) for each in (first, second)
    ]

    user.client.send_bytes(b"".join(frames))
    hand.settle()

    assert len(user.answers()) == 2
    assert values_in(user.fetch(0)) == [b"first", b"second"]


def test_a_long_produce_that_nobody_sends_again_is_appended_though_its_connection_is_gone(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    request = a_produce(a_batch(b"lost?", 0), "orders", ELEMENTS_PER_TURN_MAX, acks=0)
    user.client.send(api_keys.PRODUCE, PRODUCE_VERSION, request)

    hand.turn(disconnected(user.client.connection_id))
    hand.settle()

    assert values_in(User(hand).fetch(0)) == [b"lost?"]


def test_a_long_fetch_that_comes_with_the_stop_does_not_keep_the_end_from_being_clean(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    frame = user.client.encode(api_keys.FETCH, FETCH_VERSION, a_fetch(1, forgotten=MANY))

    hand.turn(received(user.client.connection_id, frame), stop_requested())
    hand.settle()

    assert hand.broker.is_stopped
    assert hand.broker.stop_reason == ""


def decoded_and_waiting(hand: BrokerByHand) -> int:
    """Requests that have a place for their answer and were not handled."""
    return sum(each.is_held() for each in hand.broker.answers.connections.values())


@pytest.mark.heavy
def test_requests_of_many_elements_are_not_decoded_without_end(hand: BrokerByHand) -> None:
    clients = [hand.connect() for _ in range(20)]
    rows = [PartitionProduceData(index=number) for number in range(REQUEST_ELEMENTS_MAX - 1)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData("none", partition_data=rows)])
    frames = [each.encode(api_keys.PRODUCE, PRODUCE_VERSION, request) for each in clients]

    hand.turn(*(received(c.connection_id, f) for c, f in zip(clients, frames, strict=True)))
    waiting = [decoded_and_waiting(hand)]
    while hand.broker.has_work_left():
        hand.turn()
        waiting.append(decoded_and_waiting(hand))

    # So many are answered in steps, and as many decoded ones wait for that.
    at_once = -(-LONG_ANSWERS_BYTES_MAX // (ELEMENT_BYTES * REQUEST_ELEMENTS_MAX))
    assert max(waiting) == 2 * at_once
    assert all(len(each.answers()) == 1 for each in clients)


LARGE_REQUESTS = [
    (api_keys.FETCH, FETCH_VERSION, a_fetch(1_000)),
    (api_keys.SYNC_GROUP, 5, SyncGroupRequest("g", assignments=[an_assignment()])),
]


@pytest.mark.parametrize(("key", "version", "request_"), LARGE_REQUESTS)
def test_a_large_request_with_a_short_answer_does_not_wait_for_long_answers(
    hand: BrokerByHand, key: int, version: int, request_: Message
) -> None:
    user = User(hand)
    user.client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    for _ in range(5):
        hand.connect().send(api_keys.FIND_COORDINATOR, 4, keys(20_000))
    frame = user.client.encode(key, version, request_)
    assert len(frame) > LARGE_REQUEST_BYTES

    user.client.send_bytes(frame)

    assert len(user.answers()) == 1
    assert hand.broker.long_answers.has_work_left()


def test_long_answers_go_on_beside_however_many_elements_are_decoded_in_each_turn(
    hand: BrokerByHand,
) -> None:
    user, busy = User(hand), User(hand)
    user.client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    alike = FindCoordinatorRequest(coordinator_keys=["g"] * LONG_REQUEST_ELEMENTS)

    user.client.send(api_keys.FIND_COORDINATOR, 4, keys(LONG_REQUEST_ELEMENTS + 1))
    for _ in range(50):
        requests = [busy.client.encode(api_keys.FIND_COORDINATOR, 4, alike) for _ in range(11)]
        busy.client.send_bytes(b"".join(requests))

    assert len(user.answers()) == 1


def test_a_small_answer_does_not_wait_for_those_that_hold_all_there_is(hand: BrokerByHand) -> None:
    user, greedy = User(hand), User(hand)
    user.client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    greedy.client.send(api_keys.FIND_COORDINATOR, 4, keys(REQUEST_ELEMENTS_MAX))
    hand.turn()

    user.client.send(api_keys.FIND_COORDINATOR, 4, keys(LONG_ANSWER_UNITS_PER_TURN // 2))
    hand.turn()

    assert len(user.answers()) == 1
    hand.settle()
    assert len(greedy.answers()) == 1


def test_answers_that_hold_much_go_on_beside_small_ones_whose_steps_cost_a_turns_share(
    hand: BrokerByHand,
) -> None:
    greedy = User(hand)
    greedy.client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    greedy.client.send(api_keys.FIND_COORDINATOR, 4, keys(LONG_REQUEST_ELEMENTS + 1))
    costly = hand.broker.long_answers
    greedy_peer = KafkaConnection(hand.broker.dispatch, 99, "PLAINTEXT", "10.0.0.2:1", 1 << 20)
    context = RequestContext(hand.broker.answers, greedy_peer, 0, 0, 0)

    costly.begin(LongAnswer(context), (SEARCH_UNITS for _ in range(100)))
    for _ in range(20):
        hand.turn()

    assert len(greedy.answers()) == 1
    assert costly.has_work_left()
