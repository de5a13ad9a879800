"""What users hand to other processes: copies of values are equal, clients refuse to be copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tarry.base.errors import InvalidSetting, TarryError
from tarry.client import errors
from tarry.client.core.admin.calls import ClusterDescription, ConfigEntry, NewTopic, TopicOutcome
from tarry.client.core.admin.groups import GroupDescription, GroupMember, GroupOutcome
from tarry.client.core.admin.log_dirs import LogDirectory, ReplicaSize
from tarry.client.core.consumer.lookup import FoundOffset
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.producer.batch import ProducerBatch
from tarry.client.core.topic import BrokerMetadata, PartitionMetadata, Topic
from tarry.client.errors import (
    BrokerError,
    CommitFailed,
    DeliveryFailed,
    DeliveryTimedOut,
    GroupFailed,
    RecordTooLarge,
)
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.producer import Producer, Receipt
from tarry.link.events import Address
from tarry.records.record import Record

NOBODY = "127.0.0.1:1"
BROKER = BrokerMetadata(1, Address("10.0.0.1", 9092), "rack-a")

Copy = Callable[[Any], Any]

WAYS: dict[str, Copy] = {
    "pickled": lambda one: pickle.loads(pickle.dumps(one)),
    "pickled long ago": lambda one: pickle.loads(pickle.dumps(one, protocol=2)),
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
}


@pytest.fixture(params=sorted(WAYS))
def made_again(request: pytest.FixtureRequest) -> Copy:
    return WAYS[request.param]


def record(offset: int = 7, **fields: Any) -> Record:
    given = {"timestamp": 5, "key": b"k", "value": None, "headers": [("h", b"x"), ("h", None)]}
    return Record(offset, **{**given, **fields})


def topic() -> Topic:
    made = Topic("orders")
    made.topic_id = b"\1" * 16
    made.partitions = {0: PartitionMetadata(0, 1)}
    return made


ERRORS: list[TarryError] = [
    BrokerError(3, "topic 't' does not exist"),
    CommitFailed("the partition belongs to another member", is_retriable=True),
    DeliveryFailed(2, DeliveryTimedOut("2 records were not acknowledged")),
    GroupFailed(23, "the group refuses this member"),
    InvalidSetting("unknown setting lingerms"),
    RecordTooLarge("a record of 9 bytes is too large"),
]
VALUES: list[Any] = [
    *ERRORS,
    record(),
    record(topic="orders", partition=1),
    RecordGroup("orders", 1, [record(), record(8)]),
    topic(),
    BROKER,
    ClusterDescription("id", 1, [BROKER], []),
    NewTopic("orders", 3, configs={"retention.ms": "1"}),
    TopicOutcome("orders", BrokerError(36, "topic 'orders' already exists")),
    ConfigEntry("a", "b", "topic", False, False, False),
    GroupDescription(
        "g", "Stable", "consumer", "range", BROKER,
        [GroupMember("m", None, "c", "h", b"", b"", [("orders", 0)])],
    ),
    GroupOutcome("g", None),
    LogDirectory(1, "/data", None, 1, 1, [ReplicaSize(("orders", 0), 1, 0, False)]),
    FoundOffset(1, 2, 3),
    CommittedOffset(7, 1, "by hand"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda one: type(one).__name__)
def test_a_value_that_a_client_gives_equals_its_copy(value: Any, made_again: Copy) -> None:
    made = made_again(value)

    assert type(made) is type(value)
    assert made == value
    assert repr(made) == repr(value)


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_a_copied_error_says_and_knows_the_same(error: TarryError, made_again: Copy) -> None:
    made = made_again(error)

    assert str(made) == str(error)
    assert vars(made) == vars(error)
    assert hash(made) == hash(error)
    with pytest.raises(type(error)):
        raise made


def test_every_public_error_can_be_copied_whatever_its_constructor_takes() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TarryError):
            error = kind.__new__(kind, "a sentence")
            error.args = ("a sentence",)

            assert pickle.loads(pickle.dumps(error)) == error


@pytest.mark.parametrize(
    "other",
    [
        record(8),
        record(timestamp=6),
        record(key=None),
        record(value=b""),
        record(headers=[]),
        record(topic="orders", partition=1),
        None,
    ],
)
def test_a_record_that_differs_is_another(other: Any) -> None:
    assert record() != other
    placed = record(topic="orders", partition=1)
    assert placed != record(topic="orders", partition=2)
    assert placed != record(topic="order", partition=1)


def test_equal_records_count_once() -> None:
    assert len({record(), record(), record(8)}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BrokerError(3, "a"), BrokerError(3, "b")),
        (CommitFailed("a", is_retriable=True), CommitFailed("a", is_retriable=False)),
        (RecordTooLarge("a"), DeliveryTimedOut("a")),
    ],
)
def test_errors_of_another_class_text_or_field_differ(one: TarryError, other: TarryError) -> None:
    assert one != other


# --- Receipts


def batch(count: int = 3) -> ProducerBatch:
    made = ProducerBatch("orders", 1, (4,), deadline_ms=0)
    made.owner = object()
    for number in range(count):
        made.append(100, None, b"%d" % number, None)
    return made


def test_the_receipt_of_a_record_that_is_stored_equals_its_copy(made_again: Copy) -> None:
    stored = batch()
    receipt = Receipt(stored, 2, 100)
    stored.succeed(40, -1)

    made = made_again(receipt)

    assert made == receipt
    assert hash(made) == hash(receipt)
    assert (made.topic, made.partition, made.offset, made.timestamp) == ("orders", 1, 42, 100)
    assert made.result() is made
    assert made.error is None


def test_the_copy_of_a_receipt_knows_that_its_record_was_parked(made_again: Copy) -> None:
    parked = batch()
    receipt = Receipt(parked, 2, 100)
    parked.s_offset = 40
    parked.succeed(-1, -1)

    made = made_again(receipt)

    assert made == receipt
    assert (made.is_parked, made.offset, made.s_offset) == (True, -1, 42)


def test_the_receipt_of_a_record_that_failed_equals_its_copy(made_again: Copy) -> None:
    failed = batch()
    receipt = Receipt(failed, 0, 100)
    failed.fail(RecordTooLarge("a record of 9 bytes is too large"))

    made = made_again(receipt)

    assert made == receipt
    assert made != made_again(Receipt(failed, 1, 100))
    with pytest.raises(RecordTooLarge, match="9 bytes"):
        made.result()
    assert failed.unseen_failures == 3, "nobody has asked for the error here"


def test_the_receipt_of_a_batch_that_was_taken_apart_equals_its_copy(made_again: Copy) -> None:
    whole = batch()
    receipts = [Receipt(whole, place, 100) for place in range(3)]
    rest = whole.without({1: RecordTooLarge("too large")})
    assert rest is not None
    rest.succeed(40, -1)

    made = [made_again(receipt) for receipt in receipts]

    assert made == receipts
    assert [one.offset for one in made] == [40, -1, 41]


def test_a_receipt_that_waits_is_not_copied(made_again: Copy) -> None:
    with pytest.raises(TypeError, match="wait for its result first"):
        made_again(Receipt(batch(), 0, 100))


def test_receipts_are_told_apart_before_and_after_their_records_are_done() -> None:
    one, other = batch(), batch()
    receipts = {Receipt(made, place, 100): place for made in (one, other) for place in range(3)}
    for made in (one, other):
        made.fail(RecordTooLarge("too large"))

    assert len(receipts) == 6
    assert [receipts[receipt] for receipt in receipts] == [0, 1, 2, 0, 1, 2]


# --- Clients


@pytest.fixture(params=[Producer, Consumer, Admin])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param(bootstrap_servers=NOBODY) as made:
        yield made


def test_a_client_is_neither_pickled_nor_copied(client: Any, made_again: Copy) -> None:
    with pytest.raises(TypeError, match="make it in the process that uses it"):
        made_again(client)
