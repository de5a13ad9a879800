"""Outgoing connections to names: looked up beside the loop, address after address."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tests.support.patience import tries

from tarry.base.doors import CONNECTED, DISCONNECTED, Event
from tarry.base.settings import Settings
from tarry.runtime.look_ups import LookUps, numeric_addresses
from tarry.runtime.poller import READABLE, make_poller
from tarry.runtime.reactor import Reactor
from tarry.runtime.sockets import OsTransport
from tarry.runtime.wake import Wake


class Caller:
    """A transport that connects, and a server's socket to connect to."""

    def __init__(self) -> None:
        self.reactor = Reactor(make_poller())
        self.wake = Wake()
        self.reactor.add(self.wake.read_descriptor, READABLE, self.wake)
        self.look_ups = LookUps(self.wake)
        settings = Settings({"listeners": "PLAINTEXT://127.0.0.1:0"})
        self.transport = OsTransport(self.reactor, settings, 100, self.look_ups)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]

    def event_of(self, connection_id: int) -> Event:
        for _ in tries():
            for event in self.reactor.wait(100):
                if event.connection_id == connection_id:
                    return event
        raise AssertionError("nothing came of the connection")

    def close(self) -> None:
        self.look_ups.close()
        self.transport.abandon_all()
        self.reactor.close()
        self.wake.close()
        self.server.close()


@pytest.fixture
def caller() -> Iterator[Caller]:
    caller = Caller()
    yield caller
    caller.close()


def test_a_name_is_looked_up_and_its_addresses_are_tried_in_turn(caller: Caller) -> None:
    caller.look_ups.begin()

    # Where the system has both, the name stands for ::1 as well, where nobody listens.
    connection_id = caller.transport.connect("localhost", caller.port)

    assert caller.event_of(connection_id).kind == CONNECTED


def test_an_address_that_refuses_is_followed_by_the_next(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = closed.getsockname()[1]
    asked: list[tuple[str, int]] = []

    def look_up(host: str, port: int, found: object) -> None:
        assert callable(found)
        asked.append((host, port))
        found(numeric_addresses("127.0.0.1", refusing) + numeric_addresses("127.0.0.1", port), "")

    caller.look_ups.look_up = look_up  # type: ignore[method-assign]

    connection_id = caller.transport.connect("b1.example", caller.port)

    assert caller.event_of(connection_id).kind == CONNECTED
    assert asked == [("b1.example", caller.port)]


def test_a_name_that_nobody_knows_ends_the_connection(caller: Caller) -> None:
    caller.look_ups.begin()

    event = caller.event_of(caller.transport.connect("..", caller.port))

    assert event.kind == DISCONNECTED
    assert ".." in event.error


def test_nothing_comes_of_a_connection_that_was_closed_before_its_name_was_known(
    caller: Caller,
) -> None:
    given_up = caller.transport.connect("localhost", caller.port)
    caller.transport.close(given_up)
    caller.look_ups.begin()

    event = caller.event_of(caller.transport.connect("127.0.0.1", caller.port))

    assert event.kind == CONNECTED
    assert caller.transport.count == 1


def test_a_broker_without_a_cluster_looks_no_name_up(caller: Caller) -> None:
    event = caller.event_of(caller.transport.connect("localhost", caller.port))

    assert event.kind == DISCONNECTED
    assert "member of a cluster" in event.error
