"""Times and durations in headers: a table of hard cases, and Python's own calendar beside ours."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from tarry.schedule.times import BadTime, parse_deliver_after, parse_deliver_at

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0", 0),
        (b"1700000000000", 1_700_000_000_000),
        (b" 1700000000000 ", 1_700_000_000_000),
        (b"253402300799999", 253_402_300_799_999),
        (b"1970-01-01T00:00:00Z", 0),
        (b"2027-03-01T09:30:00+01:00", 1_803_889_800_000),
        (b"2027-03-01t09:30:00z", 1_803_893_400_000),
        (b"2027-03-01 09:30:00Z", 1_803_893_400_000),
        # The end of February, of leap years and of others.
        (b"2028-02-29T00:00:00Z", 1_835_395_200_000),
        (b"2000-02-29T00:00:00Z", 951_782_400_000),
        # Another day by the offset, and another year.
        (b"2027-01-01T00:30:00+01:00", 1_798_759_800_000),
        (b"2026-12-31T23:30:00-01:00", 1_798_763_400_000),
        (b"1970-01-01T00:00:00-00:00", 0),
        # Parts of a second: a part of a millisecond counts as a whole one, so that nothing is
        # early.
        (b"1970-01-01T00:00:00.5Z", 500),
        (b"1970-01-01T00:00:00.001Z", 1),
        (b"1970-01-01T00:00:00.0000001Z", 1),
        (b"1970-01-01T00:00:00.999999999Z", 1_000),
        # The leap second at the end of 2016 is the first second of 2017 for who counts from 1970.
        (b"2016-12-31T23:59:60Z", 1_483_228_800_000),
        (b"2017-01-01T00:59:60+01:00", 1_483_228_800_000),
    ],
)
def test_a_time_is_read(text: bytes, expected: int) -> None:
    assert parse_deliver_at(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b" ",
        b"-1",
        b"+1700000000000",
        b"1e12",
        b"1_000",
        b"0x10",
        b"12.5",
        "١٢".encode(),
        b"9999999999999999",
        b"253402300800000",
        b"now",
        b"tomorrow",
        b"2027-03-01",
        b"2027-03-01T09:30Z",
        # Local time without an offset may be anybody's.
        b"2027-03-01T09:30:00",
        b"2027-03-01T09:30:00+0100",
        b"2027-03-01T09:30:00+01",
        b"2027-3-1T09:30:00Z",
        b"27-03-01T09:30:00Z",
        b"2027-03-01T09:30:00.Z",
        b"2027-03-01T09:30:00,5Z",
        b"2027-03-01T09:30:00Z ago",
        b"2027-00-01T00:00:00Z",
        b"2027-13-01T00:00:00Z",
        b"2027-01-00T00:00:00Z",
        b"2027-02-29T00:00:00Z",
        b"2100-02-29T00:00:00Z",
        b"2027-04-31T00:00:00Z",
        b"2027-01-01T24:00:00Z",
        b"2027-01-01T00:60:00Z",
        b"2027-01-01T12:00:60Z",
        b"2027-01-01T23:59:60+01:00",
        b"2027-01-01T00:00:61Z",
        b"2027-01-01T00:00:00+24:00",
        b"2027-01-01T00:00:00+01:60",
        b"1969-12-31T23:59:59Z",
        b"1970-01-01T00:00:00+00:01",
        b"9999-12-31T23:59:59-00:01",
        b"2027-03-01T09:30:00Z" + b" " * 60,
        b"1" * 1_000_000,
    ],
)
def test_what_is_no_time_is_refused_with_a_sentence(text: bytes | None) -> None:
    with pytest.raises(BadTime, match="x-deliver-at") as refusal:
        parse_deliver_at(text)

    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0", 0),
        (b"1500", 1_500),
        (b"1h30m", 5_400_000),
        (b"5m", 300_000),
        (b"90m", 5_400_000),
        (b"30s", 30_000),
        (b"250ms", 250),
        (b"1m250ms", 60_250),
        (b"2d", 172_800_000),
        (b"1d2h3m4s5ms", 93_784_005),
        (b"0s", 0),
        (b"730d", 63_072_000_000),
    ],
)
def test_a_duration_is_read(text: bytes, expected: int) -> None:
    assert parse_deliver_after(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b" ",
        b"-5m",
        b"5 m",
        b"5min",
        b"1.5h",
        b"30m1h",
        b"1h1h",
        b"h",
        b"1h30",
        b"P1D",
        b"1w",
        b"1H",
        b"999999999999d",
        b"253402300800000",
        "5µs".encode(),
        b"1" * 100,
    ],
)
def test_what_is_no_duration_is_refused_with_a_sentence(text: bytes | None) -> None:
    with pytest.raises(BadTime, match="x-deliver-after") as refusal:
        parse_deliver_after(text)

    assert len(str(refusal.value)) < 200


@given(
    st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29)),
    st.integers(-1439, 1439),
)
def test_times_are_those_of_pythons_calendar(moment: datetime, offset_minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))

    found = parse_deliver_at(aware.isoformat().encode())

    microseconds = (aware - EPOCH) // timedelta(microseconds=1)
    assert found == -(-microseconds // 1_000)


@given(st.binary(max_size=70))
def test_no_header_makes_the_parser_fail(value: bytes) -> None:
    for parse in (parse_deliver_at, parse_deliver_after):
        with suppress(BadTime):
            assert parse(value) >= 0
