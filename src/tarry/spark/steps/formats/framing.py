"""Framing of a schema registry: a zero byte and the schema's id before the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tarry.spark.steps.formats.values import BadValue

# A zero byte, then the id as four bytes, big-endian.
FRAME_BYTES: Final = 5
MAGIC: Final = 0

# No file nests messages deeper than this, so a larger number is no number of indexes.
INDEXES_MAX: Final = 100


class Framed(NamedTuple):
    """Value with the id of its writer's schema."""

    schema_id: int
    value: bytes


def without_frames(values: Sequence[bytes | str | None]) -> Sequence[bytes | str | None]:
    """Return values of JSON without their frames: no JSON begins with a zero byte."""
    if not any(map(is_framed, values)):
        return values
    return [value[FRAME_BYTES:] if value and is_framed(value) else value for value in values]


def is_framed(value: bytes | str | None) -> bool:
    """Tell whether a value begins with a frame."""
    return value is not None and len(value) >= FRAME_BYTES and value[0] == MAGIC


def read_frame(value: bytes) -> Framed:
    """Split a value into the schema's id and the rest.  Raises BadValue."""
    if not is_framed(value):
        raise BadValue("the value has no frame of a registry: a zero byte and a schema's id")
    return Framed(int.from_bytes(value[1:FRAME_BYTES], "big"), value[FRAME_BYTES:])


def read_indexes(value: bytes) -> tuple[tuple[int, ...], bytes]:
    """Split a value of Protobuf into the message's place in its file and the rest.

    The place is a number of indexes and the indexes, outermost first; a lone 0 stands for the
    first message of the file.  Raises BadValue.
    """
    count, at = _zigzag(value, 0)
    if count == 0:
        return (0,), value[at:]
    if not 0 < count <= INDEXES_MAX:
        raise BadValue(f"the frame has {count} message indexes")
    indexes: list[int] = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        indexes.append(index)
    return tuple(indexes), value[at:]


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(value) and shift < 64:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise BadValue("the frame's message indexes are cut off")
