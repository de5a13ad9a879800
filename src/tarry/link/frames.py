"""Frames: a stream of bytes, cut into the answers in it.

Memory follows the bytes that arrived.  An impossible length means that the peer does not speak
Kafka's protocol; the error names the protocol that it seems to speak.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_PIECES_MAX

# Largest answer: more than any allowed `fetch.max.bytes`, and less than the first four bytes of
# HTTP or TLS read as a length.
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024

HTTP: Final = b"HTTP"
TLS_ALERT: Final = b"\x15\x03"
TLS_HANDSHAKE: Final = b"\x16\x03"


class FrameSplitter:
    """Splitter of a stream into whole frames; it keeps the begin of an incomplete frame."""

    def __init__(self, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        self._answer_bytes_max = answer_bytes_max
        # Begin of the next length, if fewer than its four bytes have come.
        self._head = b""
        # Length of the incomplete frame; -1 if it has not come.
        self._length = -1
        self._parts: list[bytes] = []
        # Number of parts at the front that were joined from smaller ones.
        self._joined = 0
        self._size = 0

    @property
    def progress(self) -> str:
        """Sentence about the incomplete answer; empty if no byte of it has come."""
        if self._length >= 0:
            return f"only {self._size} of the {self._length} bytes of an answer came"
        return f"only {len(self._head)} bytes came" if self._head else ""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now, in order, without their lengths."""
        frames: list[bytes] = []
        position = 0
        while True:
            if self._length < 0:
                position = self._read_length(data, position)
                if self._length < 0:
                    return frames
            # A chunk that belongs to one frame as a whole is not copied here.
            part = data[position : position + self._length - self._size]
            position += len(part)
            self._size += len(part)
            if part:
                self._add(part)
            if self._size < self._length:
                return frames
            frames.append(part if len(self._parts) == 1 else b"".join(self._parts))
            self._parts = []
            self._joined = 0
            self._size = 0
            self._length = -1

    def _add(self, part: bytes) -> None:
        """Keep a part of the frame; join many small parts, whose objects outweigh their bytes."""
        parts = self._parts
        parts.append(part)
        if len(parts) - self._joined > FRAME_PIECES_MAX:
            # Joined parts are not joined again, so no byte is copied often.
            parts[self._joined :] = [b"".join(parts[self._joined :])]
            self._joined += 1

    def _read_length(self, data: bytes, position: int) -> int:
        """Read what has come of the next length; return the position behind it."""
        missing = 4 - len(self._head)
        self._head += data[position : position + missing]
        if len(self._head) < 4:
            return len(data)
        length = int.from_bytes(self._head, "big")
        if length > self._answer_bytes_max or length < 4:
            raise ProtocolViolation(_no_length(self._head, length, self._answer_bytes_max))
        self._head = b""
        self._length = length
        return position + missing


def _no_length(head: bytes, length: int, bytes_max: int) -> str:
    if head == HTTP:
        return "the peer answers in HTTP: this is not a Kafka port"
    if head[:2] in (TLS_ALERT, TLS_HANDSHAKE):
        return "the peer answers in TLS, which this client has not yet: name a listener without it"
    if bytes_max < length <= ANSWER_BYTES_MAX:
        return f"the peer sent an answer of {length} bytes, and at most {bytes_max} are taken"
    return f"the peer sent an answer of {length} bytes: this is not a Kafka port"
