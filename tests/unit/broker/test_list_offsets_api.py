"""ListOffsets and OffsetForLeaderEpoch over frames: ends, times, epochs, and who asks wrongly."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, values_in

from tarry.base import errors
from tarry.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsResponse
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6


@pytest.fixture
def user(hand: BrokerByHand) -> User:
    return User(hand)


def found(user: User, timestamp: int, **terms: int) -> tuple[int, int, int]:
    """(error, offset, timestamp)."""
    answer = user.list_offsets(timestamp, **terms)
    return answer.error_code, answer.offset, answer.timestamp


@pytest.mark.parametrize("version", range(1, 12))
def test_both_ends_in_every_version(user: User, version: int) -> None:
    user.produce(a_batch(b"a", b"b", b"c"))

    assert found(user, LATEST, version=version) == (errors.NONE, 3, -1)
    assert found(user, EARLIEST, version=version) == (errors.NONE, 0, -1)


def test_the_end_is_what_a_reader_may_see(user: User) -> None:
    user.produce(a_batch(b"a"))
    writer = User(user.hand)
    writer.send_produce(a_batch(b"b", times=(START_WALL_MS + 9,)))
    reader = User(user.hand)

    # The second record is written and not yet flushed.
    offsets = []
    for timestamp in (LATEST, MAX_TIMESTAMP, START_WALL_MS + 9):
        reader.send_list_offsets(timestamp)
        (answer,) = reader.answers()
        assert isinstance(answer, ListOffsetsResponse)
        offsets.append(answer.topics[0].partitions[0].offset)

    assert offsets == [1, 0, -1]


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_time_finds_the_exact_record_also_inside_a_compressed_batch_and_out_of_order(
    user: User, codec: int
) -> None:
    t = START_WALL_MS
    user.produce(a_batch(b"0", b"1", b"2", times=(t + 10, t + 50, t + 20), codec=codec))
    user.produce(a_batch(b"3", b"4", b"5", times=(t + 5, t + 40, t + 60), codec=codec))

    assert [found(user, t + at)[1:] for at in (0, 10, 11, 50, 51, 60)] == [
        (0, t + 10),
        (0, t + 10),
        (1, t + 50),
        (1, t + 50),
        (5, t + 60),
        (5, t + 60),
    ]
    assert found(user, t + 61) == (errors.NONE, -1, -1)
    assert found(user, MAX_TIMESTAMP) == (errors.NONE, 5, t + 60)


def test_an_empty_log_has_ends_and_no_times(user: User) -> None:
    assert found(user, LATEST) == (errors.NONE, 0, -1)
    assert found(user, EARLIEST) == (errors.NONE, 0, -1)
    assert found(user, MAX_TIMESTAMP) == (errors.NONE, -1, -1)
    assert found(user, 0) == (errors.NONE, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [
        (MAX_TIMESTAMP, 6),
        (EARLIEST_LOCAL, 7),
        (LATEST_TIERED, 8),
        (EARLIEST_PENDING_UPLOAD, 10),
        (-7, 11),
    ],
)
def test_a_special_time_that_the_version_does_not_know(
    user: User, timestamp: int, version: int
) -> None:
    assert found(user, timestamp, version=version) == (errors.UNSUPPORTED_VERSION, -1, -1)


def test_nothing_is_tiered(user: User) -> None:
    user.produce(a_batch(b"a"))

    assert found(user, EARLIEST_LOCAL) == (errors.NONE, 0, -1)
    assert found(user, LATEST_TIERED) == (errors.NONE, -1, -1)
    assert found(user, EARLIEST_PENDING_UPLOAD, version=11) == (errors.NONE, -1, -1)


def test_a_partition_that_is_asked_for_twice_is_refused_once_and_the_others_answered(
    user: User,
) -> None:
    user.create("wide", 2)
    asked = [
        ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=timestamp)
        for index, timestamp in ((0, LATEST), (1, LATEST), (0, EARLIEST))
    ]

    answers = user.list_offsets_of(asked, topic="wide")

    assert [(each.partition_index, each.error_code) for each in answers] == [
        (0, errors.INVALID_REQUEST),
        (1, errors.NONE),
    ]


def test_topics_and_partitions_that_are_not_there(user: User) -> None:
    asked = ListOffsetsPartition(partition_index=9, current_leader_epoch=-1, timestamp=LATEST)

    assert user.list_offsets_of([asked])[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert user.list_offsets(LATEST, topic="nobody").error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


# --- Leader epochs.


def test_after_an_unclean_stop_every_leader_epoch_has_grown_by_one(hand: BrokerByHand) -> None:
    User(hand).create("wide", 3)
    for epoch in (1, 2):
        hand.crash()
        epochs = [
            partition.leadership.leader_epoch
            for name in ("orders", "wide")
            for partition in hand.broker.topics[name].partitions.values()
        ]
        assert epochs == [epoch] * 4


def test_after_a_clean_stop_the_leader_epochs_are_the_same(hand: BrokerByHand) -> None:
    hand.crash()
    hand.stop()
    hand.start()

    assert hand.broker.topics[ORDERS].partitions[0].leadership.leader_epoch == 1


def test_offsets_are_answered_with_the_epoch_of_their_records(hand: BrokerByHand) -> None:
    t = START_WALL_MS
    User(hand).produce(a_batch(b"a", times=(t,)))
    hand.crash()
    user = User(hand)
    user.produce(a_batch(b"b", times=(t + 5,)))

    answers = [user.list_offsets(at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP, t, t + 1)]

    assert [(each.offset, each.leader_epoch) for each in answers] == [
        (0, 0),
        (2, 1),
        (1, 1),
        (0, 0),
        (1, 1),
    ]


def test_who_knows_another_epoch_must_look_again(hand: BrokerByHand) -> None:
    hand.crash()
    user = User(hand)

    offsets = [user.list_offsets(LATEST, epoch=epoch).error_code for epoch in (0, 1, 2)]
    ends = [user.end_of_epoch(0, current=epoch).error_code for epoch in (0, 1, 2)]

    expected = [errors.FENCED_LEADER_EPOCH, errors.NONE, errors.UNKNOWN_LEADER_EPOCH]
    assert offsets == expected
    assert ends == expected


def test_an_epoch_ends_where_the_next_one_begins(hand: BrokerByHand) -> None:
    User(hand).produce(a_batch(b"a", b"b"))
    hand.crash()
    user = User(hand)
    before = [user.end_of_epoch(epoch) for epoch in (0, 1)]
    user.produce(a_batch(b"c"))
    after = [user.end_of_epoch(epoch) for epoch in (0, 1, 2)]

    assert [(each.leader_epoch, each.end_offset) for each in before] == [(0, 2), (1, 2)]
    assert [(each.leader_epoch, each.end_offset) for each in after] == [(0, 2), (1, 3), (-1, -1)]


def test_the_end_of_an_epoch_of_a_partition_that_is_not_there(user: User) -> None:
    assert user.end_of_epoch(0, index=9).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert user.end_of_epoch(0, topic="nobody").error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_records_that_were_never_durable_are_gone_with_their_epoch(hand: BrokerByHand) -> None:
    user = User(hand)
    user.produce(a_batch(b"a"))
    user.send_produce(a_batch(b"never acknowledged"))
    hand.crash()
    user = User(hand)

    end = user.end_of_epoch(0)
    read = user.fetch(0)

    # The disk may have kept what was not flushed; whatever it kept is one truth for everybody.
    assert end.end_offset == read.high_watermark
    assert len(values_in(read)) == end.end_offset
