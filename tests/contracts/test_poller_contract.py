"""One suite over all pollers."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable, Iterator

import pytest

from tarry.runtime.poller import READABLE, READY_MAX, WRITABLE, Poller, SelectorPoller, make_poller

POLLERS: dict[str, Callable[[], Poller]] = {
    "best": make_poller,
    "selectors": SelectorPoller,
    "poll": lambda: SelectorPoller(selectors.PollSelector()),
    "select": lambda: SelectorPoller(selectors.SelectSelector()),
}


@pytest.fixture(params=POLLERS)
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    poller = POLLERS[request.param]()
    yield poller
    poller.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


def test_nothing_is_ready_until_bytes_come(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    poller.register(one.fileno(), READABLE)

    assert poller.poll(0) == []
    other.send(b"x")
    assert poller.poll(1_000) == [(one.fileno(), READABLE)]
    assert poller.poll(1_000) == [(one.fileno(), READABLE)]
    one.recv(1)
    assert poller.poll(0) == []


def test_interest_can_be_changed_to_nothing_and_back(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    other.send(b"x")
    poller.register(one.fileno(), READABLE | WRITABLE)
    assert poller.poll(1_000) == [(one.fileno(), READABLE | WRITABLE)]

    poller.modify(one.fileno(), 0)
    assert poller.poll(0) == []
    poller.modify(one.fileno(), 0)
    poller.modify(one.fileno(), WRITABLE)
    assert poller.poll(1_000) == [(one.fileno(), WRITABLE)]
    poller.modify(one.fileno(), READABLE)
    assert poller.poll(1_000) == [(one.fileno(), READABLE)]


def test_a_descriptor_may_be_registered_without_interest(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    other.send(b"x")

    poller.register(one.fileno(), 0)
    assert poller.poll(0) == []
    poller.unregister(one.fileno())
    poller.register(one.fileno(), READABLE)

    assert poller.poll(1_000) == [(one.fileno(), READABLE)]


def test_an_unregistered_descriptor_is_quiet(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    poller.register(one.fileno(), READABLE)
    other.send(b"x")

    poller.unregister(one.fileno())

    assert poller.poll(0) == []


def test_the_end_of_a_peer_is_readable(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    one, other = pair
    poller.register(one.fileno(), READABLE)

    other.close()

    ((descriptor, mask),) = poller.poll(1_000)
    assert descriptor == one.fileno()
    assert mask & READABLE


def test_one_poll_returns_a_bounded_number(poller: Poller) -> None:
    pipes = [os.pipe() for _ in range(READY_MAX + 20)]
    for reading, writing in pipes:
        os.write(writing, b"x")
        poller.register(reading, READABLE)

    assert len(poller.poll(1_000)) == READY_MAX

    for reading, writing in pipes:
        poller.unregister(reading)
        os.close(reading)
        os.close(writing)
