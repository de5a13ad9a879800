"""Codecs: round trips, Java's framings, and bombs that stop before they unfold."""

from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings, strategies as st

from tarry.base.errors import CorruptData
from tarry.wire.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("codec", [NONE, *CODECS])
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=500), times=st.sampled_from([1, 50, 1000]))
def test_what_is_compressed_comes_back(codec: int, data: bytes, times: int) -> None:
    content = data * times

    assert decompress(codec, compress(codec, content), len(content)) == content
    assert decompress(codec, memoryview(compress(codec, content)), MEGABYTE) == content


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_stops_at_the_limit_without_being_unfolded(codec: int) -> None:
    bomb = compress(codec, bytes(64 * MEGABYTE))
    tracemalloc.start()

    try:
        with pytest.raises(CorruptData):
            decompress(codec, bomb, MEGABYTE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < len(bomb) + 4 * MEGABYTE


@pytest.mark.parametrize("codec", [NONE, *CODECS])
def test_content_one_byte_over_the_limit_is_refused(codec: int) -> None:
    content = b"ab" * 500

    with pytest.raises(CorruptData):
        decompress(codec, compress(codec, content), 999)


@pytest.mark.parametrize("codec", CODECS)
@given(noise=st.binary(max_size=200))
def test_noise_is_corrupt_or_something(codec: int, noise: bytes) -> None:
    try:
        content = decompress(codec, noise, 10_000)
    except CorruptData:
        return

    assert len(content) <= 10_000


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_stream_is_corrupt(codec: int) -> None:
    whole = compress(codec, bytes(range(256)) * 20)

    for size in (1, len(whole) // 2, len(whole) - 1):
        with pytest.raises(CorruptData):
            decompress(codec, whole[:size], MEGABYTE)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_corrupt_to_read_and_a_mistake_to_write(codec: int) -> None:
    with pytest.raises(CorruptData):
        decompress(codec, b"x", 10)
    with pytest.raises(ValueError, match="no codec"):
        compress(codec, b"x")


def test_gzip_of_several_members_is_one_content() -> None:
    members = gzip.compress(b"one") + gzip.compress(b"two")

    assert decompress(GZIP, members, 100) == b"onetwo"


def test_the_standard_library_opens_our_gzip() -> None:
    assert gzip.decompress(compress(GZIP, b"content")) == b"content"


def test_snappy_is_written_in_the_xerial_framing_with_blocks_of_32_kib() -> None:
    content = bytes(range(256)) * 256

    framed = compress(SNAPPY, content)

    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    first_size = int.from_bytes(framed[16:20], "big")
    first = bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + first_size]))
    assert first == content[: 32 * 1024]


def test_raw_snappy_is_read_too() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"content"))

    assert decompress(SNAPPY, raw, 100) == b"content"


def test_xerial_streams_one_after_the_other_are_one_content() -> None:
    streams = compress(SNAPPY, b"one") + compress(SNAPPY, b"two")

    assert decompress(SNAPPY, streams, 100) == b"onetwo"


def test_a_snappy_block_that_declares_what_it_cannot_hold_is_corrupt() -> None:
    declared = b"\xff\xff\xff\x7f" + b"\x00" * 10

    with pytest.raises(CorruptData, match="cannot become"):
        decompress(SNAPPY, declared, 2**31)


def test_lz4_has_independent_blocks_since_java_refuses_linked_ones() -> None:
    frame = compress(LZ4, bytes(200_000))

    assert frame[:4] == b"\x04\x22\x4d\x18"
    # Version 01, blocks independent, no content size, no content checksum; Java reads blocks with
    # a checksum (bit 4), which cramjam writes.
    assert frame[4] & 0b1110_1111 == 0b0110_0000
    # Blocks of at most 64 KB.
    assert frame[5] == 0b0100_0000


def test_lz4_with_linked_blocks_is_read_too() -> None:
    content = bytes(range(256)) * 1000
    linked = bytes(cramjam.lz4.compress(content))

    assert decompress(LZ4, linked, len(content)) == content


# Written by Java kafka-clients 4.1.0: Compression.of(name).build().wrapForOutput(...).
JAVA = {
    GZIP: "1f8b08000000000000ffcb48cdc9c957c84e4ccb4e54c8c0c10600af9f0d0324000000",
    SNAPPY: "82534e4150505900000000010000000100000011242c68656c6c6f206b61666b61205e0c00",
    LZ4: "04224d1860408216000000cf68656c6c6f206b61666b61200c00005061666b612000000000",
    ZSTD: "28b52ffd00589400006068656c6c6f206b61666b61200100074b12010000",
}


@pytest.mark.parametrize("codec", CODECS)
def test_what_java_compressed_is_read(codec: int) -> None:
    assert decompress(codec, bytes.fromhex(JAVA[codec]), 1000) == b"hello kafka " * 3


LINES = b"".join(b'{"id":%d,"name":"user%d"}' % (number, number % 97) for number in range(9_000))


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (GZIP, [1, 9]),
        (LZ4, [3, 17]),
        (ZSTD, [-131_072, -50, 1, 9]),
    ],
)
def test_a_level_that_tries_harder_makes_it_smaller(codec: int, levels: list[int]) -> None:
    folded = [compress(codec, LINES, level) for level in levels]

    sizes = [len(data) for data in folded]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    for data in folded:
        assert decompress(codec, data, len(LINES)) == LINES


@pytest.mark.parametrize(
    ("codec", "level"), [(GZIP, -1), (LZ4, 9), (ZSTD, 3), (SNAPPY, 5), (NONE, 5)]
)
def test_kafkas_default_level_is_ours(codec: int, level: int) -> None:
    assert compress(codec, LINES, level) == compress(codec, LINES)


def test_the_highest_levels_of_zstd_count_as_one_that_a_turn_has_time_for() -> None:
    assert compress(ZSTD, LINES, 22) == compress(ZSTD, LINES, 9)
