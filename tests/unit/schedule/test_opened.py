"""Outlines of opened bodies: a piece gives the same records as the whole batch, or nothing."""

from __future__ import annotations

import pytest

from tarry.records import BatchBuilder
from tarry.schedule.opened import BodyOutline, open_body

FILE_POSITION = 1_000


def batch(count: int, size: int) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(5 * number, b"%d" % number, b"v" * size, [("name", b"%d" % number)])
    return builder.build()


def outline_of(data: bytes) -> BodyOutline:
    outline = open_body(data, FILE_POSITION).outline()
    assert outline is not None
    assert outline.file_position == FILE_POSITION
    return outline


@pytest.mark.parametrize("size", [0, 100, 5_000, 20_000])
@pytest.mark.parametrize("count", [1, 16, 63, 64, 65, 200])
def test_pieces_have_the_records_of_the_whole_batch(count: int, size: int):
    data = batch(count, size)
    outline = outline_of(data)
    whole = open_body(data, FILE_POSITION)

    for first, length in [(n, 1) for n in range(count)] + [(0, count), (count // 2, count // 3)]:
        if length:
            start, stop = outline.range_of(first, length)
            piece = outline.opened(data[start:stop], first)
            assert piece is not None
            assert piece.batch_of(first, length, 7, 0, 0) == whole.batch_of(first, length, 7, 0, 0)


def test_a_piece_is_small():
    outline = outline_of(batch(1_000, 1_000))

    assert max(stop - start for start, stop in [outline.range_of(n, 1) for n in range(1_000)]) < (
        10_000
    )


def test_no_flipped_bit_of_a_piece_is_believed():
    data = batch(65, 10)
    outline = outline_of(data)
    start, stop = outline.range_of(64, 1)

    for position in range(start, stop):
        damaged = bytearray(data[start:stop])
        damaged[position - start] ^= 0x10
        assert outline.opened(bytes(damaged), 64) is None
    assert outline.opened(data[start + 1 : stop + 1], 64) is None
    assert outline.opened(data[start : stop - 1], 64) is None


@pytest.mark.parametrize(("first", "count"), [(65, 1), (64, 2), (0, 66), (0, 0)])
def test_records_that_a_batch_has_not_have_no_piece(first: int, count: int):
    outline = outline_of(batch(65, 5_000))

    assert outline.range_of(first, count) == (0, 0)


def test_a_batch_whose_place_is_not_known_or_that_has_too_many_records_has_no_outline():
    assert open_body(batch(3, 10), -1).outline() is None
    assert open_body(batch(20_001, 0), FILE_POSITION).outline() is None
