"""The header's fields, its rewriting, and the cut of fetched bytes into batches."""

from __future__ import annotations

import pytest

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    BatchHeader,
    batches_in,
    decode_batch_header,
    has_valid_crc,
    with_log_append_time,
    with_max_timestamp,
)
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.wire.reader import Window, window_of


def test_every_field_is_read_from_its_place():
    builder = BatchBuilder()
    builder.leader_epoch = 4
    builder.append(1000, None, b"v")
    builder.append(1500, None, b"v")
    data = builder.build(2, 900, producer_id=7, producer_epoch=3, base_sequence=10, attributes=0x10)

    header = decode_batch_header(b"x" + data, 1)

    assert (header.base_offset, header.last_offset, header.size) == (900, 901, len(data))
    assert (header.leader_epoch, header.magic, header.codec) == (4, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1500)
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert (header.base_sequence, header.last_sequence, header.record_count) == (10, 11, 2)
    assert header.is_transactional
    assert header.has_producer_id
    assert not header.is_control
    assert not header.is_log_append_time
    assert has_valid_crc(b"x" + data, 1, header)


def test_after_the_largest_sequence_comes_zero():
    builder = BatchBuilder()
    for _ in range(4):
        builder.append(0, None, None)

    header = decode_batch_header(
        builder.build(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2), 0
    )

    assert header.last_sequence == 1


def test_a_batch_without_a_sequence_has_no_last_one(three_records):
    assert decode_batch_header(three_records, 0).last_sequence == -1


@pytest.mark.parametrize("size", [0, 60])
def test_too_few_bytes_are_no_header(three_records, size):
    with pytest.raises(CorruptData, match="no batch header"):
        decode_batch_header(three_records[:size], 0)


@pytest.mark.parametrize("position", [-1, 1, 10_000])
def test_a_header_does_not_begin_outside_the_bytes(three_records, position):
    with pytest.raises(CorruptData):
        decode_batch_header(three_records[:61], position)


def test_a_size_smaller_than_a_header_is_corrupt(three_records):
    data = three_records[:8] + (48).to_bytes(4, "big") + three_records[12:]

    with pytest.raises(CorruptData, match="size of 60"):
        decode_batch_header(data, 0)


def test_log_append_time_is_put_in_place_without_touching_the_records(three_records):
    header = BatchHeader(three_records, 0)

    window = with_log_append_time(window_of(three_records), header, 99_000)

    data = window.to_bytes()
    assert [record.timestamp for record in decode_records(data, size_max=1000)] == [99_000] * 3
    assert data[61:] == three_records[61:]
    written = decode_batch_header(data, 0)
    assert (header.max_timestamp, header.crc) == (99_000, written.crc)
    assert header.is_log_append_time
    assert written.base_timestamp == 1000


def test_a_large_batch_in_a_frame_is_rewritten_alike():
    builder = BatchBuilder()
    builder.append(1000, None, b"v" * 100_000)
    data = builder.build()
    frame = b"12345" + data + b"rest"
    header = decode_batch_header(frame, 5)

    window = with_max_timestamp(Window(frame, 5, 5 + len(data)), header, 7000)

    assert len(window) == len(data)
    assert has_valid_crc(window.to_bytes(), 0, header)
    assert decode_batch_header(window.to_bytes(), 0).max_timestamp == 7000


def test_fetched_bytes_are_cut_into_whole_batches(three_records, idempotent):
    fetched = b"frame" + three_records + idempotent + three_records[:70] + b"more"

    windows = batches_in(Window(fetched, 5, len(fetched) - 4))

    assert [window.to_bytes() for window in windows] == [three_records, idempotent]


def test_a_first_batch_that_is_cut_off_is_no_batch(three_records):
    assert batches_in(window_of(three_records[:-1])) == []


def test_a_cut_stops_at_a_size_that_no_batch_has(three_records):
    broken = three_records + b"\0" * 61

    with pytest.raises(CorruptData, match=f"at {len(three_records)}"):
        batches_in(window_of(broken))
