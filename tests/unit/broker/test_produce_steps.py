"""Produces to hundreds of partitions, which are appended in shares over several turns."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import pytest
from tests.support.broker.broker_user import User, a_batch, produced, values_in

from tarry.base import errors
from tarry.base.doors import disconnected, received, stop_requested
from tarry.base.limits import (
    FLUSHED_LOGS_PER_ROUND_MAX,
    LONG_ANSWER_UNITS_PER_TURN,
    RECOMPRESSED_HELD_BYTES_MAX,
    RECOMPRESSED_HELD_MS_MAX,
    RECOMPRESSED_REQUEST_BYTES_MAX,
)
from tarry.broker.apis.produce import LONG_PRODUCE_ELEMENTS
from tarry.broker.apis.produce_steps import SHARE_BYTES, SHARE_PARTITIONS, UNITS_PER_APPEND
from tarry.broker.delayed.long_answers import ROUND_UNITS
from tarry.broker.delayed.produce import SHARES_WAITING_MAX
from tarry.partition.recompression import Recompression
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.compression import GZIP
from tarry.wire.reader import window_of

WIDE = "wide"
MANY = LONG_PRODUCE_ELEMENTS + 100
VERSION = 11
LAST = MANY - 1
# Logs that are not flushed yet.
WAITING_MAX = SHARES_WAITING_MAX * SHARE_PARTITIONS
# More than it takes until all is made anew that may be.
TURNS_TO_MAKE = 2_000
# The last step of a turn may cost a share.
UNITS_MAX = LONG_ANSWER_UNITS_PER_TURN + ROUND_UNITS + SHARE_PARTITIONS * (UNITS_PER_APPEND + 1)


def a_user(hand: BrokerByHand | None = None) -> User:
    """A user of a broker with a topic of many partitions."""
    user = User(hand or BrokerByHand())
    user.create(WIDE, MANY)
    return user


def a_produce(
    *indexes: int, batch: bytes = b"", acks: int = -1, timeout_ms: int = 30_000, topic: str = WIDE
) -> ProduceRequest:
    """A record to each of these partitions, all there are if none is named."""
    window = window_of(batch or a_batch(b"many"))
    rows = [PartitionProduceData(each, window) for each in indexes or range(MANY)]
    return ProduceRequest(None, acks, timeout_ms, [TopicProduceData(topic, partition_data=rows)])


def ends(user: User) -> list[int]:
    """Where the partitions' logs end."""
    partitions = user.hand.broker.topics[WIDE].partitions
    return [partitions[index].log.log_end_offset for index in range(MANY)]


def values(user: User, index: int) -> list[bytes | None]:
    return values_in(user.fetch(0, topic=WIDE, indexes=(index,)))


def rows_of(user: User) -> list[PartitionProduceResponse]:
    [answer] = user.answers()
    return produced(answer)


def take_turns(user: User) -> int:
    """Turns until nothing is left to do, none of them longer than it may be."""
    broker = user.hand.broker
    turns = 0
    while broker.has_work_left() or not broker.flushes.is_idle():
        user.hand.turn(*user.hand.disk.complete_flushes(), after_ms=1)
        assert broker.long_answers.units_spent <= UNITS_MAX
        assert len(broker.flushes.dirty) <= WAITING_MAX
        turns += 1
    return turns


def test_a_produce_to_many_partitions_is_appended_in_shares_and_answered_once() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())
    first = sum(ends(user))

    turns = take_turns(user)

    assert 0 < first < MANY
    assert turns > MANY // WAITING_MAX
    rows = rows_of(user)
    assert [row.index for row in rows] == list(range(MANY))
    assert {(row.error_code, row.base_offset) for row in rows} == {(errors.NONE, 0)}
    assert ends(user) == [1] * MANY


def test_each_other_connection_is_served_in_its_turn_beside_a_produce_in_shares() -> None:
    user = a_user()
    honest = User(user.hand)
    honest.create("own")
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())

    turns = 0
    while sum(ends(user)) < MANY:
        honest.send_produce(a_batch(b"own"), topic="own", acks=1)
        user.hand.turn(*user.hand.disk.complete_flushes())
        turns += 1

    user.hand.settle()
    assert len(honest.answers()) == turns


def test_a_produce_in_shares_is_answered_when_the_last_partition_is_durable() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())
    while sum(ends(user)) < MANY:
        user.hand.turn(*user.hand.disk.complete_flushes())
    before = user.answers()

    user.hand.settle()

    assert before == []
    assert len(rows_of(user)) == MANY


def test_no_more_is_appended_than_waits_for_its_flushes() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())

    for _ in range(20):
        user.hand.turn(after_ms=1)

    assert sum(ends(user)) == WAITING_MAX
    assert not user.hand.broker.has_work_left()


