"""Frames out of bytes in any cut, answers in the order of their requests."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_AGE_MS_MAX
from tarry.broker.kafka_connection import FrameHandler, KafkaConnection

FRAME_BYTES_MAX = 1_000


def connection() -> KafkaConnection:
    return KafkaConnection(FrameHandler(), 1, "PLAINTEXT", "127.0.0.1:5", FRAME_BYTES_MAX)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big", signed=True) + body


def frames_of(peer: KafkaConnection, now_ms: int = 0) -> list[bytes]:
    frames = []
    while (position := peer.next_frame(now_ms)) >= 0:
        frames.append(peer.data[position : peer.position])
    return frames


@given(st.lists(st.binary(min_size=8, max_size=200), max_size=8), st.data())
def test_frames_come_out_whole_whatever_the_cuts(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(framed(body) for body in bodies)
    peer = connection()
    got: list[bytes] = []

    position = 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream) - position))
        peer.feed(stream[position : position + size])
        got += frames_of(peer)
        position += size

    assert got == bodies


def test_bytes_that_wait_while_the_peer_is_blocked_are_kept_in_order() -> None:
    peer = connection()
    peer.feed(framed(b"first one") + framed(b"second one"))
    peer.feed(framed(b"third one"))

    assert frames_of(peer) == [b"first one", b"second one", b"third one"]


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP bytes"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS bytes"),
        (b"\xff\xff\xff\xff....", "-1 bytes is no request"),
        (b"\x00\x00\x00\x00....", "0 bytes is no request"),
        (b"\x00\x00\x04\x00....", "over socket.request.max.bytes"),
    ],
)
def test_a_length_that_no_request_has_is_a_violation(start: bytes, sentence: str) -> None:
    peer = connection()
    peer.feed(start)

    with pytest.raises(ProtocolViolation, match=sentence):
        peer.next_frame(0)


def test_an_unfinished_frame_is_late_a_minute_after_its_first_byte() -> None:
    peer = connection()
    peer.feed(b"\x00")
    frames_of(peer, now_ms=5)
    for moment in range(1, 3):
        peer.feed(b"\x00")
        frames_of(peer, now_ms=moment * 10_000)

    assert not peer.is_late(FRAME_AGE_MS_MAX + 4)
    assert peer.is_late(FRAME_AGE_MS_MAX + 5)


def test_a_whole_frame_ends_the_clock_of_its_first_byte() -> None:
    peer = connection()
    frame = framed(b"12345678")
    peer.feed(frame[:6])
    frames_of(peer, now_ms=5)
    peer.feed(frame[6:])
    frames_of(peer, now_ms=6)

    assert not peer.is_late(10 * FRAME_AGE_MS_MAX)
