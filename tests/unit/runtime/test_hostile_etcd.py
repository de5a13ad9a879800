"""Answers that no etcd gives: each ends the link with the member's name, and nothing else ends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from tarry.base.doors import Event
from tarry.base.etcd import (
    CallFailed,
    EtcdAnswer,
    EtcdEvent,
    Removed,
    RevisionSeen,
    Row,
    RowsRead,
    WatchEnded,
)
from tarry.runtime.etcd import calls, etcd_pb2 as pb
from tarry.runtime.etcd.client import EtcdClient
from tarry.runtime.etcd.grpc_link import LinkBroken
from tarry.runtime.etcd.socket_link import Endpoint
from tarry.runtime.etcd.watching import REVISION_BYTES_MAX, Watching
from tarry.runtime.poller import SelectorPoller
from tarry.runtime.reactor import Reactor

Script = Callable[[bytes], list[bytes]]

OK = [(":status", "200"), ("content-type", "application/grpc")]


def framed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


class ScriptedEtcd:
    """A member that answers each call as its script says, in the thread of the test."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []
        # Called while the client has to read.
        self.between: Callable[[], object] = list
        self.raw = b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self._peers: list[tuple[socket.socket, h2.connection.H2Connection]] = []
        self._bodies: dict[tuple[object, int], bytes] = {}
        self._waiting: list[tuple[h2.connection.H2Connection, int, bytes]] = []

    @property
    def port(self) -> int:
        port = self._listening.getsockname()[1]
        assert isinstance(port, int)
        return port

    def pump(self) -> None:
        """Take and send what there is."""
        try:
            one, _ = self._listening.accept()
        except BlockingIOError:
            pass
        else:
            one.setblocking(False)
            config = h2.config.H2Configuration(client_side=False)
            connection = h2.connection.H2Connection(config)
            connection.initiate_connection()
            self._peers.append((one, connection))
        for one, connection in self._peers:
            try:
                data = one.recv(1 << 20)
            except (BlockingIOError, OSError):
                data = b""
            for event in connection.receive_data(data) if data else []:
                self._on_event(connection, event)
            self._send_waiting()
            out = connection.data_to_send() + self.raw
            self.raw = b""
            if out:
                self._send(one, out)

    def _send(self, one: socket.socket, data: bytes) -> None:
        """Send all of it; the client reads in between."""
        left = memoryview(data)
        while left:
            try:
                left = left[one.send(left) :]
            except BlockingIOError:
                self.between()
            except OSError:
                return

    def _on_event(self, connection: h2.connection.H2Connection, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            key = (connection, event.stream_id)
            body = self._bodies.get(key, b"") + event.data
            self._bodies[key] = body
            if len(body) >= 5 and len(body) == 5 + int.from_bytes(body[1:5], "big"):
                self._answer(connection, event.stream_id, body[5:])

    def _answer(self, connection: h2.connection.H2Connection, stream_id: int, body: bytes) -> None:
        self.requests.append(body)
        answers = self.script(body)
        connection.send_headers(stream_id, OK)
        self._waiting.append((connection, stream_id, b"".join(map(framed, answers))))

    def _send_waiting(self) -> None:
        """Send as much as the client's windows allow."""
        while self._waiting:
            connection, stream_id, data = self._waiting[0]
            while data:
                room = min(connection.local_flow_control_window(stream_id), 16_384)
                if room == 0:
                    self._waiting[0] = (connection, stream_id, data)
                    return
                connection.send_data(stream_id, data[:room])
                data = data[room:]
            connection.send_headers(stream_id, [("grpc-status", "0")], end_stream=True)
            self._waiting.pop(0)

    def close(self) -> None:
        for one, _ in self._peers:
            one.close()
        self._listening.close()


class Asking:
    """A client of one scripted member."""

    def __init__(self, script: Script) -> None:
        self.server = ScriptedEtcd(script)
        self.reactor = Reactor(SelectorPoller())
        self.client = EtcdClient(
            self.reactor,
            [Endpoint("127.0.0.1", self.server.port)],
            look_up=lambda *_: None,
        )

        self.events: list[Event] = []
        self.server.between = self.turn

    def turn(self) -> None:
        self.events += self.reactor.wait(1)

    def end_of(self, call_id: int) -> EtcdAnswer:
        for _ in range(10_000):
            self.server.pump()
            self.turn()
            for event in self.events:
                assert isinstance(event, EtcdEvent)
                if event.answer.call_id == call_id:
                    return event.answer
        raise AssertionError("no answer came")

    def close(self) -> None:
        self.client.close()
        self.reactor.close()
        self.server.close()


@pytest.fixture
def asking() -> Iterator[Callable[[Script], Asking]]:
    made: list[Asking] = []

    def ask(script: Script) -> Asking:
        made.append(Asking(script))
        return made[-1]

    yield ask
    for each in made:
        each.close()


def page(*keys: bytes, more: bool = False, value: bytes = b"v") -> bytes:
    pairs = [pb.KeyValue(key=key, value=value, mod_revision=1) for key in keys]
    return pb.RangeResponse(kvs=pairs, more=more, count=len(keys)).SerializeToString()


# --- Reads.


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page(more=True), "does not go on where the one before it ended"),
        (b"\xff\xff\xff", "cannot be decoded"),
        (b"\x0a\x05abc", "cannot be decoded"),
    ],
    ids=["more of nothing", "noise", "cut short"],
)
def test_an_answer_that_no_etcd_gives_fails_the_call_with_the_members_name(
    asking: Callable[[Script], Asking], answer: bytes, words: str
) -> None:
    member = asking(lambda _: [answer])

    ended = member.end_of(member.client.begin_read(b"p/"))

    assert isinstance(ended, CallFailed)
    assert f"127.0.0.1:{member.server.port}: an answer that is not etcd's" in ended.reason
    assert words in ended.reason