def test_a_partition_that_is_not_durable_in_time_is_answered_so() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce(timeout_ms=1_000))

    for _ in range(40):
        user.hand.turn(after_ms=400)

    assert {row.error_code for row in rows_of(user)} == {errors.REQUEST_TIMED_OUT}


def test_a_produce_in_shares_is_answered_when_the_time_of_the_request_is_up() -> None:
    """Not later for what is appended last, though many shares had to wait for the first ones."""
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce(timeout_ms=1_000))

    for _ in range(12):
        user.hand.turn(after_ms=100)
    for _ in range(20):
        user.hand.turn()

    assert {row.error_code for row in rows_of(user)} == {errors.REQUEST_TIMED_OUT}
    assert ends(user) == [1] * MANY


@pytest.mark.parametrize("acks", [-1, 1])
def test_what_comes_behind_a_produce_in_shares_is_appended_behind_it(acks: int) -> None:
    user = a_user()
    second = a_produce(LAST, batch=a_batch(b"second"), acks=acks)
    frames = [
        user.client.encode(api_keys.PRODUCE, VERSION, each)
        for each in (a_produce(acks=acks), second)
    ]

    user.client.send_bytes(b"".join(frames))
    user.hand.settle()

    assert len(user.answers()) == 2
    assert values(user, LAST) == [b"many", b"second"]


def test_a_produce_in_shares_that_is_sent_again_finds_its_duplicates() -> None:
    user = a_user()
    request = a_produce(batch=a_batch(b"once", producer_id=9))
    user.client.ask(api_keys.PRODUCE, VERSION, request)

    again = produced(user.client.ask(api_keys.PRODUCE, VERSION, request))

    assert {(row.error_code, row.base_offset) for row in again} == {(errors.NONE, 0)}
    assert ends(user) == [1] * MANY


def test_a_partition_that_comes_again_in_a_later_share_is_refused() -> None:
    user = a_user()

    answer = user.client.ask(api_keys.PRODUCE, VERSION, a_produce(*range(MANY), 0))

    codes = [row.error_code for row in produced(answer)]
    assert codes == [errors.NONE] * MANY + [errors.INVALID_REQUEST]
    assert ends(user) == [1] * MANY


def test_a_write_that_fails_in_the_middle_concerns_its_own_partition_alone() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())
    user.hand.disk.fail_writes(1, f"{WIDE}-{LAST}/")

    user.hand.settle()

    codes = [row.error_code for row in rows_of(user)]
    assert codes == [errors.NONE] * LAST + [errors.KAFKA_STORAGE_ERROR]


def test_a_write_that_failed_is_not_taken_for_one_of_another_that_came_behind_it() -> None:
    """Its share is looked at in the turn of the write, not when the last share is appended."""
    user = a_user()
    other = User(user.hand)
    user.hand.disk.fail_writes(1, f"{WIDE}-0/")
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())
    assert ends(user)[LAST] == 0

    other.client.send(api_keys.PRODUCE, VERSION, a_produce(0, batch=a_batch(b"other")))
    user.hand.settle()

    assert rows_of(user)[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert rows_of(other)[0].error_code == errors.NONE
    assert values(user, 0) == [b"other"]


def test_a_disk_that_is_full_in_the_middle_refuses_the_rest() -> None:
    user = a_user()
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())
    appended = sum(ends(user))
    user.hand.disk.capacity_bytes = user.hand.disk.used_bytes()

    user.hand.settle()

    codes = [row.error_code for row in rows_of(user)]
    expected = [errors.NONE] * appended + [errors.KAFKA_STORAGE_ERROR] * (MANY - appended)
    assert codes == expected


def test_a_topic_that_is_deleted_between_two_shares_refuses_the_rest() -> None:
    user = a_user()
    other = User(user.hand)
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())

    other.delete(WIDE)
    user.hand.settle()

    codes = [row.error_code for row in rows_of(user)]
    lost = (errors.KAFKA_STORAGE_ERROR, errors.UNKNOWN_TOPIC_OR_PARTITION)
    assert {*codes[WAITING_MAX:]} <= {*lost}
    assert codes[LAST] == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_that_leaves_between_two_shares_leaves_nothing_that_waits() -> None:
    user = a_user()
    leaving = User(user.hand)
    leaving.client.send(api_keys.PRODUCE, VERSION, a_produce())

    user.hand.turn(disconnected(leaving.client.connection_id))
    appended = sum(ends(user))
    user.hand.settle()

    assert sum(ends(user)) == appended < MANY
    assert user.hand.broker.produces.purgatory.delayed == 0


# --- acks=0.


