"""Frames: a stream of bytes cut into the answers that it carries.

Memory follows the bytes that arrived.  A length that no answer has means that the peer does not
speak Kafka's protocol, and the text says what it seems to speak.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import ProtocolViolation

# Above every `fetch.max.bytes` that is allowed, and below what the first four bytes of HTTP and
# TLS look like as a length.
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024

HTTP: Final = b"HTTP"
TLS_ALERT: Final = b"\x15\x03"
TLS_HANDSHAKE: Final = b"\x16\x03"


class FrameSplitter:
    """Cutter of a stream into whole frames; keeps what is not whole yet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = 4

    @property
    def progress(self) -> str:
        """Part of an answer that has come while the rest is missing; empty if nothing has."""
        if self._size == 0:
            return ""
        if self._wanted <= 4:
            return f"only {self._size} bytes came"
        return f"only {self._size - 4} of the {self._wanted - 4} bytes of an answer came"

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are whole now, in order, without their lengths."""
        self._size += len(data)
        if self._size < self._wanted:
            self._parts.append(data)
            return []
        if self._parts:
            self._parts.append(data)
            data = b"".join(self._parts)
        frames: list[bytes] = []
        position = 0
        size = len(data)
        wanted = 4
        while size - position >= 4:
            length = int.from_bytes(data[position : position + 4], "big")
            if length > ANSWER_BYTES_MAX or length < 4:
                raise ProtocolViolation(_no_length(data[position : position + 4], length))
            wanted = 4 + length
            if size - position < wanted:
                break
            frames.append(data[position + 4 : position + wanted])
            position += wanted
            wanted = 4
        rest = data[position:]
        self._parts = [rest] if rest else []
        self._size = len(rest)
        self._wanted = wanted
        return frames


def _no_length(head: bytes, length: int) -> str:
    if head == HTTP:
        return "the peer answers in HTTP: this is not a Kafka port"
    if head[:2] in (TLS_ALERT, TLS_HANDSHAKE):
        return "the peer answers in TLS, which this client has not yet: name a listener without it"
    return f"the peer sent an answer of {length} bytes: this is not a Kafka port"
