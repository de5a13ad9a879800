"""Frames: a stream of bytes cut into the answers that it carries.

Memory follows the bytes that arrived.  A length that no answer has means that the peer does not
speak Kafka's protocol, and the text says what it seems to speak.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_PIECES_MAX

# Above every `fetch.max.bytes` that is allowed, and below what the first four bytes of HTTP and
# TLS look like as a length.
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024

HTTP: Final = b"HTTP"
TLS_ALERT: Final = b"\x15\x03"
TLS_HANDSHAKE: Final = b"\x16\x03"


class FrameSplitter:
    """Cutter of a stream into whole frames; keeps what is not whole yet."""

    def __init__(self, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        self._answer_bytes_max = answer_bytes_max
        # Less than the four bytes of a length.
        self._head = b""
        # Of the frame that is not whole yet; -1: its length has not come.
        self._length = -1
        self._parts: list[bytes] = []
        # How many parts at the front are joined ones.
        self._joined = 0
        self._size = 0

    @property
    def progress(self) -> str:
        """Part of an answer that has come while the rest is missing; empty if nothing has."""
        if self._length >= 0:
            return f"only {self._size} of the {self._length} bytes of an answer came"
        return f"only {len(self._head)} bytes came" if self._head else ""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are whole now, in order, without their lengths."""
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
        """Keep a part of the frame; many small ones, whose objects outweigh them, are joined."""
        parts = self._parts
        parts.append(part)
        if len(parts) - self._joined > FRAME_PIECES_MAX:
            # Large ones, and what was joined before, are not copied again and again.
            parts[self._joined :] = [b"".join(parts[self._joined :])]
            self._joined += 1

    def _read_length(self, data: bytes, position: int) -> int:
        """Read the length of the next frame, as far as it is there; returns where to go on."""
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
