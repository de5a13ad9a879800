"""Variable-length integers against plain arithmetic, and their limits."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from librt.strings import BytesWriter

from tarry.wire import MalformedData
from tarry.wire.varint import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint_size,
    varint_size,
    write_unsigned_varint,
    write_varint,
    write_varlong,
)


def groups_of_seven(value: int) -> bytes:
    """The plainest form of an unsigned varint."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_number_is_its_groups_of_seven_bits(value: int) -> None:
    buffer = BytesWriter()
    write_unsigned_varint(buffer, value)
    data = buffer.getvalue()

    assert data == groups_of_seven(value)
    assert unsigned_varint_size(value) == len(data)
    assert read_unsigned_varint(data, 0, len(data)) == (value, len(data))


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_signed_number_is_its_zigzag_form(value: int) -> None:
    buffer = BytesWriter()
    write_varint(buffer, value)
    data = buffer.getvalue()

    assert data == groups_of_seven(zigzag(value))
    assert varint_size(value) == len(data)
    assert read_varint(data, 0, len(data)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_number_is_its_zigzag_form(value: int) -> None:
    buffer = BytesWriter()
    write_varlong(buffer, value)
    data = buffer.getvalue()

    assert data == groups_of_seven(zigzag(value))
    assert varint_size(value) == len(data)
    assert read_varlong(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(
    "data",
    [b"\x80" * 5 + b"\x00", b"\xff\xff\xff\xff\x1f", b"\xff" * 10],
    ids=["six bytes", "33 bits", "endless"],
)
def test_a_number_beyond_32_bits_is_malformed(data: bytes) -> None:
    for read in (read_unsigned_varint, read_varint):
        with pytest.raises(MalformedData):
            read(data, 0, len(data))


@pytest.mark.parametrize("data", [b"\x80" * 10 + b"\x00", b"\xff" * 9 + b"\x02", b"\xff" * 20])
def test_a_number_beyond_64_bits_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedData):
        read_varlong(data, 0, len(data))


@given(st.binary(max_size=12), st.integers(0, 12))
def test_any_bytes_give_a_number_within_its_range_or_are_malformed(data: bytes, end: int) -> None:
    end = min(end, len(data))
    for read, bits in ((read_varint, 32), (read_varlong, 64)):
        try:
            value, position = read(data, 0, end)
        except MalformedData:
            continue

        assert -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        assert 0 < position <= end


def test_a_number_with_more_bytes_than_it_needs_is_taken_as_java_takes_it() -> None:
    assert read_unsigned_varint(b"\x81\x00", 0, 2) == (1, 2)


def test_a_number_does_not_reach_past_the_end_it_is_given() -> None:
    with pytest.raises(MalformedData):
        read_varint(b"\x80\x01", 0, 1)
