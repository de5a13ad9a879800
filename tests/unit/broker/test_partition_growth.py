"""CreatePartitions: topics grow, durably before the answer; who consumes sees it."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import Operator, grown, operator
from tests.support.broker.broker_user import ORDERS, a_batch, values_in

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tarry.simulation.disk import SimulatedDisk


@pytest.fixture
def someone() -> Operator:
    """An operator with the topic `orders` of two partitions."""
    made = operator()
    made.create(ORDERS, 2)
    return made


def told(someone: Operator, topic: str = ORDERS) -> MetadataResponseTopic:
    request = MetadataRequest([MetadataRequestTopic(name=topic)], False)
    response = someone.client.ask(api_keys.METADATA, 12, request)
    assert isinstance(response, MetadataResponse)
    return response.topics[0]


def test_new_partitions_take_and_give_records_beside_the_old_ones(someone: Operator) -> None:
    someone.produce(a_batch(b"old"))

    (outcome,) = someone.grow((ORDERS, 4))
    someone.produce(a_batch(b"new"), indexes=(3,))

    assert outcome.error_code == errors.NONE
    assert [part.partition_index for part in told(someone).partitions] == [0, 1, 2, 3]
    assert {part.error_code for part in told(someone).partitions} == {errors.NONE}
    assert values_in(someone.fetch(0)) == [b"old"]
    assert values_in(someone.fetch(0, indexes=(3,))) == [b"new"]


def test_growth_is_told_when_it_is_durable_and_survives_a_loss_of_power(someone: Operator) -> None:
    someone.client.send(api_keys.CREATE_PARTITIONS, 3, someone.growth((ORDERS, 3)))
    early = someone.answers()
    partitions_early = len(someone.hand.broker.topics[ORDERS].partitions)

    someone.hand.settle()
    (answer,) = someone.answers()
    someone.hand.crash()
    again = Operator(someone.hand)

    assert (early, partitions_early) == ([], 2)
    assert [one.error_code for one in grown(answer)] == [errors.NONE]
    assert len(told(again).partitions) == 3
    assert again.produce(a_batch(b"a"), indexes=(2,)).error_code == errors.NONE


def test_growth_that_was_not_durable_is_gone_after_a_loss_of_power(someone: Operator) -> None:
    someone.client.send(api_keys.CREATE_PARTITIONS, 3, someone.growth((ORDERS, 3)))

    someone.hand.crash()

    # Or all of it is there: what was written may have reached the disk by itself.
    assert len(told(Operator(someone.hand)).partitions) in (2, 3)


def test_a_topic_that_grew_is_deleted_with_all_of_its_partitions(someone: Operator) -> None:
    someone.grow((ORDERS, 5))

    someone.delete(ORDERS)
    someone.hand.settle()

    assert [path for path in someone.hand.disk.paths() if path.startswith("orders-")] == []
    assert someone.hand.broker.cluster.partition_count == 0


def test_two_growths_in_one_turn_come_one_after_the_other(someone: Operator) -> None:
    frames = [
        someone.client.encode(api_keys.CREATE_PARTITIONS, 3, someone.growth((ORDERS, count)))
        for count in (3, 3, 5)
    ]

    someone.client.send_bytes(b"".join(frames))
    someone.hand.settle()

    outcomes = [one.error_code for answer in someone.answers() for one in grown(answer)]
    assert outcomes == [errors.NONE, errors.INVALID_PARTITIONS, errors.NONE]
    assert len(someone.hand.broker.topics[ORDERS].partitions) == 5


def test_growth_that_is_only_validated_makes_nothing(someone: Operator) -> None:
    good, bad = someone.grow((ORDERS, 3), ("nope", 3), validate_only=True)

    assert (good.error_code, bad.error_code) == (0, errors.UNKNOWN_TOPIC_OR_PARTITION)
    assert len(someone.hand.broker.topics[ORDERS].partitions) == 2


def test_new_partitions_go_where_they_are_assigned(someone: Operator) -> None:
    (outcome,) = someone.grow((ORDERS, 4), assignments=[[1], [1]])

    assert outcome.error_code == errors.NONE
    assert [part.replica_nodes for part in told(someone).partitions] == [[1]] * 4


def test_growth_that_the_disk_does_not_take_is_told_and_makes_nothing(someone: Operator) -> None:
    someone.hand.disk.fail_writes()

    (outcome,) = someone.grow((ORDERS, 3))

    someone.hand.disk.heal()
    assert outcome.error_code == errors.KAFKA_STORAGE_ERROR
    assert len(told(someone).partitions) == 2
    assert someone.grow((ORDERS, 3))[0].error_code == errors.NONE


class DiskWithoutRoomForDirectories:
    """A simulated disk that makes no directories while `is_full`."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.is_full = True

    def make_directory(self, path: str) -> None:
        if self.is_full:
            raise StorageError(f"{path}: no space left on device")
        self.disk.make_directory(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self.disk, name)


