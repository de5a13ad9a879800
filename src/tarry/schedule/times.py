"""Times in the headers of records that are due later: due times and durations.

A time is a number of milliseconds since 1970, or RFC 3339: date, time of day and offset, as in
`2027-03-01T09:30:00+01:00`.  A duration is a number of milliseconds, or numbers with units from the
largest to the smallest, as in `1h30m`: d, h, m, s and ms.  Any other text is a `BadTime` with a
sentence, never a guess: a local time without an offset is refused, and so is a day that the
calendar does not have.  Hot.
"""

from __future__ import annotations

import re
from typing import Final

from tarry.base.limits import DUE_MS_MAX
from tarry.base.schedule_headers import DELIVER_AFTER, DELIVER_AT
from tarry.base.setting import shown

# Longest text of a header that is parsed, and most digits of a number.
_TEXT_BYTES_MAX: Final = 64
_DIGITS_MAX: Final = 15

_NUMBER: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_RFC_3339: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?"
    r"(?:([Zz])|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_DURATION: Final = re.compile(
    r"(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m(?!s))?(?:(\d{1,12})s)?(?:(\d{1,15})ms)?",
    re.ASCII,
)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_DAYS_OF_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Days from 0000-03-01 to 1970-01-01.
_DAYS_BEFORE_1970: Final = 719_468


class BadTime(Exception):
    """Text of a header that is no valid time; the sentence says why."""


def parse_deliver_at(value: bytes | None) -> int:
    """Parse the due time of a record, in milliseconds since 1970."""
    time_ms = _plain_number(value)
    return time_ms if time_ms >= 0 else parse_time(DELIVER_AT, value)


def parse_time(header: str, value: bytes | None) -> int:
    """Parse the time that a header says, in milliseconds since 1970."""
    text = _text_of(header, value)
    if _NUMBER.fullmatch(text):
        return _within(header, text, int(text))
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise BadTime(
            f"{header}={shown(text)}: it must be milliseconds since 1970 or a time as in "
            "2027-03-01T09:30:00Z"
        )
    year, month, day, hour, minute, second = [int(found[group]) for group in range(1, 7)]
    offset = _offset_minutes(found)
    minutes = (_days_since_1970(year, month, day) * 24 + hour) * 60 + minute - offset
    # A leap second ends a day of UTC; counted from 1970 it is the first second of the next day.
    second_max = 60 if minutes % 1_440 == 1_439 else 59
    is_right = (
        1 <= month <= 12
        and 1 <= day <= _days_of(year, month)
        and hour <= 23
        and minute <= 59
        and second <= second_max
        and abs(offset) < 1_440
        and int(found[11] or "0") <= 59
    )
    if not is_right:
        raise BadTime(f"{header}={shown(text)}: the calendar has no such time")
    # Round up to whole milliseconds: a record is never due early.
    parts_ms = -(-int((found[7] or "").ljust(9, "0")) // 1_000_000)
    return _within(header, text, (minutes * 60 + second) * 1_000 + parts_ms)


def parse_deliver_after(value: bytes | None) -> int:
    """Parse how long a record waits, in milliseconds."""
    time_ms = _plain_number(value)
    if time_ms >= 0:
        return time_ms
    text = _text_of(DELIVER_AFTER, value)
    if _NUMBER.fullmatch(text):
        return _within(DELIVER_AFTER, text, int(text))
    found = _DURATION.fullmatch(text)
    if found is None:
        raise BadTime(
            f"{DELIVER_AFTER}={shown(text)}: it must be a number of milliseconds or a duration as "
            "in 1h30m"
        )
    total = 0
    for number, unit_ms in zip(found.groups(), _UNITS_MS, strict=True):
        total += 0 if number is None else int(number) * unit_ms
    return _within(DELIVER_AFTER, text, total)


def _plain_number(value: bytes | None) -> int:
    """Return the number that a value is, -1 if it is none within bounds: a fast path for the most
    usual values."""
    if value is not None and value.isdigit() and len(value) <= _DIGITS_MAX:
        number = int(value)
        if number <= DUE_MS_MAX:
            return number
    return -1


def _text_of(header: str, value: bytes | None) -> str:
    if value is None or not value.strip(b" "):
        raise BadTime(f"{header} is empty")
    if len(value) > _TEXT_BYTES_MAX:
        raise BadTime(f"{header} has {len(value)} bytes, {_TEXT_BYTES_MAX} are the most")
    if not value.isascii():
        raise BadTime(f"{header} has a character that no time has")
    return value.decode("ascii").strip(" ")


def _within(header: str, text: str, time_ms: int) -> int:
    if not 0 <= time_ms <= DUE_MS_MAX:
        raise BadTime(f"{header}={shown(text)}: it must lie between 1970 and the year 10000")
    return time_ms


def _days_of(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _DAYS_OF_MONTHS[month - 1]


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count the days since 1970; a year begins in March here, so that a leap day is its last."""
    years = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = years * 365 + years // 4 - years // 100 + years // 400
    return days + day_of_year - _DAYS_BEFORE_1970


def _offset_minutes(found: re.Match[str]) -> int:
    if found[8]:
        return 0
    minutes = int(found[10]) * 60 + int(found[11])
    return -minutes if found[9] == "-" else minutes
