"""What a fetch is refused for, how much it gets, and what ends its wait."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, values_in

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse, ReplicaState
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.compression import GZIP, ZSTD

UNKNOWN_ID = bytes(range(16))


@pytest.fixture
def user(hand: BrokerByHand) -> User:
    return User(hand)


# --- Leader epochs and ids.


@pytest.mark.parametrize("version", [9, 12, 18])
def test_a_reader_with_another_leader_epoch_must_look_again(
    hand: BrokerByHand, version: int
) -> None:
    User(hand).produce(a_batch(b"a"))
    hand.crash()
    user = User(hand)

    codes = [user.fetch(0, version=version, epoch=epoch).error_code for epoch in (-1, 0, 1, 2)]

    assert codes == [
        errors.NONE,
        errors.FENCED_LEADER_EPOCH,
        errors.NONE,
        errors.UNKNOWN_LEADER_EPOCH,
    ]


def test_a_fenced_reader_is_told_the_leader_that_it_should_know(hand: BrokerByHand) -> None:
    hand.crash()

    answer = User(hand).fetch(0, version=12, epoch=0)

    assert answer.current_leader is not None
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)


def test_a_topic_id_that_is_not_known(user: User) -> None:
    answer = user.fetch(0, version=13, topic_id=UNKNOWN_ID)

    assert answer.error_code == errors.UNKNOWN_TOPIC_ID


def test_after_delete_and_create_the_old_id_is_unknown_and_the_new_topic_is_empty(
    user: User,
) -> None:
    user.produce(a_batch(b"old"))
    old = user.topic_id()
    user.delete()
    user.create(ORDERS)

    by_old_id = user.fetch(0, version=13, topic_id=old)
    by_new_id = user.fetch(0, version=13)
    request = user.produce_request(a_batch(b"late"), version=13)
    request.topic_data[0].topic_id = old
    produced = user.client.ask(api_keys.PRODUCE, 13, request)

    assert user.topic_id() != old
    assert by_old_id.error_code == errors.UNKNOWN_TOPIC_ID
    assert (by_new_id.error_code, values_in(by_new_id), by_new_id.high_watermark) == (0, [], 0)
    assert produced.responses[0].partition_responses[0].error_code == errors.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_a_partition_that_is_not_there(user: User, version: int) -> None:
    answer = user.fetch(0, version=version, indexes=(7,))

    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [12, 13, 15, 18])
def test_who_calls_itself_a_replica_is_refused(user: User, version: int) -> None:
    # CVE-2018-1288: a client that poses as a follower must not move the high watermark.
    request = user.fetch_request(0, version=version)
    if version >= 15:
        request.replica_state = ReplicaState(replica_id=1, replica_epoch=1)
    else:
        request.replica_id = 1

    (answer,) = fetched(user.client.ask(api_keys.FETCH, version, request))

    assert answer.error_code == errors.NOT_LEADER_OR_FOLLOWER


# --- Limits.


def fill_three_partitions(user: User, count: int = 10) -> int:
    """`count` batches of one size in each partition of `wide`; the size of one."""
    user.create("wide", 3)
    batch = a_batch(b"x" * 100)
    for _ in range(count):
        user.client.ask(
            api_keys.PRODUCE, 11, user.produce_request(batch, batch, batch, topic="wide")
        )
    return len(batch)


def test_each_partition_returns_what_fits_into_its_limit(user: User) -> None:
    size = fill_three_partitions(user)

    answers = user.fetch_all(0, 0, 5, topic="wide", partition_bytes=2 * size + size // 2)

    assert [len(values_in(answer)) for answer in answers] == [2, 2, 2]


def test_all_partitions_together_return_what_fits_into_the_total(user: User) -> None:
    size = fill_three_partitions(user)

    answers = user.fetch_all(0, 0, 0, topic="wide", max_bytes=13 * size + 5)

    assert [len(values_in(answer)) for answer in answers] == [10, 3, 0]
    assert [answer.high_watermark for answer in answers] == [10, 10, 10]


@pytest.mark.parametrize("limit", [1, 0, -1, -(2**31)])
def test_only_the_first_partition_with_records_returns_a_batch_that_is_too_large(
    user: User, limit: int
) -> None:
    fill_three_partitions(user)

    answers = user.fetch_all(10, 0, 0, topic="wide", max_bytes=limit, partition_bytes=limit)

    assert [len(values_in(answer)) for answer in answers] == [0, 1, 0]


def test_the_broker_bounds_an_answer_whatever_the_client_asks() -> None:
    hand = BrokerByHand({"fetch.max.bytes": "1024"})
    user = User(hand)
    user.create(ORDERS)
    batch = a_batch(b"x" * 400)
    for _ in range(5):
        user.produce(batch)

    answer = user.fetch(0, max_bytes=2**31 - 1)

    assert len(values_in(answer)) == 2


def test_a_partition_that_is_asked_for_twice_is_answered_once(user: User) -> None:
    user.produce(a_batch(b"a"))

    answers = user.fetch_all(0, 1, indexes=(0, 0))

    assert [values_in(answer) for answer in answers] == [[b"a"]]


# --- Sessions and codecs.


@pytest.mark.parametrize("epoch", [-1, 0])
@pytest.mark.parametrize("version", [7, 12, 18])
def test_a_session_is_declined_with_session_id_0(user: User, version: int, epoch: int) -> None:
    request = user.fetch_request(0, version=version)
    request.session_epoch = epoch

    answer = user.client.ask(api_keys.FETCH, version, request)

    assert isinstance(answer, FetchResponse)
    assert (answer.error_code, answer.session_id) == (errors.NONE, 0)
    assert len(answer.responses) == 1


def test_a_session_that_nobody_has_opened_is_not_found(user: User) -> None:
    request = user.fetch_request(0)
    request.session_id = 77
    request.session_epoch = 3

    answer = user.client.ask(api_keys.FETCH, 12, request)

    assert isinstance(answer, FetchResponse)
    assert (answer.error_code, answer.responses) == (errors.FETCH_SESSION_ID_NOT_FOUND, [])


def test_zstd_is_refused_to_a_fetch_that_cannot_name_it(user: User) -> None:
    user.produce(a_batch(b"plain"))
    user.produce(a_batch(b"squeezed", codec=ZSTD))

    old = user.fetch(0, version=9)
    new = user.fetch(0, version=10)

    assert (old.error_code, values_in(old)) == (errors.UNSUPPORTED_COMPRESSION_TYPE, [])
    assert (new.error_code, values_in(new)) == (errors.NONE, [b"plain", b"squeezed"])


def test_other_codecs_are_served_to_the_oldest_fetch(user: User) -> None:
    user.produce(a_batch(b"squeezed", codec=GZIP))

    assert values_in(user.fetch(0, version=4)) == [b"squeezed"]


# --- Waiting.


@pytest.mark.parametrize(
    ("version", "error_code"),
    [(12, errors.UNKNOWN_TOPIC_OR_PARTITION), (13, errors.UNKNOWN_TOPIC_ID)],
)
def test_a_waiting_fetch_is_woken_by_the_deletion_of_its_topic(
    user: User, version: int, error_code: int
) -> None:
    reader = User(user.hand)
    reader.send_fetch(0, version=version, max_wait_ms=60_000)
    assert reader.answers() == []

    user.delete()

    (answer,) = reader.answers()
    assert fetched(answer)[0].error_code == error_code
    assert user.hand.broker.fetches.purgatory.delayed == 0


def test_min_bytes_are_summed_over_the_partitions_up_to_their_limits(user: User) -> None:
    user.create("wide", 3)
    batch = a_batch(b"x" * 100)
    size = len(batch)
    reader = User(user.hand)
    reader.send_fetch(
        0, 0, 0, topic="wide", max_wait_ms=60_000, min_bytes=3 * size, partition_bytes=size
    )

    for _ in range(5):
        # However much is in one partition, its share is one batch.
        user.produce(batch, topic="wide")
    early = reader.answers()
    user.produce(batch, topic="wide", indexes=(1,))
    still_early = reader.answers()
    user.produce(batch, topic="wide", indexes=(2,))

    assert (early, still_early) == ([], [])
    (answer,) = reader.answers()
    assert [len(values_in(each)) for each in fetched(answer)] == [1, 1, 1]


@pytest.mark.parametrize("comes_later", [False, True])
def test_a_first_batch_beyond_its_limit_counts_whole_towards_the_minimum(
    user: User, comes_later: bool
) -> None:
    batch = a_batch(b"x" * 100)
    reader = User(user.hand)
    terms = {"max_wait_ms": 60_000, "min_bytes": len(batch), "partition_bytes": 10}

    if comes_later:
        reader.send_fetch(0, **terms)
        assert reader.answers() == []
        user.produce(batch)
    else:
        user.produce(batch)
        reader.send_fetch(0, **terms)

    (answer,) = reader.answers()
    assert values_in(fetched(answer)[0]) == [b"x" * 100]


def test_a_fetch_with_an_error_in_one_partition_does_not_wait(user: User) -> None:
    user.create("wide", 3)

    answers = user.fetch_all(0, 5, 0, topic="wide", max_wait_ms=60_000, min_bytes=1_000)

    assert [answer.error_code for answer in answers] == [0, errors.OFFSET_OUT_OF_RANGE, 0]


def test_a_fetch_of_nothing_does_not_wait(user: User) -> None:
    user.send_fetch(max_wait_ms=60_000)

    assert len(user.answers()) == 1


def test_a_waiting_reader_is_told_when_its_epoch_is_behind(user: User) -> None:
    reader = User(user.hand)
    reader.send_fetch(0, epoch=0, max_wait_ms=60_000)
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    assert reader.answers() == []

    partition.leadership.leader_epoch = 1
    user.produce(a_batch(b"a"))

    (answer,) = reader.answers()
    assert fetched(answer)[0].error_code == errors.FENCED_LEADER_EPOCH


def test_a_reader_whose_epoch_ended_before_its_offset_is_told_where(hand: BrokerByHand) -> None:
    user = User(hand)
    user.produce(a_batch(b"a", b"b"))
    hand.crash()
    user = User(hand)
    user.produce(a_batch(b"c", b"d"))

    sound = user.fetch(2, version=12, last_epoch=0)
    diverged = user.fetch(3, version=12, last_epoch=0)

    assert values_in(sound) == [b"c", b"d"]
    assert diverged.diverging_epoch is not None
    assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (0, 2)
    assert values_in(diverged) == []


def test_a_fetch_that_waits_for_more_ends_when_the_log_goes_on_in_the_next_segment(
    hand: BrokerByHand, user: User
) -> None:
    """One read stays in one segment: what it waits for can never come to it."""
    user.create("rolling", segment_index_bytes="12", index_interval_bytes="0")
    for number in range(2):
        user.produce(a_batch(b"%d" % number), topic="rolling")
    reader = User(hand)
    reader.send_fetch(0, topic="rolling", min_bytes=100_000, max_wait_ms=60_000)
    hand.settle()
    assert reader.answers() == []
    assert len(hand.broker.topics["rolling"].partitions[0].log.segments) == 1

    user.produce(a_batch(b"next"), topic="rolling")

    (answer,) = reader.answers()
    assert len(hand.broker.topics["rolling"].partitions[0].log.segments) == 2
    assert values_in(fetched(answer)[0]) == [b"0", b"1"]


def test_a_fetch_during_a_flush_ends_where_the_flush_does(hand: BrokerByHand, user: User) -> None:
    """What was appended since the flush began is written and not yet anybody's to read."""
    writer, other = User(hand), User(hand)
    user.produce(a_batch(b"old"))
    writer.send_produce(a_batch(b"flushed"))
    hand.turn()
    (flush_id,) = hand.disk.pending_flushes()
    other.send_produce(a_batch(b"written"))
    hand.turn()
    assert hand.broker.topics[ORDERS].partitions[0].log.written_end_offset == 3

    hand.turn(hand.disk.complete_flush(flush_id))
    user.send_fetch(0)
    (answer,) = user.answers()
    first = fetched(answer)[0]
    hand.settle()

    assert (first.high_watermark, values_in(first)) == (2, [b"old", b"flushed"])
    assert values_in(user.fetch(0)) == [b"old", b"flushed", b"written"]


def test_an_old_client_is_told_of_zstd_at_once_though_there_are_few_bytes(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    user.produce(a_batch(b"a", codec=ZSTD))
    user.send_fetch(0, version=9, max_wait_ms=60_000, min_bytes=1_000_000)
    (answer,) = user.answers()
    assert fetched(answer)[0].error_code == errors.UNSUPPORTED_COMPRESSION_TYPE
