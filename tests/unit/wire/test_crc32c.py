"""CRC32C: the published values, in pieces, over views, and the same from both packages."""

from __future__ import annotations

import anycrc
import pytest
from hypothesis import given, strategies as st

from tarry.wire.crc32c import crc32c

# RFC 3720, B.4, as numbers.
PUBLISHED = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (b"123456789", 0xE3069283),
]


@pytest.mark.parametrize(("data", "value"), PUBLISHED)
def test_the_published_values_come_out(data: bytes, value: int) -> None:
    assert crc32c(data) == value


@given(st.binary(), st.binary())
def test_pieces_give_what_the_whole_gives(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)


@given(st.binary())
def test_a_view_gives_what_its_bytes_give(data: bytes) -> None:
    assert crc32c(memoryview(data)) == crc32c(data)


@given(st.binary(), st.binary())
def test_the_package_that_is_always_there_agrees(first: bytes, second: bytes) -> None:
    calculate = anycrc.Model("CRC32C").calc

    assert calculate(second, calculate(first)) == crc32c(first + second)
