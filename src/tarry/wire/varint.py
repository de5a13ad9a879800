"""Variable-length integers as functions on bytes: seven bits a byte, least significant first.

An unsigned varint has at most 5 bytes (32 bits), a varlong at most 10 (64 bits); a longer one, or a
number that does not fit, is refused.  A number that is written with more bytes than it needs,
within that limit, is accepted, as by Java's reader.  Signed forms are zigzag.  Readers return the
value and the position after it; their bound is the caller's `end`, not the length of `data`.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

from tarry.base.errors import ProtocolViolation

VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10


class MalformedData(ProtocolViolation):
    """Bytes of a frame that are not valid: a length beyond the end, bad text."""


def read_unsigned_varint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read an unsigned 32-bit number; returns (value, position after it)."""
    value: i64 = 0
    shift: i64 = 0
    while position < end:
        byte: i64 = data[position]
        position += 1
        if byte < 0x80:
            if shift == 28 and byte > 0x0F:
                raise MalformedData("varint does not fit 32 bits")
            return value | (byte << shift), position
        if shift == 28:
            raise MalformedData("varint is longer than 5 bytes")
        value |= (byte & 0x7F) << shift
        shift += 7
    raise MalformedData("varint goes beyond the end")


def read_varint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read a signed 32-bit number; returns (value, position after it)."""
    if position < end:
        byte: i64 = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = read_unsigned_varint(data, position, end)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read a signed 64-bit number; returns (value, position after it)."""
    low: i64 = 0
    shift: i64 = 0
    while position < end:
        byte: i64 = data[position]
        position += 1
        if shift == 63:
            # Bit 63 of the zigzag form is bit 62 of the magnitude; i64 has no unsigned shift.
            if byte > 1:
                raise MalformedData("varlong does not fit 64 bits")
            magnitude = (low >> 1) | (byte << 62)
            return magnitude ^ -(low & 1), position
        low |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (low >> 1) ^ -(low & 1), position
    raise MalformedData("varlong goes beyond the end")


def write_unsigned_varint(buffer: BytesWriter, value: i64) -> None:
    """Append a number from 0 to 2^32 - 1."""
    if value < 0 or value > 0xFFFF_FFFF:
        raise ValueError(f"{value} is no unsigned 32-bit number")
    while value >= 0x80:
        buffer.append(u8((value & 0x7F) | 0x80))
        value >>= 7
    buffer.append(u8(value))


def write_varint(buffer: BytesWriter, value: i64) -> None:
    """Append a signed 32-bit number."""
    if value < -0x8000_0000 or value > 0x7FFF_FFFF:
        raise ValueError(f"{value} is no signed 32-bit number")
    write_varlong(buffer, value)


def write_varlong(buffer: BytesWriter, value: i64) -> None:
    """Append a signed 64-bit number."""
    sign: i64 = -1 if value < 0 else 0
    # The zigzag form is (value << 1) ^ sign, which would need 65 bits: only its lowest byte is
    # taken from it, the rest from `value ^ sign`, which is never negative and never overflows.
    magnitude: i64 = value ^ sign
    byte: i64 = ((magnitude & 0x3F) << 1) | (sign & 1)
    magnitude >>= 6
    while magnitude > 0:
        buffer.append(u8(byte | 0x80))
        byte = magnitude & 0x7F
        magnitude >>= 7
    buffer.append(u8(byte))


def unsigned_varint_size(value: i64) -> i64:
    """Count the bytes that `write_unsigned_varint` takes."""
    size: i64 = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


def varint_size(value: i64) -> i64:
    """Count the bytes that `write_varint` or `write_varlong` takes."""
    sign: i64 = -1 if value < 0 else 0
    return _size_after_six_bits((value ^ sign) >> 6)


def _size_after_six_bits(rest: i64) -> i64:
    size: i64 = 1
    while rest > 0:
        rest >>= 7
        size += 1
    return size
