"""Which batches a leader takes, with which codes it refuses the others, and when it answers."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, produced, records_in, values_in

from tarry.base import errors
from tarry.base.doors import received
from tarry.base.partition_row import PartitionRow
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tarry.protocol.messages.produce import ProduceResponse
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

INT64_MAX = 2**63 - 1
TRANSACTIONAL = 0x10
CONTROL = 0x20
APPEND_TIME = 0x08


@pytest.fixture
def user(hand: BrokerByHand) -> User:
    return User(hand)


# --- Codecs and sizes.


@pytest.mark.parametrize("version", [3, 6, 7, 13])
def test_zstd_is_refused_to_a_produce_that_cannot_name_it(user: User, version: int) -> None:
    answer = user.produce(a_batch(b"a", codec=ZSTD), version=version)

    expected = errors.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else errors.NONE
    assert answer.error_code == expected


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4])
def test_other_codecs_are_taken_from_the_oldest_produce(user: User, codec: int) -> None:
    assert user.produce(a_batch(b"a", codec=codec), version=3).error_code == errors.NONE
    assert values_in(user.fetch(0)) == [b"a"]


def test_a_batch_may_be_as_large_as_max_message_bytes_and_no_larger(user: User) -> None:
    batch = a_batch(b"x" * 1_000)
    user.create("exact", max_message_bytes=str(len(batch)))
    user.create("short", max_message_bytes=str(len(batch) - 1))

    taken = user.produce(batch, topic="exact")
    refused = user.produce(batch, topic="short")

    assert (taken.error_code, taken.base_offset) == (errors.NONE, 0)
    assert (refused.error_code, refused.base_offset) == (errors.MESSAGE_TOO_LARGE, -1)


# A record without a key, whose value has a length of two bytes: its fields beside the value.
FIELD_BYTES = 7


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
@pytest.mark.parametrize("settings", [{}, {"message_timestamp_type": "LogAppendTime"}])
@pytest.mark.parametrize("recompressed", ["producer", "lz4"])
def test_a_record_of_a_compressed_batch_may_be_so_large_and_no_larger(
    user: User, settings: dict[str, str], recompressed: str, codec: int
) -> None:
    limit = str(1_000 + FIELD_BYTES)
    terms = {"compression_type": recompressed, "max_decompressed_message_bytes": limit}
    user.create("strict", **terms, **settings)

    taken = user.produce(a_batch(b"a", b"x" * 1_000, codec=codec), topic="strict")
    refused = user.produce(a_batch(b"a", b"x" * 1_001, codec=codec), topic="strict")
    plain = user.produce(a_batch(b"x" * 2_000), topic="strict")

    assert (taken.error_code, plain.error_code) == (errors.NONE, errors.NONE)
    assert refused.error_code == errors.INVALID_RECORD
    assert [one.batch_index for one in refused.record_errors] == [1]
    assert "max.decompressed.message.bytes is 1007" in str(refused.error_message)


# --- Timestamps.


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize(
    ("config", "behind", "ahead"),
    [
        ({"message_timestamp_before_max_ms": "1000"}, 1_000, 3_600_000),
        ({"message_timestamp_after_max_ms": "1000"}, START_WALL_MS, 1_000),
    ],
)
def test_timestamps_may_lie_so_far_behind_and_ahead_and_no_farther(
    user: User, config: dict[str, str], behind: int, ahead: int, codec: int
) -> None:
    user.create("strict", **config)
    now = user.hand.now_wall_ms

    def code(time: int) -> int:
        batch = a_batch(b"a", b"b", times=(now, time), codec=codec)
        return user.produce(batch, topic="strict").error_code

    assert code(now - behind) == errors.NONE
    assert code(now + ahead) == errors.NONE
    assert code(now + ahead + 1) == errors.INVALID_TIMESTAMP
    if behind < START_WALL_MS:
        assert code(now - behind - 1) == errors.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_limits_of_timestamps_as_large_as_they_can_be(user: User, codec: int) -> None:
    limit = str(INT64_MAX)
    user.create(
        "loose", message_timestamp_before_max_ms=limit, message_timestamp_after_max_ms=limit
    )

    codes = [
        user.produce(a_batch(b"a", times=(time,), codec=codec), topic="loose").error_code
        for time in (0, -1, START_WALL_MS * 2, INT64_MAX)
    ]

    assert codes == [errors.NONE] * 4


def test_log_append_time_is_the_brokers_clock_and_is_answered(user: User) -> None:
    user.create("stamped", message_timestamp_type="LogAppendTime")
    user.hand.turn(after_ms=77)
    batch = a_batch(b"a", b"b", times=(5, 6))

    answer = user.produce(batch, topic="stamped")
    records = records_in(user.fetch(0, topic="stamped"))

    assert answer.log_append_time_ms == START_WALL_MS + 77
    assert [record.timestamp for record in records] == [START_WALL_MS + 77] * 2
    assert [record.value for record in records] == [b"a", b"b"]


def test_log_append_time_of_a_compressed_batch(user: User) -> None:
    user.create("stamped", message_timestamp_type="LogAppendTime")

    answer = user.produce(a_batch(b"a", b"b", times=(5, 6), codec=GZIP), topic="stamped")
    records = records_in(user.fetch(0, topic="stamped"))

    assert answer.log_append_time_ms == START_WALL_MS
    assert [record.timestamp for record in records] == [START_WALL_MS] * 2


def test_a_retried_batch_is_answered_with_the_append_time_of_its_first_try(user: User) -> None:
    user.create("stamped", message_timestamp_type="LogAppendTime")
    batch = a_batch(b"a", producer_id=7)
    first = user.produce(batch, topic="stamped")
    user.hand.turn(after_ms=400)

    again = user.produce(batch, topic="stamped")

    assert (again.error_code, again.base_offset) == (errors.NONE, first.base_offset)
    assert again.log_append_time_ms == first.log_append_time_ms == START_WALL_MS


def test_with_create_time_no_append_time_is_answered(user: User) -> None:
    assert user.produce(a_batch(b"a")).log_append_time_ms == -1


def test_limits_of_timestamps_do_not_concern_log_append_time(user: User) -> None:
    user.create(
        "stamped",
        message_timestamp_type="LogAppendTime",
        message_timestamp_before_max_ms="0",
        message_timestamp_after_max_ms="0",
    )

    assert user.produce(a_batch(b"a", times=(5,)), topic="stamped").error_code == errors.NONE


# --- What is not there yet.


@pytest.mark.parametrize(
    ("attributes", "error_code"),
    [
        (TRANSACTIONAL, errors.INVALID_TXN_STATE),
        (CONTROL, errors.INVALID_RECORD),
        (CONTROL | TRANSACTIONAL, errors.INVALID_RECORD),
        (APPEND_TIME, errors.INVALID_TIMESTAMP),
        (5, errors.INVALID_RECORD),
    ],
)
def test_batches_that_are_for_no_client_or_not_yet(
    user: User, attributes: int, error_code: int
) -> None:
    refused = user.produce(a_batch(b"a", producer_id=7, attributes=attributes))
    after = user.produce(a_batch(b"b"))

    assert (refused.error_code, refused.base_offset) == (error_code, -1)
    assert refused.error_message
    assert after.base_offset == 0


# --- Acknowledgement.


def test_without_acks_there_is_no_answer_and_later_ones_are_not_held_back(user: User) -> None:
    client = user.client
    request = user.produce_request(a_batch(b"a"), acks=0)
    silent = client.encode(api_keys.PRODUCE, 11, request)
    asked = client.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())

    client.send_bytes(silent + asked)
    user.hand.settle()

    (answer,) = user.answers()
    assert isinstance(answer, ApiVersionsResponse)
    assert values_in(user.fetch(0)) == [b"a"]


@pytest.mark.parametrize(
    ("acks", "error_code"), [(-1, errors.NOT_ENOUGH_REPLICAS), (1, errors.NONE)]
)
def test_too_few_replicas_in_sync_refuse_only_who_asks_for_all(
    user: User, acks: int, error_code: int
) -> None:
    user.create("safe", min_insync_replicas="2")
    # Another broker has the partition as well, and is behind.
    row = PartitionRow(1, 0, -1, 0, [1, 2], [1])
    user.hand.broker.topics["safe"].partitions[0].leadership.take_row(row, True)

    answer = user.produce(a_batch(b"a"), topic="safe", acks=acks)

    assert answer.error_code == error_code
    # The high watermark rests meanwhile, as in Kafka, so records of one replica are not read.
    partition = user.hand.broker.topics["safe"].partitions[0]
    assert (partition.high_watermark, partition.log.written_end_offset) == (
        0,
        1 if acks == 1 else 0,
    )


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_retried_batch_is_answered_only_when_its_first_try_is_durable(
    user: User, acks: int
) -> None:
    batch = a_batch(b"a", b"b", producer_id=7)
    other = User(user.hand)

    user.send_produce(batch, acks=acks)
    other.send_produce(batch, acks=acks)
    before = user.answers() + other.answers()
    user.hand.settle()
    after = user.answers() + other.answers()

    assert before == []
    assert [(produced(each)[0].error_code, produced(each)[0].base_offset) for each in after] == [
        (errors.NONE, 0),
        (errors.NONE, 0),
    ]
    assert values_in(user.fetch(0)) == [b"a", b"b"]


def test_partitions_of_one_request_succeed_and_fail_on_their_own(user: User) -> None:
    user.create("wide", 2, max_message_bytes="500")
    request = user.produce_request(
        a_batch(b"a"), a_batch(b"x" * 500), None, topic="wide", indexes=(0, 1, 2)
    )

    answers = produced(user.client.ask(api_keys.PRODUCE, 11, request))

    assert [each.error_code for each in answers] == [
        errors.NONE,
        errors.MESSAGE_TOO_LARGE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_partition_without_records_is_refused(user: User) -> None:
    request = user.produce_request(None)

    (answer,) = produced(user.client.ask(api_keys.PRODUCE, 11, request))

    assert answer.error_code == errors.INVALID_RECORD


@pytest.mark.parametrize("is_produce_first", [True, False])
def test_a_waiting_produce_is_answered_with_an_error_when_its_topic_is_deleted(
    user: User, is_produce_first: bool
) -> None:
    hand = user.hand
    other = User(hand)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=ORDERS)], timeout_ms=5_000)
    frames = [
        received(
            user.client.connection_id,
            user.client.encode(api_keys.PRODUCE, 11, user.produce_request(a_batch(b"a"))),
        ),
        received(
            other.client.connection_id, other.client.encode(api_keys.DELETE_TOPICS, 6, deletion)
        ),
    ]

    hand.turn(*(frames if is_produce_first else reversed(frames)))
    hand.settle()

    (answer,) = user.answers()
    assert produced(answer)[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert hand.broker.produces.purgatory.delayed == 0


def test_a_produce_that_the_disk_keeps_waiting_is_told_so_and_its_records_stay(
    user: User,
) -> None:
    user.send_produce(a_batch(b"a"), timeout_ms=300)

    user.hand.turn(after_ms=299)
    early = user.answers()
    user.hand.turn(after_ms=1)
    (late,) = user.answers()
    user.hand.settle()

    assert early == []
    assert (produced(late)[0].error_code, produced(late)[0].base_offset) == (
        errors.REQUEST_TIMED_OUT,
        -1,
    )
    assert values_in(user.fetch(0)) == [b"a"]


# --- The disk is full.


def test_a_full_disk_refuses_produces_and_serves_reads_and_recovers_by_itself(user: User) -> None:
    disk = user.hand.disk
    user.produce(a_batch(b"kept"))
    disk.capacity_bytes = disk.used_bytes() + 20

    full = user.produce(a_batch(b"lost", producer_id=7))
    read = user.fetch(0)
    disk.heal()
    retried = user.produce(a_batch(b"lost", producer_id=7))

    assert (full.error_code, full.base_offset) == (errors.KAFKA_STORAGE_ERROR, -1)
    assert values_in(read) == [b"kept"]
    assert (retried.error_code, retried.base_offset) == (errors.NONE, 1)
    assert values_in(user.fetch(0)) == [b"kept", b"lost"]


def test_a_batch_and_its_retry_in_one_turn_fail_together_when_the_disk_is_full(
    user: User,
) -> None:
    hand = user.hand
    other = User(hand)
    batch = a_batch(b"a", producer_id=7)
    hand.disk.fail_writes(1, path_part="orders-0")
    frames = [
        received(
            each.client.connection_id,
            each.client.encode(api_keys.PRODUCE, 11, each.produce_request(batch)),
        )
        for each in (user, other)
    ]

    hand.turn(*frames)
    hand.settle()
    codes = [produced(each)[0].error_code for each in user.answers() + other.answers()]
    again = user.produce(batch)

    assert codes == [errors.KAFKA_STORAGE_ERROR] * 2
    assert (again.error_code, again.base_offset) == (errors.NONE, 0)


def test_a_log_that_cannot_be_written_does_not_fail_another_of_the_same_turn(user: User) -> None:
    user.create("wide", 2)
    user.hand.disk.fail_writes(1, path_part="wide-0")
    request = user.produce_request(a_batch(b"a"), a_batch(b"b"), topic="wide")

    answer = user.client.ask(api_keys.PRODUCE, 11, request)

    assert isinstance(answer, ProduceResponse)
    assert [each.error_code for each in produced(answer)] == [
        errors.KAFKA_STORAGE_ERROR,
        errors.NONE,
    ]