def test_a_produce_in_shares_that_nobody_sends_again_is_appended_to_its_end() -> None:
    user = a_user()
    leaving = User(user.hand)
    leaving.client.send(api_keys.PRODUCE, VERSION, a_produce(acks=0))

    user.hand.turn(disconnected(leaving.client.connection_id))
    user.hand.settle()

    assert ends(user) == [1] * MANY


def test_a_produce_in_shares_that_nobody_sends_again_goes_on_after_a_pause() -> None:
    user = a_user()
    leaving = User(user.hand)
    leaving.client.send(api_keys.PRODUCE, VERSION, a_produce(acks=0))
    for _ in range(20):
        user.hand.turn(after_ms=1)
    assert sum(ends(user)) == WAITING_MAX

    user.hand.turn(disconnected(leaving.client.connection_id))
    user.hand.settle()

    assert ends(user) == [1] * MANY


def test_what_follows_a_produce_in_shares_without_acks_sees_its_records() -> None:
    user = a_user()
    frames = user.client.encode(api_keys.PRODUCE, VERSION, a_produce(acks=0))
    fetch = user.fetch_request(0, topic=WIDE, indexes=(LAST,))
    # The produce has no answer.
    user.client._asked.pop(1, None)
    frames += user.client.encode(api_keys.FETCH, 12, fetch)

    user.hand.turn(received(user.client.connection_id, frames))
    user.hand.settle()

    data = user.hand.transport.sent[user.client.connection_id]
    assert b"many" in data


@pytest.mark.parametrize("fault", ["refused", "lost"])
def test_a_produce_in_shares_without_acks_that_fails_closes_its_connection(fault: str) -> None:
    user = a_user()
    if fault == "refused":
        request = a_produce(*range(MANY), MANY, acks=0)
    else:
        request = a_produce(acks=0)
        user.hand.disk.fail_writes(1, f"{WIDE}-{LAST}/")

    user.client.send(api_keys.PRODUCE, VERSION, request)
    user.hand.settle()

    assert user.client.is_closed
    assert ends(user)[0] == 1


# --- Batches that are made anew.


def test_batches_that_are_made_anew_are_appended_in_shares_when_they_are_ready() -> None:
    user = User(BrokerByHand())
    user.create(WIDE, MANY, compression_type="gzip")
    user.client.send(api_keys.PRODUCE, VERSION, a_produce())

    user.hand.settle(100_000)

    assert {row.error_code for row in rows_of(user)} == {errors.NONE}
    assert values(user, LAST) == [b"many"]


def test_a_share_has_so_many_bytes_of_batches_that_were_made_anew() -> None:
    """A batch of some hundred bytes may become one of many KiB."""
    user = User(BrokerByHand())
    user.create(WIDE, MANY, compression_type="uncompressed")
    size = SHARE_BYTES // 8
    batch = a_batch(bytes(size), codec=GZIP)
    user.client.send(api_keys.PRODUCE, VERSION, a_produce(batch=batch))

    appended = [0]
    while appended[-1] < MANY:
        user.hand.turn(*user.hand.disk.complete_flushes(), after_ms=1)
        appended.append(sum(ends(user)))

    steps = [after - before for before, after in itertools.pairwise(appended)]
    assert max(steps) * size <= 6 * SHARE_BYTES


# Hundreds of batches of so many bytes are nearly as much as one request may come to.
LARGE_BYTES = RECOMPRESSED_REQUEST_BYTES_MAX // MANY - 1024


def held_bytes() -> int:
    """Bytes of the batches that were made anew and that somebody holds."""
    found = [each for each in gc.get_objects() if isinstance(each, Recompression)]
    return sum(each.new_bytes for each in found if each.is_done)


def users_who_wait(count: int) -> list[User]:
    """Users whose produces are made anew and wait for flushes that do not end."""
    # What brokers of earlier tests held is not to be counted.
    gc.collect()
    first = User(BrokerByHand())
    first.create(WIDE, MANY, compression_type="uncompressed")
    users = [first, *(User(first.hand) for _ in range(count - 1))]
    # A small frame, whose batches come to nearly the limit when they are made anew.
    request = a_produce(batch=a_batch(bytes(LARGE_BYTES), codec=GZIP))
    for each in users:
        each.client.send(api_keys.PRODUCE, VERSION, request)
    for _ in range(TURNS_TO_MAKE):
        first.hand.turn(after_ms=1)
    return users


def test_batches_of_many_produces_that_wait_for_flushes_are_bounded_together() -> None:
    users = users_who_wait(4)
    hand = users[0].hand

    assert not hand.broker.has_work_left()
    assert held_bytes() <= RECOMPRESSED_HELD_BYTES_MAX + RECOMPRESSED_REQUEST_BYTES_MAX
    hand.settle(100_000)
    for each in users:
        assert {row.error_code for row in rows_of(each)} == {errors.NONE}
    assert ends(users[0]) == [len(users)] * MANY


