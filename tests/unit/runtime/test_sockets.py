"""The door `Transport` over real sockets of this machine."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from tarry.base.doors import CONNECTED, DISCONNECTED, DRAINED, RECEIVED, Event
from tarry.base.settings import Settings
from tarry.runtime import clock
from tarry.runtime.listening import ACCEPTS_PER_TURN_MAX
from tarry.runtime.peer import RECEIVE_BYTES_MAX
from tarry.runtime.poller import Poller, SelectorPoller, make_poller
from tarry.runtime.reactor import Reactor
from tarry.runtime.refusal import StartRefused
from tarry.runtime.sockets import OsTransport

POLLERS: dict[str, Callable[[], Poller]] = {"best": make_poller, "selectors": SelectorPoller}

LOCAL = {"listeners": "PLAINTEXT://127.0.0.1:0"}


class World:
    """A transport with its listeners open, and peers that connect to it."""

    def __init__(self, make: Callable[[], Poller]) -> None:
        self.make = make
        self.reactors: list[Reactor] = []
        self.transports: list[OsTransport] = []
        self.peers: list[socket.socket] = []
        self.settings = Settings(LOCAL)

    def open(self, texts: dict[str, str] | None = None, connections_max: int = 10_000) -> None:
        self.settings = Settings({**LOCAL, **(texts or {})})
        self.reactors.append(Reactor(self.make()))
        self.transports.append(OsTransport(self.reactors[-1], self.settings, connections_max))
        self.transport.bind()
        self.transport.listen()

    @property
    def transport(self) -> OsTransport:
        return self.transports[-1]

    def connect(self, listener: int = 0, host: str = "127.0.0.1") -> socket.socket:
        peer = socket.create_connection((host, self.settings.open_listeners[listener].port), 10)
        self.peers.append(peer)
        return peer

    def connected(self) -> tuple[int, socket.socket]:
        peer = self.connect()
        (event,) = self.events(CONNECTED)
        return event.connection_id, peer

    def wait(self, timeout_ms: int = 5_000) -> list[Event]:
        events = self.reactors[-1].wait(timeout_ms)
        self.transport.sweep(clock.now_ms())
        return events

    def events(self, kind: int, count: int = 1) -> list[Event]:
        """Waits until so many events of this kind came; no others may come before."""
        found: list[Event] = []
        while len(found) < count:
            events = self.wait()
            assert events, "nothing came"
            assert [event.kind for event in events if event.kind != kind] == []
            found += events
        return found

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        for transport in self.transports:
            transport.abandon_all()
        for reactor in self.reactors:
            reactor.close()


@pytest.fixture(params=POLLERS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(POLLERS[request.param])
    world.open()
    yield world
    world.close()


def reset(peer: socket.socket) -> None:
    """Close so that the other side sees a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def read_all(peer: socket.socket) -> bytes:
    parts = bytearray()
    while data := peer.recv(1 << 20):
        parts += data
    return bytes(parts)


def test_a_connection_tells_its_listener_and_its_peer(world: World) -> None:
    peer = world.connect()

    (event,) = world.events(CONNECTED)

    assert event.listener == "PLAINTEXT"
    assert event.peer == f"127.0.0.1:{peer.getsockname()[1]}"


def test_ids_are_never_used_twice(world: World) -> None:
    ids = []
    for _ in range(5):
        connection_id, peer = world.connected()
        ids.append(connection_id)
        peer.close()
        world.events(DISCONNECTED)

    assert len(set(ids)) == 5


def test_what_a_peer_sends_is_received_and_its_end_told_once(world: World) -> None:
    connection_id, peer = world.connected()

    peer.sendall(b"hello")
    (event,) = world.events(RECEIVED)
    peer.close()
    (end,) = world.events(DISCONNECTED)

    assert (event.connection_id, event.data) == (connection_id, b"hello")
    assert (end.connection_id, end.error) == (connection_id, "")
    assert world.wait(0) == []


def test_a_reset_is_told_with_its_reason(world: World) -> None:
    _, peer = world.connected()

    reset(peer)

    (end,) = world.events(DISCONNECTED)
    assert end.error == os.strerror(104)


def test_an_answer_arrives_and_nothing_is_left(world: World) -> None:
    connection_id, peer = world.connected()

    assert world.transport.send(connection_id, [b"one"]) == 0
    assert world.transport.send(connection_id, [b"two", memoryview(b"three")]) == 0

    assert peer.recv(11, socket.MSG_WAITALL) == b"onetwothree"
    assert world.wait(0) == []


