"""What one peer may take: time for a frame, time in silence, requests in flight, memory."""

from __future__ import annotations

import logging
import tracemalloc

import pytest
from tests.support.broker.broker_user import User, a_batch, produced

from tarry.base import errors
from tarry.base.doors import disconnected, drained, received
from tarry.base.limits import (
    ANSWER_BYTES_PER_TURN_MAX,
    FRAME_AGE_MS_MAX,
    OPENED_BATCH_BYTES_MAX,
    REQUESTS_IN_FLIGHT_MAX,
    UNSENT_BYTES_MAX,
)
from tarry.log.compaction.effort import STEP_UNITS
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.metadata import MetadataRequest
from tarry.records.walk import HEADERS_PER_STEP
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import ZSTD


def pass_time(hand: BrokerByHand, ms: int) -> None:
    """In steps that no broker takes for a standstill."""
    while ms > 0:
        hand.turn(after_ms=min(ms, 400))
        ms -= 400


# --- A peer that trickles.


def test_a_frame_that_is_not_whole_after_60_seconds_closes_its_connection(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    honest, slow = User(hand), User(hand)
    frame = slow.client.encode(api_keys.PRODUCE, 11, slow.produce_request(a_batch(b"x" * 200)))
    begun_ms = hand.now_ms

    for second, byte in enumerate(frame):
        slow.client.send_bytes(bytes([byte]))
        if slow.client.is_closed:
            break
        assert honest.produce(a_batch(b"a")).base_offset == second
        pass_time(hand, 1_000)

    assert slow.client.is_closed
    assert FRAME_AGE_MS_MAX <= hand.now_ms - begun_ms <= FRAME_AGE_MS_MAX + 2_000
    lines = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert lines == ["10.0.0.1:1: a frame was not whole 60 s after its first byte"]


def test_a_frame_that_becomes_whole_in_59_seconds_is_answered(hand: BrokerByHand) -> None:
    slow = User(hand)
    frame = slow.client.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    step_ms = 59_000 // len(frame)

    for byte in frame:
        slow.client.send_bytes(bytes([byte]))
        pass_time(hand, step_ms)

    assert len(slow.answers()) == 1
    pass_time(hand, 120_000)
    assert not slow.client.is_closed


def test_the_minute_counts_for_each_frame_anew(hand: BrokerByHand) -> None:
    slow = User(hand)
    for _ in range(4):
        frame = slow.client.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
        slow.client.send_bytes(frame[:5])
        pass_time(hand, 40_000)
        slow.client.send_bytes(frame[5:])
        pass_time(hand, 20_000)

    assert len(slow.answers()) == 4
    assert not slow.client.is_closed


def test_a_frame_behind_a_waiting_fetch_is_not_late_because_we_did_not_read(
    hand: BrokerByHand,
) -> None:
    reader = User(hand)
    reader.send_fetch(0, max_wait_ms=200_000)
    frame = reader.client.encode(api_keys.FETCH, 12, reader.fetch_request(0))
    reader.client.send_bytes(frame[:20])

    pass_time(hand, 150_000)
    reader.client.send_bytes(frame[20:]) if not reader.client.is_closed else None
    pass_time(hand, 51_000)
    hand.settle()

    assert not reader.client.is_closed
    assert len(reader.answers()) == 2


def test_a_frame_that_is_held_back_is_not_looked_at_all_the_time(hand: BrokerByHand) -> None:
    reader = User(hand)
    reader.send_fetch(0, max_wait_ms=600_000)
    frame = reader.client.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    reader.client.send_bytes(frame[:5])
    reader.client.send_bytes(frame[5:7])

    pass_time(hand, FRAME_AGE_MS_MAX + 2_000)
    hand.settle()

    assert not reader.client.is_closed
    assert hand.broker.next_due_ms() > hand.now_ms + 100


def test_a_length_that_trickles_counts_from_its_first_byte(hand: BrokerByHand) -> None:
    slow = User(hand)
    slow.client.send_bytes(b"\x00")

    pass_time(hand, FRAME_AGE_MS_MAX - 400)
    early = slow.client.is_closed
    pass_time(hand, 1_200)

    assert not early
    assert slow.client.is_closed


# --- A peer that is silent.


def test_a_connection_without_a_request_is_closed_when_its_idle_time_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hand = BrokerByHand({"connections.max.idle.ms": "10000"})
    silent, busy = User(hand), User(hand)
    for _ in range(11):
        pass_time(hand, 1_000)
        busy.client.ask(api_keys.API_VERSIONS, 0, ApiVersionsRequest())

    assert silent.client.is_closed
    assert not busy.client.is_closed
    assert len(hand.broker.answers.connections) == 1
    # To be silent is no fault.
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    hand = BrokerByHand({"connections.max.idle.ms": "1000"})
    user = User(hand)
    user.create("orders")
    user.send_fetch(0, max_wait_ms=30_000)

    pass_time(hand, 20_000)

    assert not user.client.is_closed
    pass_time(hand, 12_000)
    assert len(user.answers()) == 1


def test_a_peer_that_takes_no_answers_is_closed_though_requests_wait_behind_them() -> None:
    hand = BrokerByHand({"connections.max.idle.ms": "10000"})
    user, reader = User(hand), User(hand)
    user.create("orders")
    for _ in range(20):
        user.produce(a_batch(b"x" * 1_000_000))
    hand.transport.stuck[reader.client.connection_id] = True
    frame = reader.client.encode(api_keys.FETCH, 12, reader.fetch_request(0))
    hand.turn(received(reader.client.connection_id, frame * 50))
    hand.settle()
    connection = hand.broker.answers.connections[reader.client.connection_id]

    assert connection.has_unhandled()
    pass_time(hand, 12_000)
    assert reader.client.is_closed
    assert connection.id not in hand.broker.answers.connections


@pytest.mark.parametrize("idle_ms", ["-1", "9223372036854775807"])
def test_no_idle_time_at_all(idle_ms: str) -> None:
    hand = BrokerByHand({"connections.max.idle.ms": idle_ms})
    silent = User(hand)

    pass_time(hand, 400_000)

    assert not silent.client.is_closed


def test_watches_of_connections_that_are_gone_are_gone_too(hand: BrokerByHand) -> None:
    before = (len(hand.broker.timer), len(hand.broker.answers.connections))
    for _ in range(50):
        user = User(hand)
        user.send_fetch(0, max_wait_ms=600_000)
        hand.turn(disconnected(user.client.connection_id))

    assert (len(hand.broker.timer), len(hand.broker.answers.connections)) == before


# --- A peer that asks too much at once.


def test_requests_without_answers_are_bounded(hand: BrokerByHand) -> None:
    user = User(hand)
    asked = REQUESTS_IN_FLIGHT_MAX + 500
    request = user.produce_request(a_batch(b"a"))

    user.client.send_bytes(
        b"".join(user.client.encode(api_keys.PRODUCE, 11, request) for _ in range(asked))
    )
    connection = hand.broker.answers.connections[user.client.connection_id]
    slots = len(connection.slots) - connection.first_slot
    paused = hand.transport.paused[user.client.connection_id]
    hand.settle()

    assert slots == REQUESTS_IN_FLIGHT_MAX
    assert paused
    assert len(user.answers()) == asked
    assert not hand.transport.paused[user.client.connection_id]


def test_nothing_is_answered_behind_a_fetch_that_waits(hand: BrokerByHand) -> None:
    user, reader = User(hand), User(hand)
    user.create("wide", 4_000)
    reader.send_fetch(0, max_wait_ms=600_000)
    one = reader.client.encode(api_keys.METADATA, 12, MetadataRequest(topics=None))
    reader.client.send_bytes(one * 900)
    hand.settle(turns_max=1_000)
    connection = hand.broker.answers.connections[reader.client.connection_id]

    assert connection.held == 0
    assert connection.is_reading_paused


def test_a_peer_that_asks_for_much_at_once_gets_its_share_of_each_turn(
    hand: BrokerByHand,
) -> None:
    greedy, modest = User(hand), User(hand)
    modest.create("wide", 200)
    frame = greedy.client.encode(api_keys.METADATA, 12, MetadataRequest(topics=None))
    sent = hand.transport.sent
    asked = 300

    sizes = []
    hand.turn(received(greedy.client.connection_id, frame * asked))
    sizes.append(len(sent[greedy.client.connection_id]))
    paused = hand.transport.paused[greedy.client.connection_id]
    modest.client.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    modest_answers = len(modest.answers())
    sizes.append(len(sent[greedy.client.connection_id]))
    hand.settle()
    answer_size = int.from_bytes(sent[greedy.client.connection_id][:4], "big") + 4

    assert sizes[0] < ANSWER_BYTES_PER_TURN_MAX + answer_size
    assert sizes[1] < 2 * (ANSWER_BYTES_PER_TURN_MAX + answer_size)
    assert paused
    assert modest_answers == 1
    assert len(sent[greedy.client.connection_id]) == asked * answer_size
    assert not hand.transport.paused[greedy.client.connection_id]


def test_a_stuck_peer_costs_one_answer_more_than_the_limit_at_most(hand: BrokerByHand) -> None:
    user = User(hand)
    for _ in range(30):
        user.produce(a_batch(b"x" * 1_000_000))
    reader = User(hand)
    hand.transport.stuck[reader.client.connection_id] = True
    request = reader.fetch_request(0, partition_bytes=5 << 20)
    frames = b"".join(reader.client.encode(api_keys.FETCH, 12, request) for _ in range(50))

    hand.turn(received(reader.client.connection_id, frames))
    hand.settle()
    unsent = hand.transport.unsent[reader.client.connection_id]
    for _ in range(50):
        hand.transport.unsent[reader.client.connection_id] = 0
        hand.turn(drained(reader.client.connection_id))
        hand.settle()

    assert unsent < UNSENT_BYTES_MAX + (5 << 20)
    assert len(reader.answers()) == 50


def test_pieces_of_a_frame_cost_little_more_than_their_bytes(hand: BrokerByHand) -> None:
    slow = User(hand)
    frame = (8 << 20).to_bytes(4, "big")
    slow.client.send_bytes(frame)
    piece = b"ab"

    tracemalloc.start()
    for _ in range(100_000):
        hand.turn(received(slow.client.connection_id, piece[:1] + piece[1:]))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert not slow.client.is_closed
    assert size < 4 * 200_000


# --- A peer whose batches must be opened.


# A topic that asks for a key, and any topic whose records come from the future.
@pytest.mark.parametrize(("policy", "ahead_ms"), [("compact", 0), ("delete", 7_200_000)])
def test_batches_of_one_request_that_must_be_opened_share_many_turns(
    hand: BrokerByHand, policy: str, ahead_ms: int
) -> None:
    user, other = User(hand), User(hand)
    user.create("wide", 9, cleanup_policy=policy)
    batch = a_batch(bytes(1_000_000), codec=ZSTD, times=(START_WALL_MS + ahead_ms,))
    request = user.produce_request(*[batch] * 9, topic="wide", acks=1)

    user.client.send(api_keys.PRODUCE, 11, request)
    other.client.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    early = (len(user.answers()), len(other.answers()))
    hand.settle()
    (answer,) = user.answers()

    assert early == (0, 1)
    refused = [each.error_code for each in produced(answer)]
    code = errors.INVALID_RECORD if policy == "compact" else errors.INVALID_TIMESTAMP
    assert refused == [code] * 9


def test_a_small_batch_that_must_be_opened_is_answered_in_its_turn(hand: BrokerByHand) -> None:
    user = User(hand)
    user.create("keyed", cleanup_policy="compact")

    user.client.send(
        api_keys.PRODUCE,
        11,
        user.produce_request(a_batch(b"no key", codec=ZSTD), topic="keyed"),
    )

    (answer,) = user.answers()
    assert [each.error_code for each in produced(answer)] == [errors.INVALID_RECORD]


def test_headers_of_a_record_are_gone_over_in_many_turns(hand: BrokerByHand) -> None:
    user = User(hand)
    user.create("keyed", cleanup_policy="compact")
    count = 200_000
    batch = a_batch(b"no key", codec=ZSTD, headers=([("", b"")] * count,))

    user.client.send(api_keys.PRODUCE, 11, user.produce_request(batch, topic="keyed"))
    turns = 0
    while not (answers := user.answers()):
        hand.turn()
        turns += 1

    assert turns > count // (2 * HEADERS_PER_STEP * STEP_UNITS)
    assert [each.error_code for each in produced(answers[0])] == [errors.INVALID_RECORD]


def test_batches_that_cannot_be_opened_count_as_opened(hand: BrokerByHand) -> None:
    user = User(hand)
    user.create("keyed", cleanup_policy="compact")
    bomb = a_batch(bytes(OPENED_BATCH_BYTES_MAX + 1), codec=ZSTD)
    request = user.produce_request(bomb, topic="keyed")

    user.client.send_bytes(
        b"".join(user.client.encode(api_keys.PRODUCE, 11, request) for _ in range(6))
    )
    early = len(user.answers())
    hand.settle()

    # One that comes, and one of those that wait.
    assert early == 2
    assert len(user.answers()) == 6 - early
