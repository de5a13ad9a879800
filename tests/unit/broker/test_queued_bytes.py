"""What all connections together have sent and the broker has not handled is bounded."""

from __future__ import annotations

import logging
import random

import pytest
from tests.support.broker.broker_user import User, a_batch

from tarry.base.doors import disconnected, received
from tarry.base.errors import InvalidSetting
from tarry.base.limits import FRAME_AGE_MS_MAX, GRANT_MS
from tarry.base.settings import Settings
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.simulation.by_hand import BrokerByHand, ClientByHand

MIB = 1 << 20
FRAME_BYTES = 10 * MIB
QUEUED_BYTES = 20 * MIB
PIECE = b"\x00" * (64 * 1024)


@pytest.fixture
def hand() -> BrokerByHand:
    hand = BrokerByHand(
        {
            "socket.request.max.bytes": str(FRAME_BYTES),
            "queued.max.request.bytes": str(QUEUED_BYTES),
        }
    )
    User(hand).create("orders")
    return hand


def queued(hand: BrokerByHand) -> int:
    """Bytes that the broker says it holds, which are those that its connections hold."""
    connections = hand.broker.answers.connections.values()
    held = sum(len(each.data) - each.position + each.parts_size for each in connections)
    assert held == hand.broker.answers.queued.queued_bytes
    return held


def begin_frame(client: ClientByHand, size: int = FRAME_BYTES) -> None:
    """Send the beginning of a frame that never becomes whole."""
    client.send_bytes(size.to_bytes(4, "big") + b"\x00\x12\x00\x00" + b"\x00" * 4)


def is_paused(client: ClientByHand) -> bool:
    return client.hand.transport.paused.get(client.connection_id, False)


def pour(clients: list[ClientByHand], pieces: int) -> None:
    """Send as a peer does that never stops: what is not read stays in its kernel."""
    for _ in range(pieces):
        for client in clients:
            if not is_paused(client) and not client.is_closed:
                client.send_bytes(PIECE)


def hostile_peers(hand: BrokerByHand, count: int) -> list[ClientByHand]:
    clients = [hand.connect() for _ in range(count)]
    for client in clients:
        begin_frame(client)
    return clients


def test_unfinished_frames_of_all_connections_together_are_bounded(hand: BrokerByHand) -> None:
    hostile = hostile_peers(hand, 20)

    pour(hostile, 150)

    assert queued(hand) <= QUEUED_BYTES + len(hostile) * len(PIECE)
    assert sum(map(is_paused, hostile)) >= len(hostile) - 1


def test_an_honest_client_is_served_beside_peers_that_fill_the_room(hand: BrokerByHand) -> None:
    hostile = hostile_peers(hand, 20)
    pour(hostile, 150)
    honest = User(hand)

    for number in range(20):
        assert honest.produce(a_batch(b"x" * 200_000)).base_offset == number
        assert len(User(hand).client.ask(api_keys.API_VERSIONS, 0, ApiVersionsRequest()).api_keys)


def test_a_large_frame_that_waits_for_room_has_its_turn(hand: BrokerByHand) -> None:
    """An honest frame larger than a share, in pieces, beside peers that never finish theirs."""
    hostile = hostile_peers(hand, 20)
    pour(hostile, 150)
    honest = User(hand)
    frame = honest.client.encode(
        api_keys.PRODUCE, 11, honest.produce_request(a_batch(b"x" * 900_000))
    )
    turns = 0
    while frame:
        if not is_paused(honest.client):
            honest.client.send_bytes(frame[: len(PIECE)])
            frame = frame[len(PIECE) :]
        else:
            hand.turn(after_ms=GRANT_MS)
            turns += 1
        pour(hostile, 1)
        assert turns <= 2 * len(hostile)
    hand.settle()

    assert turns > 0
    assert len(honest.answers()) == 1


def test_turns_of_reading_do_not_add_up(hand: BrokerByHand) -> None:
    """Each of many peers pours in its turn: whoever holds most is closed when all is held."""
    hostile = hostile_peers(hand, 40)
    small = User(hand)
    begin_frame(small.client, 300_000)
    most = 0

    for _ in range(200):
        pour(hostile, 40)
        most = max(most, queued(hand))
        hand.turn(after_ms=GRANT_MS)

    assert most <= QUEUED_BYTES + FRAME_BYTES + len(hostile) * len(PIECE)
    assert any(client.is_closed for client in hostile)
    assert not small.client.is_closed


def test_peers_that_do_not_finish_are_closed_after_a_minute_and_the_others_are_read(
    hand: BrokerByHand,
) -> None:
    hostile = hostile_peers(hand, 20)
    pour(hostile, 150)

    for _ in range(FRAME_AGE_MS_MAX // 400 + 10):
        hand.turn(after_ms=400)

    assert all(client.is_closed for client in hostile)
    assert queued(hand) == 0
    assert not hand.broker.answers.queued.is_pending


def test_all_are_read_again_once_there_is_room(hand: BrokerByHand) -> None:
    hostile = hostile_peers(hand, 20)
    pour(hostile, 150)
    for client in hostile[5:]:
        hand.turn(disconnected(client.connection_id))

    hand.turn(after_ms=GRANT_MS)
    hand.turn(after_ms=GRANT_MS)

    assert not any(is_paused(client) for client in hostile[:5])


def test_without_pressure_nothing_is_paused_and_no_line_is_written(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    peer = hostile_peers(hand, 1)

    pour(peer, 100)

    assert not is_paused(peer[0])
    assert caplog.records == []


def test_one_line_says_that_there_is_no_room(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    pour(hostile_peers(hand, 20), 150)

    lines = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert f"half of queued.max.request.bytes ({QUEUED_BYTES})" in lines[0]


def test_a_handled_frame_does_not_live_on_in_its_connection(hand: BrokerByHand) -> None:
    user = User(hand)
    user.send_fetch(0, max_wait_ms=30_000)
    first = user.client.encode(api_keys.PRODUCE, 11, user.produce_request(a_batch(b"x" * MIB)))
    other = User(hand)
    hand.turn(received(other.client.connection_id, first))

    held = [len(each.data) for each in hand.broker.answers.connections.values()]

    assert max(held) < 1_000


def test_a_request_that_is_handled_in_steps_counts_until_it_is_done(hand: BrokerByHand) -> None:
    user = User(hand)
    user.create("packed", compression_type="gzip", max_message_bytes=str(8 * MIB))
    batch = a_batch(random.Random(1).randbytes(4 * MIB))

    user.send_produce(batch, topic="packed")
    held = [hand.broker.answers.queued.queued_bytes]
    user.send_produce(a_batch(b"next"), topic="packed")
    held.append(hand.broker.answers.queued.queued_bytes)
    hand.settle(turns_max=2_000)

    assert 4 * MIB < held[0] < held[1] < 5 * MIB
    assert queued(hand) == 0
    assert not is_paused(user.client)
    assert len(user.answers()) == 2


def test_the_room_is_at_least_one_frame() -> None:
    with pytest.raises(InvalidSetting, match="at least socket"):
        Settings({"socket.request.max.bytes": "1000", "queued.max.request.bytes": "999"})

    assert Settings({}).queued_bytes_max == 512 * MIB
    assert Settings({"queued.max.request.bytes": "209715200"}).queued_bytes_max == 200 * MIB