def test_pages_that_repeat_themselves_end(asking: Callable[[Script], Asking]) -> None:
    member = asking(lambda _: [page(b"p/1", more=True)])

    ended = member.end_of(member.client.begin_read(b"p/"))

    assert isinstance(ended, CallFailed)
    assert len(member.server.requests) == 2


def test_a_read_has_at_most_so_many_bytes(
    asking: Callable[[Script], Asking], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "READ_BYTES_MAX", 1_000_000)
    count = iter(range(10_000))
    member = asking(lambda _: [page(b"p/%08d" % next(count), more=True, value=bytes(50_000))])

    ended = member.end_of(member.client.begin_read(b"p/"))

    assert isinstance(ended, CallFailed)
    assert "more than 1000000 bytes of rows" in ended.reason
    assert len(member.server.requests) <= 21


def test_after_large_pages_fewer_rows_are_asked_for_and_after_small_ones_more(
    asking: Callable[[Script], Asking],
) -> None:
    limits: list[int] = []

    def script(body: bytes) -> list[bytes]:
        request = pb.RangeRequest.FromString(body)
        limits.append(request.limit)
        value = bytes(10_000) if len(limits) < 3 else b""
        first = len(limits) * 10_000
        keys = [b"p/%08d" % number for number in range(first, first + request.limit)]
        return [page(*keys, more=len(limits) < 7, value=value)]

    member = asking(script)
    ended = member.end_of(member.client.begin_read(b"p/"))

    assert isinstance(ended, RowsRead)
    assert len(ended.rows) == sum(limits)
    assert limits[0] == calls.ROWS_PER_PAGE_FIRST
    assert limits[1] * 10_000 <= calls.PAGE_BYTES
    assert limits[2] <= 2 * limits[1]
    assert limits[-1] == min(limits[3] * 2**3, calls.ROWS_PER_PAGE_MAX)


