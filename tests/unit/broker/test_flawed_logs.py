"""A partition with a flaw before its recovery point: what is before it is read, nothing is lost."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, values_in

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tarry.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
COUNT = 30


def pass_time(hand: BrokerByHand, ms: int) -> None:
    for _ in range(ms // 400):
        hand.turn(after_ms=400)
        hand.settle()


@pytest.fixture(params=["clean", "unclean"])
def flawed(request: pytest.FixtureRequest) -> BrokerByHand:
    """Thirty batches, all covered by a recovery point; then a header in the middle changes."""
    hand = BrokerByHand()
    user = User(hand)
    user.create(ORDERS)
    user.create("other")
    for number in range(COUNT):
        user.produce(a_batch(b"%04d" % number, times=(START_WALL_MS + number,)))
    pass_time(hand, 70_000)
    if request.param == "clean":
        hand.stop()
    else:
        hand.crash()
    size = len(a_batch(b"0000"))
    # The length of batch 20 becomes nonsense.
    hand.disk.flip_bit("orders-0/00000000000000000000.log", 20 * size + 9, 3)
    hand.start()
    return hand


def test_reads_before_the_flaw_go_on(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)
    offset = 0
    seen = []
    while offset < 20:
        answer = user.fetch(offset)
        assert answer.error_code == errors.NONE
        values = values_in(answer)
        seen += values
        offset += len(values)

    assert seen == [b"%04d" % number for number in range(20)]


@pytest.mark.parametrize("offset", [20, 21, 29, 30])
def test_reads_at_or_past_the_flaw_are_told_so(flawed: BrokerByHand, offset: int) -> None:
    user = User(flawed)
    user.fetch(20)  # the flaw is met

    answer = user.fetch(offset, max_wait_ms=60_000)

    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert values_in(answer) == []


def test_produces_are_told_so_and_nothing_is_kept(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)

    for batch in (a_batch(b"new"), a_batch(b"again", producer_id=7)):
        answer = user.produce(batch)
        assert answer.error_code == errors.KAFKA_STORAGE_ERROR
        assert "flaw at offset 20" in (answer.error_message or "")


def test_other_partitions_go_on(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)

    assert user.produce(a_batch(b"a"), topic="other").error_code == errors.NONE
    assert values_in(user.fetch(0, topic="other")) == [b"a"]


def test_a_waiting_fetch_at_the_end_is_woken_when_the_flaw_is_met(flawed: BrokerByHand) -> None:
    waiting = User(flawed)
    waiting.send_fetch(COUNT, max_wait_ms=60_000)

    User(flawed).fetch(20)
    flawed.settle()
    pass_time(flawed, 61_000)

    (answer,) = waiting.answers()
    assert fetched(answer)[0].error_code == errors.KAFKA_STORAGE_ERROR


def test_offsets_that_the_flaw_hides_are_not_guessed(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)

    before = user.list_offsets(START_WALL_MS + 5)
    behind = user.list_offsets(START_WALL_MS + 25)
    largest = user.list_offsets(MAX_TIMESTAMP)

    assert (before.error_code, before.offset) == (errors.NONE, 5)
    assert behind.error_code == errors.KAFKA_STORAGE_ERROR
    assert largest.error_code == errors.KAFKA_STORAGE_ERROR
    assert user.list_offsets(LATEST).offset == COUNT
    assert user.list_offsets(EARLIEST).offset == 0


def test_the_broker_stops_cleanly_and_starts_again_and_nothing_was_cut(
    flawed: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(flawed)
    user.fetch(20)
    flawed.stop()
    assert flawed.broker.stop_reason == ""
    path = "orders-0/00000000000000000000.log"
    size = flawed.disk.open(path).size
    caplog.set_level(logging.INFO)
    flawed.start()
    user = User(flawed)

    assert size == COUNT * len(a_batch(b"0000"))
    assert user.fetch(20).error_code == errors.KAFKA_STORAGE_ERROR
    assert values_in(user.fetch(0))[:3] == [b"0000", b"0001", b"0002"]


def test_the_partition_can_be_deleted_and_made_again(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)

    user.delete()
    user.create(ORDERS)

    assert user.produce(a_batch(b"new")).base_offset == 0


def test_a_missing_segment_is_known_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    hand = BrokerByHand({"log.roll.ms": "1"})
    user = User(hand)
    user.create(ORDERS)
    for number in range(5):
        user.produce(a_batch(b"%04d" % number, times=(START_WALL_MS + 10 * number,)))
    pass_time(hand, 70_000)
    hand.crash()
    hand.disk.remove("orders-0/00000000000000000002.log")
    hand.start()
    user = User(hand)

    read = [user.fetch(offset).error_code for offset in range(6)]
    written = user.produce(a_batch(b"new")).error_code

    assert read == [errors.NONE] * 2 + [errors.KAFKA_STORAGE_ERROR] * 4
    assert written == errors.KAFKA_STORAGE_ERROR
    assert any("damaged" in r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR)


def test_a_damaged_replica_is_told_as_offline_and_others_are_not(flawed: BrokerByHand) -> None:
    user = User(flawed)
    user.fetch(20)
    client = flawed.connect()

    metadata = client.ask(api_keys.METADATA, 12, MetadataRequest(topics=None))
    described = client.ask(
        api_keys.DESCRIBE_TOPIC_PARTITIONS,
        0,
        DescribeTopicPartitionsRequest(topics=[TopicRequest(ORDERS), TopicRequest("other")]),
    )

    for answer in (metadata, described):
        assert isinstance(answer, MetadataResponse | DescribeTopicPartitionsResponse)
        offline = {topic.name: topic.partitions[0].offline_replicas for topic in answer.topics}
        leaders = {topic.partitions[0].leader_id for topic in answer.topics}
        assert offline == {ORDERS: [flawed.broker.broker_id], "other": []}
        # Records before the flaw are still read there.
        assert leaders == {flawed.broker.broker_id}
