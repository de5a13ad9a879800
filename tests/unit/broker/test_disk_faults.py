"""A disk that refuses in the wrong moment: the broker answers, goes on, and keeps its word."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, values_in

from tarry.base import errors
from tarry.base.errors import FlushFailed, StorageError
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.reader import window_of


def pass_time(hand: BrokerByHand, ms: int) -> None:
    for _ in range(ms // 400):
        hand.turn(after_ms=400)
        hand.settle()


class StubbornDisk:
    """A simulated disk whose named operations fail while `refused` says so."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.refused: dict[str, str] = {}

    def __getattr__(self, name: str) -> object:
        operation = getattr(self.disk, name)
        if name not in self.refused:
            return operation

        def refuse(path: object, *rest: object, **terms: object) -> object:
            if self.refused[name] in str(path):
                raise StorageError(f"{path}: Too many open files")
            return operation(path, *rest, **terms)

        return refuse


def stubborn(hand: BrokerByHand) -> StubbornDisk:
    """The broker's disk, which from now on may refuse."""
    disk = StubbornDisk(hand.disk)
    for owner in (hand.broker, hand.broker.flushes, hand.broker.logs, hand.broker.logs.files):
        owner.disk = disk  # type: ignore[assignment]
    hand.broker.logs.recovery_points.disk = disk  # type: ignore[assignment]
    return disk


def create(user: User, name: str) -> int:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1_000)
    answer = user.client.ask(api_keys.CREATE_TOPICS, 7, request)
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def test_a_topic_whose_directory_cannot_be_made_is_made_later(hand: BrokerByHand) -> None:
    user = User(hand)
    disk = stubborn(hand)
    disk.refused["make_directory"] = "late-"

    created = create(user, "late")
    early = user.produce(a_batch(b"a"), topic="late")
    other = user.produce(a_batch(b"a"))
    disk.refused.clear()
    pass_time(hand, 5_000)
    late = user.produce(a_batch(b"a"), topic="late")

    assert created == errors.NONE
    assert early.error_code in (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.KAFKA_STORAGE_ERROR)
    assert other.error_code == errors.NONE
    assert late.error_code == errors.NONE


def test_a_directory_that_cannot_be_renamed_keeps_its_topic_from_coming_back(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    user.produce(a_batch(b"old"))
    disk = stubborn(hand)
    disk.refused["rename"] = "orders-0"

    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=ORDERS)], timeout_ms=1_000)
    user.client.send(api_keys.DELETE_TOPICS, 6, request)
    hand.settle()
    pass_time(hand, 3_000)
    (deletion,) = user.answers()
    again_early = create(user, ORDERS)
    disk.refused.clear()
    pass_time(hand, 5_000)
    again = create(user, ORDERS)

    assert isinstance(deletion, DeleteTopicsResponse)
    assert deletion.responses[0].error_code == errors.REQUEST_TIMED_OUT
    assert again_early == errors.TOPIC_ALREADY_EXISTS
    assert again == errors.NONE
    assert values_in(user.fetch(0)) == []


def test_a_full_disk_and_a_round_of_recovery_points(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(hand)
    user.produce(a_batch(b"a"))
    hand.disk.capacity_bytes = hand.disk.used_bytes() + 1

    pass_time(hand, 130_000)
    full = user.produce(a_batch(b"b"))
    hand.disk.heal()
    kept = user.produce(a_batch(b"c"))
    pass_time(hand, 70_000)
    hand.crash()

    assert full.error_code == errors.KAFKA_STORAGE_ERROR
    assert kept.base_offset == 1
    assert values_in(User(hand).fetch(0)) == [b"a", b"c"]
    assert any("recovery point" in r.getMessage() for r in caplog.records)


def test_files_that_cannot_be_opened_for_a_round_of_recovery_points(hand: BrokerByHand) -> None:
    user = User(hand)
    user.produce(a_batch(b"a", producer_id=7))
    disk = stubborn(hand)
    disk.refused["open"] = ""

    pass_time(hand, 130_000)
    kept = user.produce(a_batch(b"b"))

    assert not hand.broker.is_stopped
    assert kept.error_code == errors.NONE


def test_a_round_of_recovery_points_that_cannot_be_flushed_is_tried_again(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(hand)
    user.produce(a_batch(b"a"))
    disk = stubborn(hand)
    disk.refused["begin_flush"] = ""

    pass_time(hand, 130_000)
    disk.refused.clear()
    kept = user.produce(a_batch(b"b"))
    pass_time(hand, 130_000)
    hand.crash()

    assert kept.base_offset == 1
    assert any("recovery points" in r.getMessage() for r in caplog.records)
    log = hand.broker.topics[ORDERS].partitions[0].log
    assert log.recovery_report.scanned_bytes == 0


def test_a_directory_that_cannot_be_flushed_stops_the_broker_with_a_sentence(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    disk = stubborn(hand)
    disk.refused["begin_flush"] = ""

    user.send_produce(a_batch(b"a"))

    assert hand.broker.is_stopped
    assert "a flush failed" in hand.broker.stop_reason
    assert user.answers() == []


def test_a_read_that_fails_is_told_and_may_be_tried_again() -> None:
    hand = BrokerByHand({"log.roll.ms": "1"})
    user = User(hand)
    user.create(ORDERS)
    for number in range(3):
        user.produce(a_batch(b"%d" % number, times=(START_WALL_MS + 10 * number,)))
    hand.stop()
    hand.start()
    user = User(hand)
    hand.disk.fail_reads(1, path_part="orders-0/00000000000000000000")

    failed = user.list_offsets(START_WALL_MS)
    again = user.list_offsets(START_WALL_MS)

    assert failed.error_code == errors.KAFKA_STORAGE_ERROR
    assert (again.error_code, again.offset) == (errors.NONE, 0)


def test_a_flush_that_fails_while_many_logs_are_recovered_refuses_the_start() -> None:
    """They are flushed by the hundred, in the midst of opening a topic's logs."""
    hand = BrokerByHand()
    client = hand.connect()
    topic = CreatableTopic(name=ORDERS, num_partitions=300, replication_factor=1)
    client.ask(api_keys.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    batch = window_of(a_batch(b"value"))
    data = [PartitionProduceData(index=index, records=batch) for index in range(300)]
    client.send(
        api_keys.PRODUCE,
        7,
        ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(ORDERS, partition_data=data)]
        ),
    )
    hand.disk.kill()
    hand.disk.fail_flushes(1, f"{ORDERS}-")

    with pytest.raises(FlushFailed, match="a flush failed"):
        hand.start()
