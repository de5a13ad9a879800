"""Calls over HTTP/2 whose ends come in the same bytes as what was said before them."""

from __future__ import annotations

import random

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import hpack
import pytest

from tarry.runtime.etcd.grpc_link import CallEnded, GrpcLink, LinkBroken

UNAVAILABLE = 14
HEADERS = [(":status", "200"), ("content-type", "application/grpc")]
NO_LEADER = [*HEADERS, ("grpc-status", str(UNAVAILABLE)), ("grpc-message", "no leader")]


class Peer:
    """The other end of a link."""

    def __init__(self, window_bytes: int = 65_535) -> None:
        config = h2.config.H2Configuration(client_side=False)
        self.link = GrpcLink("etcd:2379", "http")
        self.connection = h2.connection.H2Connection(config)
        self.connection.local_settings = h2.settings.Settings(
            client=False,
            initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window_bytes},
        )
        self.connection.initiate_connection()
        self.hear()
        assert self.tell() == []

    def hear(self) -> None:
        """Take what the link has to send."""
        self.connection.receive_data(self.link.take())

    def tell(self) -> list[object]:
        """Have the link receive all that was said, at once."""
        return list(self.link.receive(self.connection.data_to_send()))

    def begin(self, message: bytes = b"watch", *, is_last: bool = False) -> int:
        stream_id = self.link.begin("/etcdserverpb.Watch/Watch", [])
        self.link.send(stream_id, message, is_last=is_last)
        self.hear()
        return stream_id


@pytest.mark.parametrize("is_last", [True, False], ids=["asked-all", "could-say-more"])
def test_a_call_that_is_ended_and_reset_at_once_has_its_status(is_last: bool) -> None:
    """A member of etcd that has lost its leader ends a watch like this."""
    peer = Peer()
    stream_id = peer.begin(is_last=is_last)
    peer.connection.send_headers(stream_id, NO_LEADER, end_stream=True)
    if not is_last:
        peer.connection.reset_stream(stream_id, h2.errors.ErrorCodes.NO_ERROR)

    assert peer.tell() == [CallEnded(stream_id, UNAVAILABLE, "no leader")]


def test_a_call_that_could_say_more_is_reset_when_the_peer_is_through_with_it() -> None:
    peer = Peer()
    stream_id = peer.begin()
    peer.connection.send_headers(stream_id, NO_LEADER, end_stream=True)

    assert peer.tell() == [CallEnded(stream_id, UNAVAILABLE, "no leader")]
    peer.hear()
    assert peer.connection.open_inbound_streams == 0


def test_a_call_that_is_given_room_and_reset_at_once_is_over() -> None:
    peer = Peer(window_bytes=10)
    stream_id = peer.begin(bytes(100))
    peer.connection.increment_flow_control_window(1_000, stream_id)
    peer.connection.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)

    (ended,) = peer.tell()

    assert isinstance(ended, CallEnded)
    assert "reset" in ended.text


def test_a_member_that_goes_away_takes_nothing_more() -> None:
    peer = Peer(window_bytes=10)
    first, second, third = peer.begin(bytes(100)), peer.begin(), peer.begin()
    peer.connection.increment_flow_control_window(1_000, first)
    peer.connection.send_headers(second, NO_LEADER, end_stream=True)
    peer.connection.close_connection()

    found = peer.tell()
    peer.link.cancel(third)

    assert found == [CallEnded(second, UNAVAILABLE, "no leader")]
    assert not peer.link.is_open


# --- Bytes that no sound peer sends.


def a_frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream_id.to_bytes(4, "big") + payload


def test_a_header_that_is_no_text_breaks_the_link() -> None:
    peer = Peer()
    stream_id = peer.begin(is_last=True)
    block = hpack.Encoder().encode([(b":status", b"200"), (b"x", b"\xff\xfe")])

    with pytest.raises(LinkBroken, match="HTTP/2"):
        peer.link.receive(a_frame(1, 4, stream_id, block))


@pytest.mark.parametrize("seed", range(0, 600, 100))
def test_damaged_bytes_break_the_link_or_are_taken(seed: int) -> None:
    for one in range(seed, seed + 100):
        chance = random.Random(one)
        peer = Peer(window_bytes=chance.choice([10, 65_535]))
        data = bytearray(conversation(peer))
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(1, 4))
        try:
            while data:
                count = chance.randrange(1, len(data) + 1)
                peer.link.receive(bytes(data[:count]))
                peer.link.take()
                del data[:count]
        except LinkBroken:
            continue


def conversation(peer: Peer) -> bytes:
    """What a member says of three calls."""
    ids = [peer.begin(bytes(100), is_last=number == 0) for number in range(3)]
    for stream_id in ids:
        peer.connection.send_headers(stream_id, HEADERS)
        peer.connection.send_data(stream_id, b"\x00\x00\x00\x00\x03abc")
    peer.connection.increment_flow_control_window(100)
    peer.connection.ping(b"12345678")
    peer.connection.send_headers(ids[0], [("grpc-status", "0")], end_stream=True)
    peer.connection.reset_stream(ids[1])
    return bytes(peer.connection.data_to_send())


def test_a_message_in_windows_of_one_byte_is_sent_in_order() -> None:
    peer = Peer(window_bytes=0)
    message = random.Random(1).randbytes(1_000)
    stream_id = peer.begin(message)
    sent = b""

    for _ in range(len(message) + 5):
        peer.connection.increment_flow_control_window(1, stream_id)
        assert peer.tell() == []
        for event in peer.connection.receive_data(peer.link.take()):
            if isinstance(event, h2.events.DataReceived):
                sent += event.data

    assert sent[5:] == message
