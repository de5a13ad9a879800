"""The walk: what it notes about good records and how it names a flaw."""

from __future__ import annotations

import pytest

from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.records.walk import HEADERS_PER_STEP, StepwiseWalk, walk_records

# length, attributes, timestamp delta, offset delta, key, value, headers
PLAIN = b"\x0c\x00\x00\x00\x01\x01\x00"


def flaw_of(records: bytes, count: int = 1) -> str:
    walk = walk_records(records, 0, len(records), count)
    in_steps = StepwiseWalk(records, 0, count)
    while not in_steps.step(1):
        pass
    assert walk.flaw is not None
    assert (in_steps.walk.flaw, in_steps.walk.flaw_index) == (walk.flaw, walk.flaw_index)
    return walk.flaw


def test_the_smallest_record_has_seven_bytes():
    walk = walk_records(PLAIN, 0, 7, 1)

    assert walk.flaw is None
    assert walk.null_keys == 1


@pytest.mark.parametrize("attributes", [0x01, 0x7F, 0x80, 0xFF])
def test_the_attributes_of_a_record_are_one_byte_whatever_it_says(reseal, attributes):
    """As Java reads it.  A reader that takes it for a varint misses all that follows 0x80."""
    builder = BatchBuilder()
    builder.append(1000, b"k", b"v", [("h", b"x")])
    batch = builder.build()
    records = batch[61:62] + bytes([attributes]) + batch[63:]

    walk = walk_records(records, 0, len(records), 1)
    read = decode_records(reseal(batch, records=records), size_max=1000)

    assert walk.flaw is None
    assert [(one.key, one.value, one.headers) for one in read] == [(b"k", b"v", [("h", b"x")])]


def test_extremes_are_noted_wherever_they_stand():
    builder = BatchBuilder()
    for timestamp in (5000, 4000, 9000, 8999, 4001):
        builder.append(timestamp, b"", None)
    data = builder.build()

    walk = walk_records(data, 61, len(data), 5)

    assert (walk.timestamp_delta_min, walk.timestamp_delta_max) == (-1000, 4000)
    assert walk.null_keys == 0


def test_a_first_record_that_is_not_the_base_counts_alone():
    walk = walk_records(b"\x0c\x00\x14\x00\x01\x01\x00", 0, 7, 1)

    assert (walk.timestamp_delta_min, walk.timestamp_delta_max) == (10, 10)


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8193])
def test_offset_deltas_of_any_width_are_followed(count):
    builder = BatchBuilder()
    for index in range(count):
        builder.append(index * 100_000_000_000, None, None)
    data = builder.build()

    walk = walk_records(data, 61, len(data), count)

    assert walk.flaw is None
    assert walk.timestamp_delta_max == (count - 1) * 100_000_000_000


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (b"", "0 bytes are too few"),
        (PLAIN[:6], "6 bytes are too few"),
        (PLAIN + b"\x00", "1 bytes follow the last record"),
        (b"\x0e" + PLAIN[1:], "record of 7 bytes, 6 are left"),
        (b"\x0a" + PLAIN[1:], "record of 5 bytes"),
        (b"\x01" + PLAIN[1:], "record of -1 bytes"),
        (b"\xff\xff\xff\xff\x0f" + PLAIN[1:], "record of -2147483648 bytes"),
        (b"\xff\xff\xff\xff\x1f" + PLAIN[1:], "32 bits"),
        (b"\x80\x80\x80\x80\x80" + PLAIN[1:], "5 bytes"),
        (b"\x0c\x00\x00\x02\x01\x01\x00", "offset delta is 1"),
        (b"\x0c\x00\x00\x01\x01\x01\x00", "offset delta is -1"),
        (b"\x0c\x00\x00\x00\x08\x01\x00", "key of 4 bytes, 2 are left"),
        (b"\x0c\x00\x00\x00\x01\x04\x00", "value of 2 bytes, 1 are left"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", "1 headers in 0 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", "-1 headers"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", "1 bytes follow its last field"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", "header key of -1 bytes"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x04\x01", "header key of 2 bytes, 1 are left"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x00\x02", "header value of 1 bytes, 0 are left"),
        (b"\x0e\x00\x80\x80\x80\x80\x80\x80", "beyond the end"),
        (b"\x1e\x00" + b"\xff" * 9 + b"\x02\x00\x01\x01\x00", "64 bits"),
    ],
)
def test_a_flaw_is_named(records, words):
    assert words in flaw_of(records)


def test_a_flaw_names_the_record_that_has_it():
    records = PLAIN + b"\x0c\x00\x00\x02\x01\x01\x00" + b"\x0c\x00\x00\x02\x01\x01\x00"

    walk = walk_records(records, 0, len(records), 3)

    assert walk.flaw_index == 2
    assert walk.flaw == "record 2: the offset delta is 1"


def test_a_record_does_not_reach_into_the_next():
    # The first record's value claims the whole of the second.
    records = b"\x0c\x00\x00\x00\x01\x0e\x00" + b"\x0c\x00\x00\x02\x01\x01\x00"

    assert "value of 7 bytes, 1 are left" in flaw_of(records, 2)


def test_fewer_records_than_counted_are_a_flaw():
    assert flaw_of(PLAIN, 2).startswith("record 1: 0 bytes")


def test_padded_numbers_are_read_as_kafka_reads_them():
    walk = walk_records(b"\x8e\x00\x00\x80\x00\x00\x01\x01\x00", 0, 9, 1)

    assert walk.flaw is None


def test_headers_may_repeat_a_key_and_have_null_values():
    builder = BatchBuilder()
    builder.append(0, None, None, [("a", b"1"), ("a", None), ("", b"")])
    data = builder.build()

    assert walk_records(data, 61, len(data), 1).flaw is None


def test_a_step_may_end_within_the_headers_of_a_record():
    builder = BatchBuilder()
    builder.append(0, b"k", b"v", [("h", b"x")] * 10 * HEADERS_PER_STEP)
    builder.append(7, None, b"v", [("h", b"x")])
    data = builder.build()
    walk = StepwiseWalk(data, 61, 2)
    steps = 1

    while not walk.step(2):
        steps += 1

    assert steps == 6
    assert walk.walk.flaw is None
    assert (walk.walk.null_keys, walk.walk.timestamp_delta_max) == (1, 7)
