"""Connections that speak no Kafka, beside those that do, on the loop of one broker."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.echo_connection import ECHO, EchoConnection
from tests.support.patience import PATIENCE_S

from tarry.base.doors import connected, disconnected, drained, received
from tarry.base.limits import UNSENT_BYTES_MAX
from tarry.base.settings import Settings
from tarry.broker.answers import Answers
from tarry.broker.connection import BEHIND, Connection
from tarry.broker.lifecycle import start_broker
from tarry.client import Producer
from tarry.protocol import api_keys
from tarry.runtime.thread import BrokerThread
from tarry.simulation.by_hand import BrokerByHand

ECHO_ID = 900

start_with_echo = partial(start_broker, protocols={ECHO: EchoConnection})

# A reason to pause of the tests' own.
ASLEEP = 1 << 20


@pytest.fixture
def hand() -> BrokerByHand:
    hand = BrokerByHand({"connections.max.idle.ms": "100000"}, start=start_with_echo)
    User(hand).create(ORDERS)
    hand.turn(connected(ECHO_ID, ECHO, "10.0.0.2:1"))
    return hand


def echo_of(hand: BrokerByHand) -> Connection:
    return hand.broker.answers.connections[ECHO_ID]


def pass_time(hand: BrokerByHand, ms: int) -> None:
    """In steps that no broker takes for a standstill."""
    while ms > 0:
        hand.turn(after_ms=min(ms, 400))
        ms -= 400


def test_both_protocols_are_served_in_one_turn(hand: BrokerByHand) -> None:
    user = User(hand)
    frame = user.client.encode(api_keys.PRODUCE, 11, user.produce_request(a_batch(b"a")))

    hand.turn(
        received(ECHO_ID, b"GET / HTTP/1.1"),
        received(user.client.connection_id, frame),
        received(ECHO_ID, b"\r\n"),
    )
    hand.settle()

    assert hand.transport.sent[ECHO_ID] == b"GET / HTTP/1.1\r\n"
    assert len(user.answers()) == 1


def test_what_its_peer_does_not_take_is_bounded(hand: BrokerByHand) -> None:
    hand.transport.stuck[ECHO_ID] = True

    hand.turn(received(ECHO_ID, b"x" * UNSENT_BYTES_MAX))
    hand.turn(received(ECHO_ID, b"what was read before the answer left"))
    while_stuck = hand.transport.paused[ECHO_ID]
    hand.transport.stuck[ECHO_ID] = False
    hand.turn(drained(ECHO_ID))

    assert while_stuck
    assert not hand.transport.paused[ECHO_ID]


def test_a_connection_is_read_when_no_reason_to_pause_is_left(hand: BrokerByHand) -> None:
    echo = echo_of(hand)
    answers = hand.broker.answers
    seen = []
    for change, reason in (
        (echo.pause, ASLEEP),
        (echo.pause, BEHIND << 2),
        (echo.resume, ASLEEP),
        (echo.resume, BEHIND << 2),
    ):
        change(reason)
        answers.regulate_reading(echo)
        seen.append(hand.transport.paused[ECHO_ID])

    assert seen == [True, True, True, False]


def test_it_is_closed_when_it_is_silent(hand: BrokerByHand) -> None:
    pass_time(hand, 102_000)

    assert hand.transport.closed[ECHO_ID]
    assert ECHO_ID not in hand.broker.answers.connections


class PartsOnly(EchoConnection):
    """Connection whose requests never come whole; it gives them ten seconds."""

    def __init__(self, answers: Answers, connection_id: int, listener: str, peer: str) -> None:
        super().__init__(answers, connection_id, listener, peer)
        self.age_ms_max = 10_000

    def feed(self, data: bytes) -> None:
        if self.begun_ms < 0:
            self.begun_ms = self.answers.turn.now_ms


def test_its_requests_have_a_time_of_their_own_to_come_whole() -> None:
    hand = BrokerByHand(start=partial(start_broker, protocols={"PARTS": PartsOnly}))
    hand.turn(connected(ECHO_ID + 1, "PARTS", "10.0.0.2:2"))
    closed = []

    for waited_ms in (0, 9_600, 800):
        pass_time(hand, waited_ms)
        hand.turn(received(ECHO_ID + 1, b"x"))
        closed.append(hand.transport.closed.get(ECHO_ID + 1, False))

    assert closed == [False, False, True]


def test_it_ends_with_its_peer_and_with_the_broker(hand: BrokerByHand) -> None:
    hand.turn(connected(ECHO_ID + 1, ECHO, "10.0.0.2:2"))

    hand.turn(disconnected(ECHO_ID))
    left = list(hand.broker.answers.connections)
    hand.stop()

    assert ECHO_ID not in left
    assert ECHO_ID + 1 in left
    assert hand.broker.stop_reason == ""


def test_two_listeners_of_one_broker_speak_two_protocols(tmp_path: Path) -> None:
    broker = BrokerThread(
        Settings(
            {
                "log.dirs": str(tmp_path),
                "listeners": "PLAINTEXT://127.0.0.1:0,ECHO://127.0.0.1:0",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ECHO:PLAINTEXT",
            }
        ),
        start=start_with_echo,
    )
    try:
        echo_port = broker.settings.open_listeners[1].port
        with socket.create_connection(("127.0.0.1", echo_port), PATIENCE_S) as peer:
            peer.sendall(b"hello")
            with Producer(bootstrap_servers=f"127.0.0.1:{broker.port}") as producer:
                receipt = producer.send(ORDERS, b"value")
                producer.flush()
            echoed = peer.recv(100)
    finally:
        broker.stop()

    assert echoed == b"hello"
    assert receipt.result().offset == 0
