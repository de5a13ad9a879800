"""check_copy: what a follower takes of an answer, and what shows that it came over broken."""

from __future__ import annotations

import pytest

from tarry.base.errors import CorruptData
from tarry.records import batch as positions
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder
from tarry.records.copies import check_copy
from tarry.records.rebuild import empty_batch


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def i64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def stored(offset: int, epoch: int = 3, count: int = 2, codec: int = 0) -> bytes:
    """A batch as it lies in the leader's log."""
    builder = BatchBuilder()
    for number in range(count):
        builder.append(1000 + number, b"k", b"value")
    built = builder.build(codec)
    return i64(offset) + built[8:12] + i32(epoch) + built[16:]


def offsets(data: bytes) -> list[tuple[int, int]]:
    return [
        (int(header.base_offset), window.start) for window, header in check_copy(data, 0, len(data))
    ]


def test_each_batch_comes_with_its_window_and_its_header():
    first, second = stored(10, codec=3), stored(12, epoch=4)
    frame = b"before" + first + second + b"after"

    found = check_copy(frame, 6, 6 + len(first) + len(second))

    assert [window.to_bytes() for window, _ in found] == [first, second]
    assert [(header.base_offset, header.leader_epoch) for _, header in found] == [(10, 3), (12, 4)]


def test_offsets_may_be_missing_between_batches():
    first, second = stored(10), stored(400)

    assert offsets(first + second) == [(10, 0), (400, len(first))]


def test_an_empty_batch_of_compaction_is_taken():
    built = empty_batch(BatchHeader(stored(10), 0))

    assert offsets(built) == [(10, 0)]


@pytest.mark.parametrize("size", [1, 11, 12, 60, 61, 80])
def test_a_last_batch_that_was_cut_short_is_left_out(size):
    first, second = stored(10), stored(12)

    assert offsets(first + second[:size]) == [(10, 0)]
    assert offsets(second[:size]) == []


@pytest.mark.parametrize("byte", range(16, 87))
def test_every_flipped_byte_that_the_crc_covers_is_found(byte):
    data = bytearray(stored(10) + stored(12))
    data[byte] ^= 0x10

    with pytest.raises(CorruptData, match=r"fetched batch|batch fetched"):
        check_copy(bytes(data), 0, len(data))


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (stored(11), "where 12 or later had to come"),
        (stored(-1), "has the offset -1"),
        (stored(1 << 62), "where 12 or later had to come"),
        (stored(12, epoch=2), "has the leader epoch 2, after 3"),
        (stored(12)[:8] + i32(20) + stored(12)[12:], "claims a size of 32 bytes"),
        (stored(12)[:8] + i32(-5) + stored(12)[12:], "claims a size of 7 bytes"),
    ],
)
def test_a_batch_that_cannot_follow_is_refused(second, sentence):
    data = stored(10) + second

    with pytest.raises(CorruptData, match=sentence):
        check_copy(data, 0, len(data))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({positions.MAGIC: b"\x01"}, "has magic 1"),
        ({positions.RECORD_COUNT: i32(-1)}, "claims -1 records"),
        ({positions.RECORD_COUNT: i32(3)}, "claims 3 records at 2 offsets"),
        ({positions.LAST_OFFSET_DELTA: i32(-1)}, "and -1 more"),
        ({positions.ATTRIBUTES: b"\x00\x07"}, "has the codec 7"),
        (
            {positions.RECORD_COUNT: i32(1 << 30), positions.LAST_OFFSET_DELTA: i32(1 << 30)},
            "claims 1073741824 records in",
        ),
    ],
)
def test_a_header_that_cannot_be_is_refused_though_its_crc_holds(reseal, fields, sentence):
    data = reseal(stored(10), fields)

    with pytest.raises(CorruptData, match=sentence):
        check_copy(data, 0, len(data))


def test_an_epoch_below_0_is_refused():
    with pytest.raises(CorruptData, match="leader epoch -1"):
        offsets(stored(10, epoch=-1))