def test_others_are_served_while_produces_wait_for_room() -> None:
    hand = users_who_wait(4)[0].hand
    other = User(hand)
    before = ends(other)[LAST]

    other.send_produce(a_batch(b"small", codec=GZIP), topic=WIDE, indexes=(LAST,))
    hand.turn(after_ms=1)

    assert (before, ends(other)[LAST]) == (0, 1)


def test_a_produce_that_holds_room_appends_the_rest_though_no_flush_ends() -> None:
    users = users_who_wait(4)
    hand = users[0].hand
    before = sum(ends(users[0]))

    for _ in range(8 * TURNS_TO_MAKE):
        hand.turn(after_ms=1)

    assert before < MANY
    assert ends(users[0]) == [len(users)] * MANY
    assert held_bytes() == 0


def test_a_produce_that_waits_for_room_is_answered_when_its_time_is_over() -> None:
    users = users_who_wait(3)
    hand = users[0].hand
    late = User(hand)
    request = a_produce(batch=a_batch(b"late", codec=GZIP), timeout_ms=500)

    late.client.send(api_keys.PRODUCE, VERSION, request)
    early = late.answers()
    for _ in range(RECOMPRESSED_HELD_MS_MAX // 2):
        hand.turn(after_ms=1)
    rows = rows_of(late)
    hand.settle(100_000)

    assert early == []
    assert {(row.error_code, row.base_offset) for row in rows} == {(errors.REQUEST_TIMED_OUT, -1)}
    assert len(rows) == MANY
    assert ends(late) == [len(users)] * MANY


@pytest.mark.parametrize("leaving", [0, 3])
def test_a_produce_that_waits_for_room_is_appended_though_another_client_leaves(
    leaving: int,
) -> None:
    users = users_who_wait(4)
    hand = users[0].hand

    hand.turn(disconnected(users[leaving].client.connection_id))
    hand.settle(100_000)

    stayed = [each for each in users if each is not users[leaving]]
    for each in stayed:
        assert {row.error_code for row in rows_of(each)} == {errors.NONE}
    assert held_bytes() == 0


def test_a_stopping_broker_ends_the_produces_that_wait_for_room() -> None:
    users = users_who_wait(4)
    hand = users[0].hand

    hand.turn(stop_requested())
    hand.settle(100_000)

    assert hand.broker.is_stopped
    for each in users:
        assert {row.error_code for row in rows_of(each)} == {errors.NONE}


# --- Flushes.


def test_a_round_of_flushes_covers_so_many_logs_and_the_next_the_others() -> None:
    user = User(BrokerByHand())
    at_once = LONG_PRODUCE_ELEMENTS - 1
    requests = 2 + FLUSHED_LOGS_PER_ROUND_MAX // at_once
    user.create(WIDE, requests * at_once)
    user.hand.settle()
    flushes = user.hand.broker.flushes
    for number in range(requests):
        each = range(number * at_once, (number + 1) * at_once)
        user.client.send(api_keys.PRODUCE, VERSION, a_produce(*each))

    covered = []
    while not flushes.is_idle():
        covered.append(len(flushes.owners))
        user.hand.turn(*user.hand.disk.complete_flushes())

    left = (requests - 1) * at_once - FLUSHED_LOGS_PER_ROUND_MAX
    assert covered == [at_once, FLUSHED_LOGS_PER_ROUND_MAX, left]
    assert len(user.answers()) == requests


# --- Memory.


def count_requests() -> int:
    """Count produces that somebody holds, with the frames that their batches lie in."""
    return sum(isinstance(each, PartitionProduceData) for each in gc.get_objects())


@pytest.fixture
def calm() -> Iterator[None]:
    """Collect no cycles, as a broker does for a long time."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("calm")
def test_the_frame_of_a_produce_in_shares_is_let_go_when_all_of_it_is_appended() -> None:
    user = a_user()
    before = count_requests()
    refused = range(MANY, 2 * MANY)
    user.client.send(api_keys.PRODUCE, VERSION, a_produce(0, *refused))

    for _ in range(20):
        user.hand.turn(after_ms=1)

    assert user.answers() == []
    assert count_requests() == before


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize("turns", [1, 20])
def test_the_frame_of_a_produce_in_shares_is_let_go_when_its_client_leaves(turns: int) -> None:
    user = a_user()
    leaving = User(user.hand)
    before = count_requests()
    leaving.client.send(api_keys.PRODUCE, VERSION, a_produce())
    for _ in range(turns):
        user.hand.turn(after_ms=1)

    user.hand.turn(disconnected(leaving.client.connection_id))
    user.hand.settle()

    assert count_requests() == before