def test_a_large_answer_is_sent_by_and_by_and_drained_told_at_its_end(world: World) -> None:
    connection_id, peer = world.connected()
    answer = os.urandom(5_000_000)

    left = world.transport.send(connection_id, [answer])
    assert 0 < left < len(answer)
    left_after_more = world.transport.send(connection_id, [b"more"])
    assert left_after_more == left + 4

    peer.settimeout(0.05)
    arrived = bytearray()
    events: list[Event] = []
    while len(arrived) < len(answer) + 4:
        with contextlib.suppress(TimeoutError):
            arrived += peer.recv(1 << 20)
        events += world.wait(0)
    events += world.wait(100)
    assert bytes(arrived) == answer + b"more"
    assert [(event.kind, event.connection_id) for event in events] == [(DRAINED, connection_id)]
    assert world.wait(0) == []


def test_one_read_of_a_turn_is_bounded_and_all_peers_are_served(world: World) -> None:
    first, greedy = world.connected()
    second, modest = world.connected()
    greedy.setblocking(False)
    sent = greedy.send(b"x" * 10_000_000)
    modest.sendall(b"y")

    got: dict[int, int] = {first: 0, second: 0}
    while got[first] < sent or not got[second]:
        events = world.wait()
        assert len({event.connection_id for event in events}) == len(events)
        for event in events:
            assert len(event.data) <= RECEIVE_BYTES_MAX
            got[event.connection_id] += len(event.data)

    assert got == {first: sent, second: 1}


def test_a_paused_peer_is_not_read_until_it_is_resumed(world: World) -> None:
    connection_id, peer = world.connected()

    world.transport.pause_reading(connection_id)
    world.transport.pause_reading(connection_id)
    peer.sendall(b"hello")
    assert world.wait(50) == []
    world.transport.resume_reading(connection_id)

    (event,) = world.events(RECEIVED)
    assert event.data == b"hello"


def test_a_paused_peer_still_takes_its_answer(world: World) -> None:
    connection_id, peer = world.connected()
    world.transport.pause_reading(connection_id)
    answer = os.urandom(3_000_000)

    world.transport.send(connection_id, [answer])
    peer.settimeout(0.05)
    arrived = bytearray()
    while len(arrived) < len(answer):
        with contextlib.suppress(TimeoutError):
            arrived += peer.recv(1 << 20)
        assert [event.kind for event in world.wait(0) if event.kind != DRAINED] == []

    assert bytes(arrived) == answer


def test_a_paused_peer_that_is_reset_does_not_make_the_loop_spin(world: World) -> None:
    connection_id, peer = world.connected()
    world.transport.pause_reading(connection_id)

    reset(peer)

    turns = sum(1 for _ in range(20) if world.wait(5))
    assert turns <= 1


def test_sending_to_a_peer_that_is_gone_is_quiet_and_its_end_is_told(world: World) -> None:
    connection_id, peer = world.connected()
    reset(peer)

    for _ in range(3):
        world.transport.send(connection_id, [b"x", b"y"])
    world.transport.pause_reading(connection_id)
    world.transport.resume_reading(connection_id)
    world.transport.close(12_345)

    (end,) = world.events(DISCONNECTED)
    assert end.connection_id == connection_id
    assert world.transport.send(connection_id, [b"x"]) == 0


def test_close_lets_the_peer_take_everything_first_and_tells_nothing(world: World) -> None:
    connection_id, peer = world.connected()
    # Unread bytes of the peer would make the kernel reset the connection at a plain close.
    peer.sendall(b"unread")
    answer = os.urandom(2_000_000)
    world.transport.send(connection_id, [answer])

    world.transport.close(connection_id)
    peer.settimeout(0.05)
    arrived = bytearray()
    is_ended = False
    while not is_ended:
        try:
            data = peer.recv(1 << 20)
            arrived += data
            is_ended = not data
        except TimeoutError:
            pass
        assert world.wait(0) == []
    peer.close()
    assert world.wait(50) == []

    assert bytes(arrived) == answer
    assert world.transport.count == 0


def test_a_closed_peer_that_takes_nothing_is_cut_off_after_a_second(world: World) -> None:
    connection_id, _peer = world.connected()
    world.transport.send(connection_id, [b"x" * 10_000_000])
    began_ms = clock.now_ms()

    world.transport.close(connection_id)
    while world.transport.count:
        assert world.wait(50) == []

    assert 900 <= clock.now_ms() - began_ms <= 3_000
    assert not world.transport.is_restless