def test_partitions_whose_directories_cannot_be_made_come_later(someone: Operator) -> None:
    full = DiskWithoutRoomForDirectories(someone.hand.disk)
    broker = someone.hand.broker
    for owner in (broker, broker.logs, broker.logs.files):
        owner.disk = full

    (outcome,) = someone.grow((ORDERS, 4))
    early = someone.produce(a_batch(b"a"), indexes=(3,)).error_code
    old = someone.produce(a_batch(b"a")).error_code
    full.is_full = False
    someone.hand.turn(after_ms=900)
    someone.hand.turn(after_ms=900)

    assert outcome.error_code == errors.NONE
    assert (early, old) == (errors.KAFKA_STORAGE_ERROR, errors.NONE)
    assert someone.produce(a_batch(b"a"), indexes=(3,)).error_code == errors.NONE


def test_a_topic_that_is_deleted_before_it_could_grow_leaves_nothing(someone: Operator) -> None:
    full = DiskWithoutRoomForDirectories(someone.hand.disk)
    broker = someone.hand.broker
    for owner in (broker, broker.logs, broker.logs.files):
        owner.disk = full
    someone.produce(a_batch(b"a"))
    someone.grow((ORDERS, 4))

    someone.delete(ORDERS)
    full.is_full = False
    someone.hand.turn(after_ms=900)
    someone.hand.turn(after_ms=900)
    someone.hand.settle()

    assert [path for path in someone.hand.disk.paths() if path.startswith("orders-")] == []
    assert someone.hand.broker.topics.names() == []


@pytest.mark.parametrize(
    ("name", "count", "assignments", "error_code"),
    [
        (ORDERS, 2, None, errors.INVALID_PARTITIONS),
        (ORDERS, 1, None, errors.INVALID_PARTITIONS),
        (ORDERS, 0, None, errors.INVALID_PARTITIONS),
        (ORDERS, -(2**31), None, errors.INVALID_PARTITIONS),
        (ORDERS, 2**31 - 1, None, errors.POLICY_VIOLATION),
        (ORDERS, 10_003, None, errors.POLICY_VIOLATION),
        ("x" * 32_000, 3, None, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ("", 3, None, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (ORDERS, 3, [[9]], errors.INVALID_REPLICA_ASSIGNMENT),
        (ORDERS, 3, [[1] * 99_000], errors.INVALID_REPLICA_ASSIGNMENT),
        (ORDERS, 3, [[1]] * 49_000, errors.INVALID_REPLICA_ASSIGNMENT),
        (ORDERS, 2**31 - 1, [[1]], errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_grow_so_is_refused_with_a_sentence(
    someone: Operator,
    name: str,
    count: int,
    assignments: list[list[int]] | None,
    error_code: int,
) -> None:
    request = someone.growth((name, count), assignments=assignments)

    (outcome,) = grown(someone.client.ask(api_keys.CREATE_PARTITIONS, 3, request))

    assert outcome.error_code == error_code
    assert 10 < len(outcome.error_message or "") < 200
    assert len(someone.hand.broker.topics[ORDERS].partitions) == 2


def test_ten_thousand_partitions_are_the_most_of_one_request_over_all_of_its_topics(
    someone: Operator,
) -> None:
    someone.create("bills")

    first, second = someone.grow((ORDERS, 9_002), ("bills", 1_002), validate_only=True)

    assert first.error_code == errors.NONE
    assert second.error_code == errors.POLICY_VIOLATION


def test_the_topic_of_committed_offsets_keeps_its_number_of_partitions(someone: Operator) -> None:
    someone.create("__consumer_offsets", 4)

    (outcome,) = someone.grow(("__consumer_offsets", 8))

    assert outcome.error_code == errors.INVALID_PARTITIONS
    assert "cannot be changed" in (outcome.error_message or "")


def test_a_topic_named_twice_is_refused_once_and_others_grow(someone: Operator) -> None:
    someone.create("bills")

    outcomes = someone.grow((ORDERS, 3), ("bills", 2), (ORDERS, 4))

    assert [(one.name, one.error_code) for one in outcomes] == [
        (ORDERS, errors.INVALID_REQUEST),
        ("bills", errors.NONE),
    ]
