"""Calls over HTTP/2 whose ends come in the same bytes as what was said before them."""

from __future__ import annotations

import h2.config
import h2.connection
import h2.errors
import h2.settings
import pytest

from tarry.runtime.etcd.grpc_link import CallEnded, GrpcLink

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
