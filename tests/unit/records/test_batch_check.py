"""check_batch: each thing that can be wrong with a produced batch, and its code."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.records import batch as positions
from tarry.records.batch import check_batch
from tarry.records.builder import BatchBuilder
from tarry.wire.reader import Window, window_of


def i16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def i64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def test_a_good_batch_is_accepted_as_it_was_sent(three_records):
    check = check_batch(window_of(three_records))

    assert check.error_code == errors.NONE
    assert check.header.record_count == 3
    assert check.walk.null_keys == 1
    assert check.window.to_bytes() == three_records


def test_a_batch_is_found_in_the_middle_of_a_frame(three_records):
    frame = b"before" + three_records + b"after"

    check = check_batch(Window(frame, 6, 6 + len(three_records)))

    assert check.error_code == errors.NONE
    assert check.header.size == len(three_records)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_accepted_and_what_is_compressed_is_not_opened(codec):
    builder = BatchBuilder()
    builder.append(1000, None, b"value")

    check = check_batch(window_of(builder.build(codec)))

    assert check.error_code == errors.NONE
    assert (check.walk is None) == (codec != 0)


@pytest.mark.parametrize("size", [0, 1, 16])
def test_no_batch_at_all_is_refused_for_good(three_records, size):
    check = check_batch(window_of(three_records[:size]))

    assert check.error_code == errors.INVALID_RECORD
    assert check.header is None


@pytest.mark.parametrize("size", [17, 60, 61, 90])
def test_a_batch_that_is_cut_off_is_refused_for_good(three_records, size):
    check = check_batch(window_of(three_records[:size]))

    assert check.error_code == errors.INVALID_RECORD


@pytest.mark.parametrize("rest", [b"\0", b"\0" * 61])
def test_bytes_after_the_batch_are_refused(three_records, rest):
    check = check_batch(window_of(three_records + rest))

    assert check.error_code == errors.INVALID_RECORD
    assert "exactly one" in check.message


def test_two_batches_are_refused(three_records):
    check = check_batch(window_of(three_records + three_records))

    assert check.error_code == errors.INVALID_RECORD
    assert "exactly one" in check.message


@pytest.mark.parametrize("magic", [0, 1, 3, 127, 255])
def test_another_magic_is_refused_for_good(three_records, reseal, magic):
    check = check_batch(window_of(reseal(three_records, {positions.MAGIC: bytes([magic])})))

    assert check.error_code == errors.INVALID_RECORD
    assert f"has {magic}" in check.message


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_a_length_that_no_batch_has_is_corrupt(three_records, reseal, length):
    check = check_batch(window_of(reseal(three_records, {positions.LENGTH: i32(length)})))

    assert check.error_code == errors.CORRUPT_MESSAGE


@pytest.mark.parametrize("position", [17, 21, 35, 57, 61, -1])
def test_a_flipped_bit_is_corrupt_so_that_the_client_sends_it_again(three_records, position):
    flipped = bytearray(three_records)
    flipped[position] ^= 1

    check = check_batch(window_of(bytes(flipped)))

    assert check.error_code == errors.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({positions.BASE_OFFSET: i64(5)}, "base offset must be 0"),
        ({positions.ATTRIBUTES: i16(5)}, "no codec 5"),
        ({positions.ATTRIBUTES: i16(7)}, "no codec 7"),
        ({positions.RECORD_COUNT: i32(0), positions.LAST_OFFSET_DELTA: i32(-1)}, "count of 0"),
        ({positions.RECORD_COUNT: i32(-1)}, "count of -1"),
        ({positions.RECORD_COUNT: i32(4)}, "4 records"),
        ({positions.LAST_OFFSET_DELTA: i32(-1)}, "delta of -1"),
        ({positions.LAST_OFFSET_DELTA: i32(2**31 - 1)}, "delta of 2147483647"),
        ({positions.ATTRIBUTES: i16(0x20)}, "control"),
        ({positions.ATTRIBUTES: i16(0x30)}, "control"),
        ({positions.ATTRIBUTES: i16(0x40)}, "delete horizon"),
        ({positions.RECORD_COUNT: i32(2**31 - 1), positions.LAST_OFFSET_DELTA: i32(2**31 - 2)}, ""),
    ],
)
def test_a_header_that_contradicts_itself_is_refused_for_good(three_records, reseal, fields, words):
    check = check_batch(window_of(reseal(three_records, fields)))

    assert check.error_code == errors.INVALID_RECORD
    assert words in check.message


def test_a_producer_may_not_say_that_times_are_those_of_the_append(three_records, reseal):
    check = check_batch(window_of(reseal(three_records, {positions.ATTRIBUTES: i16(0x08)})))

    assert check.error_code == errors.INVALID_TIMESTAMP


def test_transactional_batches_are_left_to_the_leader(three_records, reseal):
    check = check_batch(window_of(reseal(three_records, {positions.ATTRIBUTES: i16(0x10)})))

    assert check.error_code == errors.NONE
    assert check.header.is_transactional


@pytest.mark.parametrize(
    "fields",
    [
        {positions.BASE_SEQUENCE: i32(-1)},
        {positions.BASE_SEQUENCE: i32(-5)},
        {positions.PRODUCER_EPOCH: i16(-1)},
    ],
)
def test_a_producer_id_needs_a_sequence_and_an_epoch(idempotent, reseal, fields):
    check = check_batch(window_of(reseal(idempotent, fields)))

    assert check.error_code == errors.INVALID_RECORD
    assert "producer id 7" in check.message


def test_sequences_without_a_producer_id_mean_nothing(idempotent, reseal):
    check = check_batch(window_of(reseal(idempotent, {positions.PRODUCER_ID: i64(-1)})))

    assert check.error_code == errors.NONE
    assert not check.header.has_producer_id


def test_a_flaw_in_a_record_names_the_record(three_records, reseal):
    data = bytearray(three_records)
    data[-2] = 0x7E  # the size of the last record's value

    check = check_batch(window_of(reseal(bytes(data))))

    assert check.error_code == errors.INVALID_RECORD
    assert check.record_errors[0][0] == 2
    assert check.message.startswith("record 2: ")


def test_a_wrong_largest_timestamp_is_put_right(three_records, reseal):
    wrong = reseal(three_records, {positions.MAX_TIMESTAMP: i64(1000)})

    check = check_batch(window_of(wrong))

    assert check.error_code == errors.NONE
    assert check.header.max_timestamp == 3000
    assert check.window.to_bytes() == three_records


@pytest.mark.parametrize("base", [-(2**63), 2**63 - 1, -1, 2**63 - 1001])
@pytest.mark.parametrize("claimed", [-(2**63), -1, 0, 2**63 - 1])
def test_times_at_the_ends_of_the_type_are_put_right_or_refused(
    three_records, reseal, base, claimed
):
    fields = {positions.BASE_TIMESTAMP: i64(base), positions.MAX_TIMESTAMP: i64(claimed)}

    check = check_batch(window_of(reseal(three_records, fields)))

    if base + 2000 < 2**63:
        assert check.error_code == errors.NONE
        assert check.header.max_timestamp == max(base + 2000, -1)
    else:
        assert check.error_code == errors.INVALID_TIMESTAMP


def test_records_without_a_time_are_accepted():
    builder = BatchBuilder()
    builder.append(-1, None, b"v")
    data = builder.build()

    check = check_batch(window_of(data))

    assert check.error_code == errors.NONE
    assert check.window.to_bytes() == data