def test_a_member_that_takes_no_calls_is_named(asking: Callable[[Script], Asking]) -> None:
    member = asking(lambda _: [page(b"p/1")])
    assert isinstance(member.end_of(member.client.begin_read(b"p/")), RowsRead)
    settings = struct.pack(">HI", h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS, 0)
    member.server.raw = len(settings).to_bytes(3, "big") + b"\x04\x00\x00\x00\x00\x00" + settings
    for _ in range(5):
        member.server.pump()
        member.reactor.wait(5)

    ended = member.end_of(member.client.begin_read(b"p/"))

    assert isinstance(ended, CallFailed)
    assert f"127.0.0.1:{member.server.port}: the peer takes no call" in ended.reason
    assert isinstance(member.end_of(member.client.begin_read(b"p/")), RowsRead)


def test_frames_of_nothing_are_read_a_bounded_part_a_turn(
    asking: Callable[[Script], Asking],
) -> None:
    member = asking(lambda _: [page(b"p/1")])
    assert isinstance(member.end_of(member.client.begin_read(b"p/")), RowsRead)
    link = member.client._link
    assert link is not None
    member.server.raw = b"\x00\x00\x00\x55\x00\x00\x00\x00\x00" * 20_000
    received = [0]

    def turn() -> None:
        before = link.received_bytes
        member.reactor.wait(1)
        received.append(link.received_bytes - before)

    member.server.between = turn
    member.server.pump()
    while received[-1] or len(received) < 10:
        turn()

    assert sum(received) == 180_000
    assert max(received) <= 32 * 1024


# --- Watches, by bytes.


def event(revision: int, key: bytes = b"k", value: bytes = b"v") -> pb.Event:
    pair = pb.KeyValue(key=key, value=value, mod_revision=revision, create_revision=1)
    return pb.Event(type=pb.Event.PUT, kv=pair)


def told(*events: pb.Event, fragment: bool = False) -> bytes:
    return pb.WatchResponse(events=events, fragment=fragment).SerializeToString()


def test_a_revision_in_two_fragments_is_told_once_and_whole() -> None:
    watching = Watching(1, 1)

    first = watching.read(told(event(5, b"a"), event(6, b"b"), fragment=True))
    second = watching.read(told(event(6, b"c"), event(7, b"d")))

    assert first == [RevisionSeen(1, 5, [Row(b"a", b"v", 1, 5, 0)])]
    rows = [Row(b"b", b"v", 1, 6, 0), Row(b"c", b"v", 1, 6, 0)]
    assert second == [RevisionSeen(1, 6, rows), RevisionSeen(1, 7, [Row(b"d", b"v", 1, 7, 0)])]


def test_fragments_of_many_revisions_are_not_gathered() -> None:
    watching = Watching(1, 1)
    revisions: list[int] = []

    for revision in range(1, 2_001):
        answers = watching.read(told(event(revision, value=bytes(60_000)), fragment=True))
        revisions += [each.revision for each in answers if isinstance(each, RevisionSeen)]
        assert len(watching._events) == 1

    assert revisions == list(range(1, 2_000))


def test_a_deletion_in_fragments_is_told_in_its_place() -> None:
    watching = Watching(1, 1)
    gone = pb.Event(type=pb.Event.DELETE, kv=pb.KeyValue(key=b"a", mod_revision=5))

    watching.read(told(gone, fragment=True))

    assert watching.read(told(event(5, b"b"))) == [
        RevisionSeen(1, 5, [Removed(b"a", 5), Row(b"b", b"v", 1, 5, 0)])
    ]


def test_fragments_without_end_are_no_revision() -> None:
    watching = Watching(1, 1)
    part = told(event(5, value=bytes(4 << 20)), fragment=True)

    with pytest.raises(LinkBroken, match="bytes of one revision"):
        for _ in range(REVISION_BYTES_MAX // len(part) + 2):
            watching.read(part)


def test_a_watch_that_no_etcd_sends_ends_with_the_members_name(
    asking: Callable[[Script], Asking],
) -> None:
    member = asking(lambda _: [b"\xff\xff"])

    ended = member.end_of(member.client.watch(b"p/", 1))

    assert isinstance(ended, WatchEnded)
    assert f"127.0.0.1:{member.server.port}: an answer that is not etcd's" in ended.reason
