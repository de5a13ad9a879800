"""DeleteRecords: the log start moves durably before the answer, and never back."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator, deleted, operator
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, values_in

from tarry.base import errors
from tarry.base.doors import stop_requested
from tarry.log.batch_walk import Flaw
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

EARLIEST, LATEST = -2, -1
HIGH_WATERMARK = -1


@pytest.fixture
def someone() -> Operator:
    """An operator with the topic `orders` of two partitions, ten records in the first."""
    made = operator()
    made.create(ORDERS, 2)
    fill(made)
    return made


def fill(someone: User, topic: str = ORDERS) -> None:
    for number in range(10):
        someone.produce(a_batch(b"%d" % number), topic=topic)


def send(someone: Operator, *offsets: tuple[int, int], timeout_ms: int = 30_000) -> None:
    """Ask, and take no turn more than that."""
    request = someone.deletion(*offsets, timeout_ms=timeout_ms)
    someone.client.send(api_keys.DELETE_RECORDS, 2, request)


def pending(someone: Operator) -> tuple[int, int]:
    purgatory = someone.hand.broker.record_deletions.purgatory
    return purgatory.watched, purgatory.delayed


def test_a_log_begins_at_the_offset_that_is_asked_for(someone: Operator) -> None:
    answer = someone.delete_records((0, 4))

    assert answer == [(4, errors.NONE)]
    assert someone.list_offsets(EARLIEST).offset == 4
    assert someone.fetch(3).error_code == errors.OFFSET_OUT_OF_RANGE
    assert values_in(someone.fetch(4))[0] == b"4"
    assert pending(someone) == (0, 0)


def test_all_that_may_be_read_is_deleted_on_request(someone: Operator) -> None:
    answer = someone.delete_records((0, HIGH_WATERMARK), (1, HIGH_WATERMARK))

    assert answer == [(10, errors.NONE), (0, errors.NONE)]
    assert someone.list_offsets(EARLIEST).offset == someone.list_offsets(LATEST).offset == 10
    assert someone.produce(a_batch(b"next")).base_offset == 10


@pytest.mark.parametrize("offset", [4, HIGH_WATERMARK])
def test_what_is_deleted_stays_deleted_after_a_loss_of_power(
    someone: Operator, offset: int
) -> None:
    ((low_watermark, _),) = someone.delete_records((0, offset))

    someone.hand.crash()
    again = User(someone.hand)

    assert again.list_offsets(EARLIEST).offset == low_watermark
    assert again.list_offsets(LATEST).offset == 10
    assert again.produce(a_batch(b"next")).base_offset == 10


def test_nothing_is_answered_or_hidden_before_it_is_durable(someone: Operator) -> None:
    send(someone, (0, 4))
    someone.hand.turn(after_ms=1)

    log = someone.hand.broker.topics[ORDERS].partitions[0].log
    early = (someone.answers(), log.log_start_offset, pending(someone))
    someone.hand.settle()

    assert early == ([], 0, (1, 1))
    assert deleted(someone.answers()[0]) == [(4, errors.NONE)]


def test_a_deletion_that_a_loss_of_power_cuts_short_is_done_or_not_at_every_step() -> None:
    for steps in range(6):
        someone = operator()
        someone.create(ORDERS)
        fill(someone)
        send(someone, (0, 4))
        someone.hand.turn(after_ms=1)
        for _ in range(steps):
            someone.hand.turn(*someone.hand.disk.complete_flushes())
        answers = someone.answers()

        someone.hand.crash()

        start = User(someone.hand).list_offsets(EARLIEST).offset
        assert start in (0, 4), steps
        assert start == 4 or not answers, steps


def test_segments_below_the_new_start_leave_the_disk(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, segment_ms="1")
    for _ in range(3):
        someone.hand.turn(after_ms=10)
        someone.produce(a_batch(b"later", times=(someone.hand.now_wall_ms,)))
    before = [path for path in someone.hand.disk.paths("orders-0") if path.endswith(".log")]

    someone.delete_records((0, HIGH_WATERMARK))

    after = [path for path in someone.hand.disk.paths("orders-0") if path.endswith(".log")]
    assert len(before) == 4
    assert after == before[-1:]


def test_a_log_never_begins_earlier_than_it_did(someone: Operator) -> None:
    someone.delete_records((0, 6))

    answer = someone.delete_records((0, 2))

    assert answer == [(6, errors.NONE)]
    assert someone.list_offsets(EARLIEST).offset == 6


def test_of_a_partition_named_twice_the_last_offset_counts(someone: Operator) -> None:
    answer = someone.delete_records((0, 8), (0, 3))

    assert answer == [(3, errors.NONE)]
    assert someone.list_offsets(EARLIEST).offset == 3


def test_deletions_that_come_during_a_round_are_answered_by_the_next(someone: Operator) -> None:
    other = Operator(someone.hand)
    send(someone, (0, 3))
    someone.hand.turn(after_ms=1)

    # The round has begun: its recovery points do not know of this one.
    send(other, (0, 7))
    someone.hand.turn(after_ms=1)
    someone.hand.settle()
    early = other.answers()
    someone.hand.turn(after_ms=1)
    someone.hand.settle()

    assert deleted(someone.answers()[0]) == [(3, errors.NONE)]
    assert early == []
    assert deleted(other.answers()[0]) == [(7, errors.NONE)]


def test_a_fetch_that_waits_where_nothing_is_any_more_ends_with_an_error(
    someone: Operator,
) -> None:
    reader = User(someone.hand)
    reader.send_fetch(2, max_wait_ms=60_000, min_bytes=1_000_000)

    someone.delete_records((0, 5))

    (answer,) = reader.answers()
    assert fetched(answer)[0].error_code == errors.OFFSET_OUT_OF_RANGE


def test_a_deletion_whose_topic_is_deleted_meanwhile_is_answered(someone: Operator) -> None:
    send(someone, (0, 4))

    Operator(someone.hand).delete(ORDERS)
    someone.hand.settle()

    assert deleted(someone.answers()[0]) == [(-1, errors.UNKNOWN_TOPIC_OR_PARTITION)]
    assert pending(someone) == (0, 0)


def test_a_deletion_that_the_disk_does_not_take_times_out_and_may_be_asked_again(
    someone: Operator,
) -> None:
    someone.hand.disk.fail_writes(1_000, "recovery-points")
    send(someone, (0, 4), timeout_ms=1_500)
    for _ in range(4):
        someone.hand.turn(after_ms=400)
        someone.hand.settle()
    (answer,) = someone.answers()
    start = someone.list_offsets(EARLIEST).offset

    someone.hand.disk.heal()

    assert deleted(answer) == [(-1, errors.REQUEST_TIMED_OUT)]
    assert start == 0
    assert someone.delete_records((0, 4)) == [(4, errors.NONE)]


def test_a_deletion_that_a_round_had_to_leave_out_is_in_the_next_a_second_later(
    someone: Operator,
) -> None:
    someone.hand.disk.fail_writes(1, "recovery-points")
    send(someone, (0, 4))
    someone.hand.turn(after_ms=1)
    someone.hand.settle()
    early = someone.answers()

    for _ in range(3):
        someone.hand.turn(after_ms=400)
        someone.hand.settle()

    assert early == []
    assert deleted(someone.answers()[0]) == [(4, errors.NONE)]


def test_a_deletion_without_time_still_gets_the_answer_of_one_that_went_well(
    someone: Operator,
) -> None:
    assert someone.delete_records((0, 4), timeout_ms=0) == [(4, errors.NONE)]
    assert someone.delete_records((0, 5), timeout_ms=-(2**31)) == [(5, errors.NONE)]


def test_a_damaged_log_keeps_its_start_and_says_so(someone: Operator) -> None:
    someone.hand.broker.topics[ORDERS].partitions[0].log.note_flaw(Flaw("torn", 8, 0))

    assert someone.delete_records((0, 4)) == [(-1, errors.KAFKA_STORAGE_ERROR)]


def test_a_stop_answers_a_deletion_that_waits(someone: Operator) -> None:
    send(someone, (0, 4))

    someone.hand.turn(stop_requested())
    someone.hand.turn(after_ms=1)
    someone.hand.settle()
    (answer,) = someone.answers()
    someone.hand.start()

    assert deleted(answer) == [(4, errors.NONE)]
    assert User(someone.hand).list_offsets(EARLIEST).offset == 4


@pytest.mark.parametrize(
    ("index", "offset", "error_code"),
    [
        (0, 11, errors.OFFSET_OUT_OF_RANGE),
        (0, 2**63 - 1, errors.OFFSET_OUT_OF_RANGE),
        (0, -2, errors.OFFSET_OUT_OF_RANGE),
        (0, -(2**63), errors.OFFSET_OUT_OF_RANGE),
        (2, 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (2**31 - 1, 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_deleted_is_refused_at_once(
    someone: Operator, index: int, offset: int, error_code: int
) -> None:
    send(someone, (index, offset))

    (answer,) = someone.answers()
    assert deleted(answer) == [(-1, error_code)]
    assert pending(someone) == (0, 0)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("delete", (4, errors.NONE)),
        ("compact,delete", (4, errors.NONE)),
        ("compact", (-1, errors.POLICY_VIOLATION)),
        # Neither deleted nor compacted by itself, so it can be cut, as in Kafka since 4.2.
        ("", (4, errors.NONE)),
    ],
)
def test_what_is_compacted_alone_loses_no_records(
    someone: Operator, policy: str, expected: tuple[int, int]
) -> None:
    someone.set(TOPIC, ORDERS, cleanup_policy=policy)

    assert someone.delete_records((0, 4)) == [expected]


def test_records_of_a_coordinator_are_not_deleted(someone: Operator) -> None:
    someone.create("__consumer_offsets")

    answer = someone.delete_records((0, 0), topic="__consumer_offsets")

    assert answer == [(-1, errors.INVALID_TOPIC_EXCEPTION)]


def test_as_many_partitions_as_a_request_holds_are_answered_each_and_others_go_on(
    someone: Operator,
) -> None:
    answer = someone.delete_records(*((index, 1) for index in range(99_999)))

    assert len(answer) == 99_999
    assert answer[0] == (1, errors.NONE)
    assert {error_code for _, error_code in answer[2:]} == {errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert someone.produce(a_batch(b"a")).error_code == errors.NONE


# -- DescribeLogDirs


def described(
    someone: Operator, topics: list[tuple[str, list[int]]] | None
) -> tuple[DescribeLogDirsResponse, dict[tuple[str, int], int]]:
    asked = None if topics is None else [DescribableLogDirTopic(*each) for each in topics]
    answer = someone.client.ask(api_keys.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(asked))
    assert isinstance(answer, DescribeLogDirsResponse)
    return answer, {
        (topic.name, part.partition_index): part.partition_size
        for topic in answer.results[0].topics
        for part in topic.partitions
    }


def test_the_directory_tells_the_size_of_every_partition_and_its_room(someone: Operator) -> None:
    someone.create("bills")
    someone.hand.disk.capacity_bytes = 1 << 20

    answer, sizes = described(someone, None)

    (result,) = answer.results
    log = someone.hand.broker.topics[ORDERS].partitions[0].log
    assert sizes == {("bills", 0): 0, (ORDERS, 0): log.size_bytes, (ORDERS, 1): 0}
    assert log.size_bytes > 500
    assert (result.error_code, result.log_dir) == (errors.NONE, "./tarry-data")
    assert result.total_bytes == 1 << 20
    assert result.usable_bytes == someone.hand.disk.free_bytes() < result.total_bytes


def test_of_what_is_not_there_the_directory_tells_nothing(someone: Operator) -> None:
    _, sizes = described(someone, [(ORDERS, [1, 1, 2, -1]), ("nope", [0]), ("x" * 32_000, [0])])

    assert sizes == {(ORDERS, 1): 0}


def test_a_partition_shrinks_when_its_segments_are_deleted(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, segment_ms="1")
    someone.hand.turn(after_ms=10)
    someone.produce(a_batch(b"later", times=(someone.hand.now_wall_ms,)))
    _, before = described(someone, None)

    someone.delete_records((0, HIGH_WATERMARK))

    _, after = described(someone, None)
    assert 0 < after[ORDERS, 0] < before[ORDERS, 0]
