"""Records as a reader gets them, and the times of records."""

from __future__ import annotations

import sys

import pytest

from tarry.base.errors import CorruptData
from tarry.records import batch as positions
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder
from tarry.records.record import RecordTimes, decode_records, open_records

CODECS = range(5)
SIZE_MAX = 1_000_000


def batch_with_times(codec: int, *timestamps: int) -> bytes:
    builder = BatchBuilder()
    for timestamp in timestamps:
        builder.append(timestamp, None, b"v")
    return builder.build(codec, 100)


def times_in(data: bytes) -> list[tuple[int, int]]:
    """Time and offset of each record of a batch."""
    header = BatchHeader(data, 0)
    times = RecordTimes(open_records(data, 0, header, SIZE_MAX), header)
    found = []
    while times.advance():
        found.append((times.timestamp, times.offset))
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_went_in(codec):
    builder = BatchBuilder()
    builder.append(1000, b"key", b"value", [("h", b"x"), ("h", None), ("ü", b"")])
    builder.append(900, None, None)
    builder.append(1100, b"", b"")

    records = decode_records(builder.build(codec, 500), size_max=SIZE_MAX)

    assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in records] == [
        (500, 1000, b"key", b"value", [("h", b"x"), ("h", None), ("ü", b"")]),
        (501, 900, None, None, []),
        (502, 1100, b"", b"", []),
    ]


def test_a_batch_is_decoded_where_it_stands(three_records):
    records = decode_records(b"12" + three_records + b"34", size_max=SIZE_MAX, position=2)

    assert [record.value for record in records] == [b"one", b"two", None]


def test_a_wrong_crc_is_corrupt(three_records):
    with pytest.raises(CorruptData, match="CRC"):
        decode_records(three_records[:-1] + b"\x01", size_max=SIZE_MAX)


def test_a_batch_that_is_cut_off_is_corrupt(three_records):
    with pytest.raises(CorruptData, match="are there"):
        decode_records(three_records[:-1], size_max=SIZE_MAX)


def test_an_older_magic_is_corrupt(three_records, reseal):
    with pytest.raises(CorruptData, match="magic 2"):
        decode_records(reseal(three_records, {positions.MAGIC: b"\x01"}), size_max=SIZE_MAX)


@pytest.mark.parametrize("count", [-1, 4, 2**31 - 1])
def test_a_wrong_count_is_corrupt(three_records, reseal, count):
    data = reseal(three_records, {positions.RECORD_COUNT: count.to_bytes(4, "big", signed=True)})

    with pytest.raises(CorruptData):
        decode_records(data, size_max=SIZE_MAX)


def test_a_batch_from_which_compaction_took_every_record_is_empty(three_records, reseal):
    data = reseal(three_records, {positions.RECORD_COUNT: bytes(4)}, records=b"")

    assert decode_records(data, size_max=SIZE_MAX) == []


def test_offsets_may_have_gaps_after_compaction(three_records, reseal):
    records = b"\x0c\x00\x00\x04\x01\x01\x00" + b"\x0c\x00\x00\x0a\x01\x01\x00"
    two, last = (2).to_bytes(4, "big"), (7).to_bytes(4, "big")
    header = {positions.RECORD_COUNT: two, positions.LAST_OFFSET_DELTA: last}
    data = reseal(three_records, header, records)

    assert [record.offset for record in decode_records(data, size_max=SIZE_MAX)] == [2, 5]


@pytest.mark.parametrize("delta", [b"\x04", b"\x02", b"\x01", b"\x06"])
def test_offsets_that_do_not_ascend_within_the_batch_are_corrupt(three_records, reseal, delta):
    """Offset 2 again, 1, -1, and 3 in a batch that ends at 2."""
    records = b"\x0c\x00\x00\x04\x01\x01\x00" + b"\x0c\x00\x00" + delta + b"\x01\x01\x00"
    data = reseal(three_records, {positions.RECORD_COUNT: (2).to_bytes(4, "big")}, records)

    with pytest.raises(CorruptData, match="offset delta"):
        decode_records(data, size_max=SIZE_MAX)


def test_records_without_headers_have_a_list_of_their_own_each():
    first, second = decode_records(batch_with_times(0, 50, 60), size_max=SIZE_MAX)

    first.headers.append(("h", b"x"))

    assert (first.headers, second.headers) == ([("h", b"x")], [])


def test_a_record_that_is_kept_keeps_nothing_of_what_was_fetched():
    """The bytes of its value and headers are copies: a frame of megabytes is not held by one."""
    builder = BatchBuilder()
    builder.append(1000, b"key", b"value", [("h", b"x")])
    builder.append(1000, b"key", bytes(100_000))
    data = builder.build()

    kept = decode_records(data, size_max=SIZE_MAX)[0]
    before = sys.getrefcount(data)
    del kept

    assert sys.getrefcount(data) == before


def test_a_header_key_that_is_not_utf8_does_not_hide_the_record(three_records, reseal):
    records = b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01"
    data = reseal(three_records, {positions.RECORD_COUNT: (1).to_bytes(4, "big")}, records)

    assert decode_records(data, size_max=SIZE_MAX)[0].headers == [("\ufffd", None)]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_not_unfolded(codec):
    builder = BatchBuilder()
    builder.append(0, None, bytes(3_000_000))

    with pytest.raises(CorruptData):
        decode_records(builder.build(codec), size_max=SIZE_MAX)


@pytest.mark.parametrize("codec", CODECS)
def test_times_are_read_in_the_order_of_the_records(codec):
    data = batch_with_times(codec, 50, 30, 70)

    assert times_in(data) == [(50, 100), (30, 101), (70, 102)]


def test_times_of_broken_records_are_corrupt(three_records, reseal):
    data = reseal(three_records, records=b"\x7f" * 40)

    with pytest.raises(CorruptData):
        times_in(data)


@pytest.mark.parametrize("codec", [0, 1])
def test_a_time_that_does_not_fit_64_bits_is_corrupt(codec, reseal):
    """A compressed batch is not opened when it is produced, so that it may say this."""
    late = (2**63 - 1).to_bytes(8, "big")
    data = reseal(batch_with_times(codec, 50, 60), {positions.BASE_TIMESTAMP: late})

    with pytest.raises(CorruptData, match="64 bits"):
        times_in(data)


def test_an_offset_outside_its_batch_is_corrupt(reseal):
    data = reseal(batch_with_times(0, 50, 60), {positions.LAST_OFFSET_DELTA: bytes(4)})

    with pytest.raises(CorruptData, match="offset 101"):
        times_in(data)