def test_a_connection_over_max_connections_is_closed_and_summed_up(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.open({"max.connections": "2"})
    _, first = world.connected()
    world.connected()

    refused = [world.connect() for _ in range(5)]
    assert world.wait(50) == []

    assert [read_all(peer) for peer in refused] == [b""] * 5
    assert caplog.text.count("max.connections") == 1
    first.close()
    world.events(DISCONNECTED)
    world.connected()


def test_the_limits_of_connections_may_change_while_the_broker_runs(world: World) -> None:
    world.open({"max.connections": "1"})
    settings = world.settings
    world.connected()

    settings.overlay({"max.connections": "2"}, {})
    world.connected()
    settings.overlay({"max.connections.per.ip": "2"}, {})

    assert read_all_after_wait(world) == b""


def test_a_host_has_its_own_limit(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.open({"max.connections.per.ip": "1"})
    world.connected()
    assert read_all_after_wait(world) == b""
    assert "the limit of one address" in caplog.text

    world.open({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "127.0.0.1:3"})
    for _ in range(3):
        world.connected()
    assert read_all_after_wait(world) == b""


def test_the_addresses_of_one_ipv6_network_share_a_limit(world: World) -> None:
    world.open({"max.connections.per.ip": "2"})
    events: list[Event] = []
    hosts = [*(f"2001:db8::{last}" for last in range(1, 5)), "2001:db8:0:1::1"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        for host in hosts:
            world.peers.append(socket.create_connection(server.getsockname(), 10))
            ours, _ = server.accept()
            world.transport.on_accepted(ours, "PLAINTEXT", host, 5000, events)

    assert [event.peer for event in events] == [
        "[2001:db8::1]:5000",
        "[2001:db8::2]:5000",
        "[2001:db8:0:1::1]:5000",
    ]


def test_connections_beyond_the_rate_wait_and_are_served_later(world: World) -> None:
    world.open({"max.connection.creation.rate": "20", "socket.listen.backlog.size": "200"})
    for _ in range(30):
        world.connect()

    at_once = len(world.wait())
    later: list[Event] = []
    while len(later) < 30 - at_once:
        later += world.wait(20)

    assert 20 <= at_once < 30
    assert [event.kind for event in later] == [CONNECTED] * (30 - at_once)
    assert read_nothing(world.peers[-1])


def read_nothing(peer: socket.socket) -> bool:
    """Whether a peer is connected and was sent nothing, not even an end."""
    peer.setblocking(False)
    try:
        peer.recv(1)
    except BlockingIOError:
        return True
    return False


def test_the_rate_of_connections_may_change_while_the_broker_runs(world: World) -> None:
    world.open({"max.connection.creation.rate": "1", "socket.listen.backlog.size": "200"})
    for _ in range(5):
        world.connect()
    world.wait()
    world.wait(0)

    world.settings.overlay({"max.connection.creation.rate": str(2**31 - 1)}, {})
    later: list[Event] = []
    while len(later) < 4:
        later += world.wait(20)

    assert [event.kind for event in later] == [CONNECTED] * 4


def read_all_after_wait(world: World) -> bytes:
    peer = world.connect()
    assert world.wait(50) == []
    return read_all(peer)


def test_the_process_limit_of_descriptors_bounds_connections(world: World) -> None:
    world.open(connections_max=1)
    world.connected()

    assert read_all_after_wait(world) == b""


def test_accepts_of_one_turn_are_bounded(world: World) -> None:
    world.open({"socket.listen.backlog.size": "200"})
    for _ in range(ACCEPTS_PER_TURN_MAX + 10):
        world.connect()

    assert len(world.wait()) == ACCEPTS_PER_TURN_MAX
    assert len(world.wait()) == 10


def test_without_descriptors_accepting_pauses_and_goes_on_later(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    peer = world.connect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        turns = [world.wait(20) for _ in range(5)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert turns == [[]] * 5
    assert caplog.text.count("cannot accept connections") == 1
    events: list[Event] = []
    while not events:
        events = world.wait(50)
    assert events[0].peer == f"127.0.0.1:{peer.getsockname()[1]}"


def test_connections_have_the_options_of_the_settings(world: World) -> None:
    world.open({"socket.send.buffer.bytes": "50000", "socket.receive.buffer.bytes": "60000"})
    connection_id, _ = world.connected()
    one = world.transport._peers[connection_id].socket

    # Linux doubles what it is asked for.
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (50_000, 100_000)
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (60_000, 120_000)
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_two_listeners_tell_their_connections_apart(world: World) -> None:
    world.open(
        {
            "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        }
    )

    world.connect(1)
    (outside,) = world.events(CONNECTED)
    world.connect(0)
    (inside,) = world.events(CONNECTED)

    assert (outside.listener, inside.listener) == ("OUTSIDE", "INSIDE")


def test_a_wildcard_takes_ipv4_and_ipv6_and_writes_ipv4_as_such(world: World) -> None:
    world.open({"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://localhost:0"})
    assert world.settings.open_listeners[0].advertised_port > 0

    world.connect()
    (four,) = world.events(CONNECTED)
    world.connect(host="::1")
    (six,) = world.events(CONNECTED)

    assert four.peer.startswith("127.0.0.1:")
    assert six.peer.startswith("[::1]:")


def test_localhost_is_opened_at_all_of_its_addresses(world: World) -> None:
    world.open({"listeners": "PLAINTEXT://localhost:0"})

    addresses = {row[4][0] for row in socket.getaddrinfo("localhost", None)}
    for address in sorted(str(one) for one in addresses):
        world.connect(host=address)
        world.events(CONNECTED)


def test_a_taken_port_is_refused_with_another_to_write(world: World) -> None:
    port = world.settings.open_listeners[0].port

    with pytest.raises(StartRefused) as refusal:
        world.open({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})

    assert f"127.0.0.1:{port} is taken" in str(refusal.value)
    assert f"listeners=PLAINTEXT://127.0.0.1:{port + 1}" in str(refusal.value)


@pytest.mark.parametrize(
    ("listeners", "words"),
    [
        ("PLAINTEXT://192.0.2.1:0", "no address of this machine"),
        ("PLAINTEXT://no-such-host.invalid:0", "has no address"),
    ],
)
def test_an_address_that_is_not_ours_is_refused(world: World, listeners: str, words: str) -> None:
    with pytest.raises(StartRefused, match=words):
        world.open({"listeners": listeners})


def test_after_stop_listening_nobody_connects_and_others_go_on(world: World) -> None:
    connection_id, peer = world.connected()

    world.transport.stop_listening()
    with pytest.raises(ConnectionRefusedError):
        world.connect()

    world.transport.send(connection_id, [b"still here"])
    assert peer.recv(100) == b"still here"


def test_an_outgoing_connection_is_told_when_it_stands(world: World) -> None:
    port = world.settings.open_listeners[0].port

    outgoing = world.transport.connect("127.0.0.1", port)
    events: list[Event] = []
    while len(events) < 2:
        events += world.wait()

    assert sorted((event.listener, event.kind) for event in events) == [
        ("", CONNECTED),
        ("PLAINTEXT", CONNECTED),
    ]
    world.transport.send(outgoing, [b"hello"])
    (event,) = world.events(RECEIVED)
    assert event.data == b"hello"


@pytest.mark.parametrize("host", ["127.0.0.1", "no-address"])
def test_an_outgoing_connection_that_fails_is_told(world: World, host: str) -> None:
    port = world.settings.open_listeners[0].port
    world.transport.stop_listening()

    outgoing = world.transport.connect(host, port)

    (end,) = world.events(DISCONNECTED)
    assert end.connection_id == outgoing
    assert end.error != ""


def test_an_outgoing_connection_that_is_reset_as_it_stands_is_told(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        outgoing = world.transport.connect("127.0.0.1", server.getsockname()[1])
        reset(server.accept()[0])
        # Whoever asks for the error takes it away: the socket is then merely not connected.
        own = world.transport._peers[outgoing].socket
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

        (end,) = world.events(DISCONNECTED)

    assert end.connection_id == outgoing
    assert end.error != ""


@pytest.mark.parametrize("answer", ["accepted", "refused", "reset"])
def test_an_outgoing_connection_closed_before_it_stands_reports_nothing(
    world: World, answer: str
) -> None:
    world.open()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if answer == "refused":
            server.close()
        outgoing = world.transport.connect("127.0.0.1", port)
        if answer == "reset":
            peer, _ = server.accept()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        world.transport.close(outgoing)
        # Its socket is closed at once: nothing was sent that the other side could still read.
        assert world.transport.count == 0
        assert world.wait(50) == []
