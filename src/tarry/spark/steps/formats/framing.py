"""Framing of a schema registry: a zero byte and the schema's id before the value."""

from __future__ import annotations

from typing import Final

# A zero byte, then the id as four bytes, big-endian.
FRAME_BYTES: Final = 5
MAGIC: Final = 0


def without_frame(value: bytes) -> bytes:
    """Return a value of JSON without its frame: no JSON begins with a zero byte."""
    if len(value) >= FRAME_BYTES and value[0] == MAGIC:
        return value[FRAME_BYTES:]
    return value
