"""Entries of what waits: 32 bytes each, whose order as bytes is that of (due, s-offset).

    bytes 0..7      due time in ms, with its sign bit turned, so that bytes compare as numbers do
    bytes 8..15     s-offset, 46 bits as in the identity of a release; position, the upper 16 bits
    bytes 16..23    flags, 7 bits; position, the lower 24 bits; size of the body, 32 bits
    bytes 24..31    records, 31 bits; number of the place in its batch and one, 0 of a whole batch

`position` is where the note of the body's batch began in its segment.  It is a hint: compaction
moves batches.  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from mypy_extensions import i64

ENTRY_SIZE: Final = 32
# Bytes at the beginning of an entry that are its place in the order.
PLACE_SIZE: Final = 16

# Position of a batch whose position is not known.
NO_POSITION: Final = 2**40 - 1

# Flags: the note gives an id; the entry stands for an object that is kept beside it.
HAS_ID: Final = 1
IS_OBJECT: Final = 2

_SIGN: Final = 2**63
_LOW_24: Final = 2**24 - 1
_LOW_32: Final = 2**32 - 1
_COUNT_MAX: Final = 2**31 - 1


def place_key(due_ms: int, s_offset: int) -> bytes:
    """Return the first 14 bytes of an entry at this place and two zeros: a key to search from."""
    key = BytesWriter()
    _write_time(key, due_ms)
    write_i64_be(key, max(s_offset, 0) << 16)
    return key.getvalue()


def entry_of(
    due_ms: int,
    s_offset: int,
    position: int,
    size: int,
    record_count: int,
    *,
    place: int,
    flags: int,
) -> bytes:
    """Return an entry.  Sizes and counts that were read without their CRC are bounded."""
    entry = BytesWriter()
    _write_time(entry, due_ms)
    where: i64 = position if 0 <= position < NO_POSITION else NO_POSITION
    bounded_size: i64 = min(max(size, 0), _LOW_32)
    bounded_count: i64 = min(max(record_count, 0), _COUNT_MAX)
    shifted: i64 = s_offset
    shifted <<= 16
    write_i64_be(entry, shifted | (where >> 24))
    high: i64 = flags
    high = (high << 56) | ((where & _LOW_24) << 32)
    write_i64_be(entry, high | bounded_size)
    write_i64_be(entry, (bounded_count << 32) | (place + 1))
    return entry.getvalue()


def _write_time(entry: BytesWriter, due_ms: int) -> None:
    write_i64_be(entry, due_ms - _SIGN if due_ms >= 0 else due_ms + _SIGN)


def due_ms_of(entry: bytes) -> int:
    """Return when an entry is due."""
    turned = int(read_i64_be(entry, 0))
    return turned + _SIGN if turned < 0 else turned - _SIGN


def s_offset_of(entry: bytes) -> int:
    """Return the s-offset of an entry."""
    return int(read_i64_be(entry, 8) >> 16)


def position_of(entry: bytes) -> int:
    """Return where the note of the batch began, or `NO_POSITION`."""
    high: i64 = read_i64_be(entry, 8) & 0xFFFF
    low: i64 = (read_i64_be(entry, 16) >> 32) & _LOW_24
    return int((high << 24) | low)


def size_of(entry: bytes) -> int:
    """Return the size of an entry's body in bytes."""
    return int(read_i64_be(entry, 16) & _LOW_32)


def record_count_of(entry: bytes) -> int:
    """Return the number of records of an entry."""
    return int(read_i64_be(entry, 24) >> 32)


def place_of(entry: bytes) -> int:
    """Return the number of the entry's first record in its batch; -1 if it is the whole batch."""
    return int(read_i64_be(entry, 24) & _LOW_32) - 1


def flags_of(entry: bytes) -> int:
    """Return the flags of an entry."""
    return int(read_i64_be(entry, 16) >> 56)
