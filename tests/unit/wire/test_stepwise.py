"""Compression in steps: what comes out is what the whole at once gives and takes."""

from __future__ import annotations

import gzip
import random

import pytest

from tarry.base.errors import CorruptData
from tarry.wire.compression import GZIP, NAMES, NONE, SNAPPY, compress, decompress
from tarry.wire.gzip_members import (
    OPENED_BYTES,
    PART_BYTES,
    PARTS_MIN,
    PIECE_BYTES,
    GzipMembers,
)
from tarry.wire.stepwise import STEP_BYTES, StepwiseCompressor, StepwiseDecompressor

CODECS = range(len(NAMES))
CONTENT = random.Random(1).randbytes(3_000) * 400 + b"the end"
SIZE_MAX = 16 << 20


def opened(codec: int, data: bytes, size_max: int = SIZE_MAX) -> tuple[bytes, int]:
    """The content, and how many steps it took."""
    decompressor = StepwiseDecompressor(codec, data, size_max)
    steps = 1
    while not decompressor.step():
        steps += 1
    return decompressor.content, steps


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@pytest.mark.parametrize("size", [0, 1, STEP_BYTES - 1, STEP_BYTES, len(CONTENT)])
def test_what_is_compressed_in_parts_opens_as_the_whole(codec, size):
    compressor = StepwiseCompressor(codec)
    content = CONTENT[:size]

    for start in range(0, size, STEP_BYTES):
        compressor.add(content[start : start + STEP_BYTES])
    data = compressor.finish()

    if size or codec not in (NONE, SNAPPY):
        assert decompress(codec, data, SIZE_MAX) == content


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_what_was_compressed_at_once_opens_in_steps(codec):
    assert opened(codec, compress(codec, CONTENT))[0] == CONTENT


def test_gzip_is_opened_a_part_at_a_time():
    content, steps = opened(GZIP, compress(GZIP, bytes(5 * OPENED_BYTES)))

    assert content == bytes(5 * OPENED_BYTES)
    assert steps >= 5


def test_gzip_members_may_follow_one_another():
    assert opened(GZIP, gzip.compress(b"one, ") + gzip.compress(b"two"))[0] == b"one, two"


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_content_beyond_the_limit_is_refused(codec):
    with pytest.raises(CorruptData):
        opened(codec, compress(codec, CONTENT), size_max=len(CONTENT) - 1)


@pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
def test_data_that_is_cut_short_or_something_else_is_refused(codec):
    data = compress(codec, CONTENT)

    for wrong in (data[: len(data) // 2], b"", b"\x00" * 50):
        with pytest.raises(CorruptData):
            opened(codec, wrong)


def test_there_is_no_fifth_codec():
    with pytest.raises(ValueError, match="codec"):
        StepwiseCompressor(5)


# --- Hostile content: what it costs goes by bytes in and out.

HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
MANY_PARTS = {
    "snappy, empty blocks": (SNAPPY, HEADER + b"\x00\x00\x00\x01\x00" * 200_000),
    "snappy, blocks of one byte": (SNAPPY, HEADER + b"\x00\x00\x00\x03\x01\x00A" * 140_000),
    "snappy, headers alone": (SNAPPY, HEADER * 60_000),
    "gzip, empty members": (GZIP, gzip.compress(b"") * 50_000),
    "gzip, members of one byte": (GZIP, gzip.compress(b"A") * 47_000),
}


@pytest.mark.parametrize(("codec", "data"), MANY_PARTS.values(), ids=MANY_PARTS)
def test_a_megabyte_of_tiny_parts_is_refused_after_a_few_of_them(codec: int, data: bytes) -> None:
    with pytest.raises(CorruptData, match=r"^(\d+) parts in \d+ bytes") as at_once:
        decompress(codec, data, SIZE_MAX)
    with pytest.raises(CorruptData, match="parts in"):
        opened(codec, data)

    assert int(str(at_once.value).split()[0]) <= PARTS_MIN + len(data) // PART_BYTES


def test_zlib_is_given_each_byte_about_once_though_members_are_many() -> None:
    members = PARTS_MIN
    data = gzip.compress(b"A") * members
    opening = GzipMembers(data, SIZE_MAX)
    steps = 1
    while not opening.step():
        steps += 1

    assert opening.content == b"A" * members
    assert opening.fed_bytes <= len(data) + members * PIECE_BYTES
    assert steps <= (opening.fed_bytes + members) // OPENED_BYTES + 1


def test_a_step_of_gzip_costs_no_more_than_its_share() -> None:
    for content in (bytes(8 << 20), random.Random(2).randbytes(2 << 20)):
        opening = GzipMembers(gzip.compress(content), SIZE_MAX)
        costs = []
        is_whole = False
        while not is_whole:
            is_whole = opening.step()
            costs.append(opening.cost_bytes)

        assert opening.content == content
        assert max(costs) <= OPENED_BYTES + PIECE_BYTES
        assert sum(costs) >= len(content)


def test_a_step_says_what_went_in_and_came_out() -> None:
    data = compress(SNAPPY, CONTENT)
    decompressor = StepwiseDecompressor(SNAPPY, data, SIZE_MAX)
    decompressor.step()

    assert decompressor.cost_bytes == len(data) + len(CONTENT)


def test_as_many_blocks_as_clients_write_are_opened() -> None:
    """A client that flushes each KB, of a batch as large as the broker opens."""
    blocks = 16 * 1024
    block = cramjam_block(random.Random(3).randbytes(1_000))
    data = HEADER + block * blocks

    assert len(decompress(SNAPPY, data, SIZE_MAX)) == blocks * 1_000


def cramjam_block(content: bytes) -> bytes:
    return compress(SNAPPY, content)[len(HEADER) :]
