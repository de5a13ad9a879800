"""What a topic asks of single records, also of compressed ones."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.base.limits import RECORD_ERRORS_MAX
from tarry.records import batch as positions
from tarry.records.batch import BatchCheck, check_batch
from tarry.records.builder import BatchBuilder
from tarry.records.record_limits import check_record_limits
from tarry.wire.reader import window_of

NO_MIN = -(2**63)
NO_MAX = 2**63 - 1
CODECS = range(5)


def batch_of(codec: int, *records: tuple[int, bytes | None]) -> bytes:
    builder = BatchBuilder()
    for timestamp, key in records:
        builder.append(timestamp, key, b"v")
    return builder.build(codec)


def checked(data: bytes) -> BatchCheck:
    check = check_batch(window_of(data))
    assert check.error_code == errors.NONE
    return check


@pytest.mark.parametrize("codec", CODECS)
def test_records_within_the_limits_are_accepted(codec):
    check = checked(batch_of(codec, (1000, b"a"), (2000, b"b")))

    check_record_limits(check, 1000, 2000, True)

    assert check.error_code == errors.NONE
    assert check.record_errors is None


@pytest.mark.parametrize("codec", CODECS)
def test_records_outside_the_time_limits_are_named(codec):
    check = checked(batch_of(codec, (1000, None), (999, None), (2001, None), (2000, None)))

    check_record_limits(check, 1000, 2000)

    assert check.error_code == errors.INVALID_TIMESTAMP
    assert [index for index, _ in check.record_errors] == [1, 2]
    early, late = [sentence for _, sentence in check.record_errors]
    assert "999" in early
    assert "message.timestamp.before.max.ms" in early
    assert "message.timestamp.after.max.ms" in late
    assert check.message.startswith("record 1: ")


@pytest.mark.parametrize("codec", CODECS)
def test_records_without_a_key_are_named_where_one_is_required(codec):
    check = checked(batch_of(codec, (1000, b""), (1000, None), (1000, b"k")))

    check_record_limits(check, NO_MIN, NO_MAX, True)

    assert check.error_code == errors.INVALID_RECORD
    assert [index for index, _ in check.record_errors] == [1]


def test_a_wrong_time_decides_the_code_when_keys_are_missing_too():
    check = checked(batch_of(0, (1000, None), (9000, b"k")))

    check_record_limits(check, NO_MIN, 5000, True)

    assert check.error_code == errors.INVALID_TIMESTAMP
    assert [index for index, _ in check.record_errors] == [0, 1]


@pytest.mark.parametrize("codec", CODECS)
def test_a_record_without_a_time_is_within_all_limits(codec):
    check = checked(batch_of(codec, (-1, None), (-1, None)))

    check_record_limits(check, 1000, 2000)

    assert check.error_code == errors.NONE


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_compressed_batch_is_not_opened_when_nothing_asks_for_it(codec, reseal):
    data = reseal(batch_of(codec, (1000, None)), records=b"rubbish")
    check = checked(data)

    check_record_limits(check, NO_MIN, 2000)

    assert check.error_code == errors.NONE
    assert check.walk is None


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("timestamp_min", "timestamp_max", "is_key_required"),
    [(0, NO_MAX, False), (NO_MIN, 500, False), (NO_MIN, NO_MAX, True)],
)
def test_what_cannot_be_opened_is_refused_for_good(
    codec, timestamp_min, timestamp_max, is_key_required, reseal
):
    check = checked(reseal(batch_of(codec, (1000, None)), records=b"\x7frubbish"))

    check_record_limits(check, timestamp_min, timestamp_max, is_key_required)

    assert check.error_code == errors.INVALID_RECORD


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_unfolds_beyond_the_limit_is_refused_for_good(codec):
    builder = BatchBuilder()
    builder.append(1000, None, bytes(1_000_000))
    check = checked(builder.build(codec))

    check_record_limits(check, 0, NO_MAX, False, 100_000)

    assert check.error_code == errors.INVALID_RECORD
    assert "cannot be opened" in check.message


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_compressed_batch_that_holds_fewer_records_than_it_says_is_refused(codec, reseal):
    two = (2).to_bytes(4, "big")
    one = (1).to_bytes(4, "big")
    data = reseal(
        batch_of(codec, (1000, b"k")),
        {positions.RECORD_COUNT: two, positions.LAST_OFFSET_DELTA: one},
    )
    check = checked(data)

    check_record_limits(check, NO_MIN, NO_MAX, True)

    assert check.error_code == errors.INVALID_RECORD
    assert check.message.startswith("record 1: ")


@pytest.mark.parametrize("codec", CODECS)
def test_a_largest_timestamp_is_put_right_once_the_records_were_seen(codec, reseal):
    good = batch_of(codec, (1000, b"a"), (1500, b"b"))
    wrong = reseal(good, {positions.MAX_TIMESTAMP: (9_999).to_bytes(8, "big")})
    check = checked(wrong)

    check_record_limits(check, NO_MIN, 2000, True)

    assert check.error_code == errors.NONE
    assert check.window.to_bytes() == good


def test_no_more_records_are_named_than_an_answer_should_hold():
    check = checked(batch_of(0, *[(1000, None)] * 1000))

    check_record_limits(check, NO_MIN, NO_MAX, True)

    assert len(check.record_errors) == RECORD_ERRORS_MAX
