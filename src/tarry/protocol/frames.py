"""Frames: four bytes of length, a header, a message.

This module encodes frames; a connection cuts received ones out of its peer's stream.
"""

from __future__ import annotations

from tarry.base.doors import Chunk
from tarry.protocol.headers import RequestHeader, encode_response_header
from tarry.protocol.message import Message
from tarry.wire.writer import Writer


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, message: Message
) -> bytes:
    """Encode one request with its length.  Its records must be in memory, not regions of files."""
    writer = Writer()
    writer.i32(0)
    RequestHeader(api_key, api_version, correlation_id, client_id).encode(writer)
    message.encode(writer, api_version)
    writer.set_i32(0, writer.size - 4)
    return writer.joined()


def encode_response(
    api_key: int, api_version: int, correlation_id: int, message: Message
) -> list[Chunk]:
    """Encode one response; its first chunk begins with the length of all of them."""
    writer = Writer()
    writer.i32(0)
    encode_response_header(writer, api_key, api_version, correlation_id)
    message.encode(writer, api_version)
    writer.set_i32(0, writer.size - 4)
    return writer.chunks()
