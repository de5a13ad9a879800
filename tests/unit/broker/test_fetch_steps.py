"""Fetches of thousands of partitions, which are looked up, read and answered in steps."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, a_batch, fetched, values_in

from tarry.base import errors
from tarry.base.doors import disconnected, stop_requested
from tarry.base.limits import FETCHED_LOGS_MAX, LONG_ANSWER_UNITS_PER_TURN
from tarry.broker.apis.fetch_steps import READS_PER_STEP, SHARE_PARTITIONS
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS, ROUND_UNITS
from tarry.broker.reads import FetchLimits, FetchStatus
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.fetch import FetchRequest, FetchTopic, PartitionData
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.compression import ZSTD
from tarry.wire.reader import window_of

WIDE = "wide"
MANY = LONG_REQUEST_ELEMENTS + 100
# The last step of a turn may cost as much as it reads.
UNITS_MAX = LONG_ANSWER_UNITS_PER_TURN + ROUND_UNITS + 3 * READS_PER_STEP


def fill(user: User, count: int, batch: bytes = b"") -> None:
    """Write a record into each of the first partitions."""
    window = window_of(batch or a_batch(b"one"))
    rows = [PartitionProduceData(index, window) for index in range(count)]
    user.client.ask(
        api_keys.PRODUCE,
        11,
        ProduceRequest(None, 1, 30_000, [TopicProduceData(WIDE, partition_data=rows)]),
    )


@pytest.fixture(scope="module")
def empty() -> BrokerByHand:
    """A broker with a topic of many partitions without records."""
    hand = BrokerByHand()
    User(hand).create(WIDE, MANY)
    return hand


@pytest.fixture(scope="module")
def full() -> BrokerByHand:
    """A broker with a topic of many partitions of one record each."""
    hand = BrokerByHand()
    User(hand).create(WIDE, MANY)
    fill(User(hand), MANY)
    return hand


def rows_of(user: User) -> list[PartitionData]:
    [answer] = user.answers()
    return fetched(answer)


def test_a_fetch_of_thousands_is_answered_in_steps_and_others_are_served_meanwhile(
    full: BrokerByHand,
) -> None:
    user, other = User(full), User(full)
    user.send_fetch(*[0] * MANY, topic=WIDE)

    turns = 0
    while full.broker.long_answers.has_work_left():
        other.client.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
        assert len(other.answers()) == 1
        assert full.broker.long_answers.units_spent <= UNITS_MAX
        turns += 1

    rows = rows_of(user)
    assert turns > MANY // UNITS_MAX
    assert [row.partition_index for row in rows] == list(range(MANY))
    assert {row.high_watermark for row in rows} == {1}


@pytest.mark.parametrize("version", [4, 6, 11, 12, 15, 16, 18])
def test_each_version_is_answered_in_steps_as_at_once(full: BrokerByHand, version: int) -> None:
    user = User(full)
    few = user.fetch_all(*[0] * 10, topic=WIDE, version=version)

    many = user.fetch_all(*[0] * MANY, topic=WIDE, version=version)

    assert [vars_of(each) for each in many[:10]] == [vars_of(each) for each in few]


def vars_of(row: PartitionData) -> tuple[object, ...]:
    return (
        row.partition_index,
        row.error_code,
        row.high_watermark,
        row.last_stable_offset,
        row.log_start_offset,
        row.preferred_read_replica,
        values_in(row),
    )


def test_so_many_partitions_have_records_in_one_answer_and_the_first_come_first(
    full: BrokerByHand,
) -> None:
    user = User(full)

    rows = user.fetch_all(*[0] * MANY, topic=WIDE)

    found = [values_in(row) for row in rows]
    assert found[:FETCHED_LOGS_MAX] == [[b"one"]] * FETCHED_LOGS_MAX
    assert found[FETCHED_LOGS_MAX:] == [[]] * (MANY - FETCHED_LOGS_MAX)


def test_a_fetch_in_steps_keeps_to_its_bytes(full: BrokerByHand) -> None:
    user = User(full)
    size = len(a_batch(b"one"))

    rows = user.fetch_all(*[0] * MANY, topic=WIDE, max_bytes=3 * size)

    found = [values_in(row) for row in rows]
    assert found == [[b"one"]] * 3 + [[]] * (MANY - 3)


def test_a_fetch_of_thousands_waits_for_a_record_of_any_of_them(empty: BrokerByHand) -> None:
    user, writer = User(empty), User(empty)
    user.send_fetch(*[0] * MANY, topic=WIDE, max_wait_ms=60_000)
    empty.settle()
    waiting = user.answers()
    last = (MANY - 1,)

    end = writer.fetch(0, topic=WIDE, indexes=last).high_watermark
    request = writer.produce_request(a_batch(b"new"), topic=WIDE, indexes=last)
    writer.client.ask(api_keys.PRODUCE, 11, request)
    empty.settle()

    assert (waiting, end) == ([], 0)
    assert values_in(rows_of(user)[-1]) == [b"new"]


@pytest.mark.interpreted
def test_a_record_costs_a_fetch_of_thousands_a_look_at_one_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand = BrokerByHand()
    user, writer = User(hand), User(hand)
    user.create(WIDE, MANY)
    user.send_fetch(*[0] * MANY, topic=WIDE, max_wait_ms=60_000, min_bytes=1 << 30)
    hand.settle()
    looks = 0
    look = FetchStatus.look

    def counted(self: FetchStatus, limits: FetchLimits, *, is_first: bool) -> int:
        nonlocal looks
        looks += 1
        return look(self, limits, is_first=is_first)

    monkeypatch.setattr(FetchStatus, "look", counted)
    request = writer.produce_request(a_batch(b"a"), topic=WIDE, indexes=(5,))
    writer.client.ask(api_keys.PRODUCE, 11, request)

    assert 0 < looks <= SHARE_PARTITIONS
    hand.turn(disconnected(user.client.connection_id))
    assert hand.broker.fetches.purgatory.delayed == 0


def test_what_all_shares_have_together_is_enough() -> None:
    hand = BrokerByHand()
    user, writer = User(hand), User(hand)
    user.create(WIDE, MANY)
    size = len(a_batch(b"a"))
    user.send_fetch(*[0] * MANY, topic=WIDE, max_wait_ms=60_000, min_bytes=2 * size)
    hand.settle()

    answered = []
    for index in (3, MANY - 3):
        request = writer.produce_request(a_batch(b"a"), topic=WIDE, indexes=(index,))
        writer.client.ask(api_keys.PRODUCE, 11, request)
        hand.settle()
        answered.append(user.answers())

    assert answered[0] == []
    (answer,) = answered[1]
    found = [row.partition_index for row in fetched(answer) if values_in(row)]
    assert found == [3, MANY - 3]


def test_a_fetch_of_thousands_that_finds_nothing_is_answered_when_its_time_is_up(
    empty: BrokerByHand,
) -> None:
    user = User(empty)
    user.send_fetch(*[0] * (MANY - 1), topic=WIDE, max_wait_ms=500)
    empty.settle()
    waiting = user.answers()

    for _ in range(3):
        empty.turn(after_ms=400)
        empty.settle()

    rows = rows_of(user)
    assert (waiting, len(rows)) == ([], MANY - 1)
    assert [row for row in rows if values_in(row)] == []


def test_a_fetch_in_steps_answers_an_old_client_that_zstd_is_not_for_it() -> None:
    hand = BrokerByHand()
    user = User(hand)
    user.create(WIDE, MANY)
    fill(user, 1, a_batch(b"z", codec=ZSTD))

    user.send_fetch(*[0] * MANY, topic=WIDE, version=9, max_wait_ms=60_000, min_bytes=10_000)
    hand.settle()

    codes = [row.error_code for row in rows_of(user)]
    assert codes == [errors.UNSUPPORTED_COMPRESSION_TYPE] + [errors.NONE] * (MANY - 1)


def test_a_partition_that_comes_again_in_a_fetch_in_steps_is_answered_once(
    empty: BrokerByHand,
) -> None:
    user = User(empty)
    request = user.fetch_request(*[0] * MANY, topic=WIDE, indexes=(0,) * MANY)

    assert len(fetched(user.client.ask(api_keys.FETCH, 12, request))) == 1


def test_a_fetch_in_steps_ends_with_its_connection(empty: BrokerByHand) -> None:
    user = User(empty)
    user.send_fetch(*[0] * MANY, topic=WIDE, max_wait_ms=60_000)

    empty.turn(disconnected(user.client.connection_id))
    empty.settle()

    assert not empty.broker.long_answers.has_work_left()
    assert empty.broker.fetches.purgatory.delayed == 0


def test_a_fetch_in_steps_does_not_wait_when_the_broker_stops() -> None:
    hand = BrokerByHand()
    user = User(hand)
    user.create(WIDE, 1)
    again = (0,) * 3 * MANY
    user.send_fetch(*again, topic=WIDE, max_wait_ms=60_000, indexes=again)
    hand.turn()
    assert hand.broker.long_answers.has_work_left()

    hand.turn(stop_requested())
    hand.settle()

    assert hand.broker.is_stopped
    assert hand.broker.stop_reason == ""
    assert len(rows_of(user)) == 1


def test_topics_that_are_not_there_are_refused_in_steps(empty: BrokerByHand) -> None:
    user = User(empty)
    asked = user.fetch_request(0, topic=WIDE).topics[0].partitions
    topics = [FetchTopic(topic=f"t{each}", partitions=asked) for each in range(MANY)]

    answer = user.client.ask(api_keys.FETCH, 12, FetchRequest(max_wait_ms=60_000, topics=topics))

    codes = [each.partitions[0].error_code for each in answer.responses]  # type: ignore[attr-defined]
    assert codes == [errors.UNKNOWN_TOPIC_OR_PARTITION] * MANY
