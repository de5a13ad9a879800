"""Compression in steps: what comes out is what the whole at once gives and takes."""

from __future__ import annotations

import gzip
import random

import pytest

from tarry.base.errors import CorruptData
from tarry.wire.compression import GZIP, NAMES, NONE, SNAPPY, compress, decompress
from tarry.wire.stepwise import OPENED_BYTES, STEP_BYTES, StepwiseCompressor, StepwiseDecompressor

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
