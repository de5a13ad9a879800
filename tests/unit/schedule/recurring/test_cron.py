"""When a cron expression comes next: hard cases by hand, and beside a library that others keep."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, strategies as st

from tarry.schedule.recurring.cron import CRON_CHARS_MAX, Cron, CronError
from tarry.schedule.recurring.recurrence import Recurrence
from tarry.schedule.recurring.terms import MISFIRE_ALL, MISFIRE_ONCE, MISFIRE_SKIP

BERLIN = "Europe/Berlin"


def ms(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    return int(moment.timestamp()) * 1000


def told(time_ms: int | None, zone: str) -> str:
    if time_ms is None:
        return "never"
    return datetime.fromtimestamp(time_ms / 1000, ZoneInfo(zone)).isoformat()


def following(cron: Cron, after_ms: int, count: int) -> list[int]:
    times: list[int] = []
    for _ in range(count):
        after_ms = cron.next_ms(after_ms) or 0
        times.append(after_ms)
    return times


@pytest.mark.parametrize(
    ("text", "zone", "after", "times"),
    [
        # Plain ones, at their edges.
        ("* * * * *", "UTC", "2026-01-31T23:59:00", ["2026-02-01T00:00:00+00:00"]),
        ("0 9 * * MON-FRI", "UTC", "2026-11-27T09:00:00", ["2026-11-30T09:00:00+00:00"]),
        ("0 0 * * 7", "UTC", "2026-11-24T00:00:00", ["2026-11-29T00:00:00+00:00"]),
        ("5/20 * * * *", "UTC", "2026-01-01T00:25:00", ["2026-01-01T00:45:00+00:00"]),
        ("@monthly", "UTC", "2026-01-01T00:00:00", ["2026-02-01T00:00:00+00:00"]),
        ("0 0 31 * *", "UTC", "2026-01-31T00:00:00", ["2026-03-31T00:00:00+00:00"]),
        # A leap day, over a century that has none.
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00", ["2104-02-29T00:00:00+00:00"]),
        # Two day fields: either counts, unless one begins with a star.
        ("0 0 13 * FRI", "UTC", "2026-11-12T00:00:00", ["2026-11-13T00:00:00+00:00"]),
        ("0 0 13 * FRI", "UTC", "2026-11-13T00:00:00", ["2026-11-20T00:00:00+00:00"]),
        ("0 0 */2 * FRI", "UTC", "2026-11-13T00:00:00", ["2026-11-27T00:00:00+00:00"]),
        # A clock that skips 02:00 to 03:00: a fixed time comes at the end of the gap, once.
        ("30 2 * * *", BERLIN, "2026-03-28T03:00:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("0 2,3 * * *", BERLIN, "2026-03-29T00:00:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        # What follows the clock has nothing in a gap.
        ("*/30 * * * *", BERLIN, "2026-03-29T01:00:00",
         ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"]),
        # A clock that shows 02:00 to 03:00 twice: a fixed time comes the first time.
        ("30 2 * * *", BERLIN, "2026-10-25T00:00:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("*/30 * * * *", BERLIN, "2026-10-25T02:00:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00",
          "2026-10-25T03:00:00+01:00"]),
        # A day that begins at one o'clock, a day that did not happen, half an hour of summer.
        ("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00", ["2026-03-29T01:00:00+03:00"]),
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00",
         ["2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00",
         ["2026-10-04T02:30:00+11:00"]),
        ("0 3 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00", ["2026-01-01T03:00:00+05:45"]),
    ],
)  # fmt: skip
def test_a_hard_case(text: str, zone: str, after: str, times: list[str]) -> None:
    found = following(Cron(text, zone), ms(after, zone), len(times))
    assert [told(time, zone) for time in found] == times


ZONES = [
    "UTC", BERLIN, "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Beirut",
    "Pacific/Apia", "Africa/Cairo", "Atlantic/Azores", "Europe/Dublin", "Africa/Casablanca",
]  # fmt: skip
EXPRESSIONS = [
    "* * * * *", "*/5 * * * *", "30 * * * *", "30 2 * * *", "0 0 * * *", "30 0 * * *",
    "0 9 1 * 1", "15 1,2,3 * * *", "*/20 1-3 * * *", "0 12 29 2 *", "0 0 31 * *", "59 23 * * *",
    "0 */3 * * *", "0-10/5 2 * * SUN", "5 1 */7 * *",
]  # fmt: skip
# Saturdays in March and October 2011 to 2029: most clocks change on the next day.
EVES = [
    ms(f"{year}-{month:02}-{day:02}T00:00:00")
    for year in range(2011, 2030)
    for month, least in ((3, 25), (3, 8), (10, 25), (11, 1))
    for day in range(least, least + 7)
    if datetime(year, month, day).weekday() == 5
]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.one_of(st.sampled_from(EVES), st.integers(1_262_304_000_000, 1_893_456_000_000)),
)
def test_it_comes_when_a_library_says(text: str, zone: str, after_ms: int) -> None:
    cron = Cron(text, zone)
    other = CronSim(text, datetime.fromtimestamp(after_ms // 1000, ZoneInfo(zone)))
    last_ms = after_ms
    for _ in range(40):
        due_ms = cron.next_ms(last_ms)
        assert told(due_ms, zone) == next(other).isoformat()
        assert due_ms is not None
        # Backwards it is the same line of times.
        assert cron.last_ms(due_ms) == due_ms
        before_ms = cron.last_ms(due_ms - 1)
        assert before_ms is not None
        assert before_ms <= last_ms
        assert cron.next_ms(before_ms) == due_ms
        last_ms = due_ms


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("", "UTC", "has 0 fields; it takes 5"),
        ("* * * *", "UTC", "has 4 fields"),
        ("* * * * * *", "UTC", "has 6 fields"),
        ("@often", "UTC", "'@often' is not known"),
        ("60 * * * *", "UTC", "minute '60': values go from 0 to 59"),
        ("* 5-3 * * *", "UTC", "hour '5-3': values go from 0 to 23, the lesser first"),
        ("* * 0 * *", "UTC", "day of month '0'"),
        ("* * * FOO *", "UTC", "month: 'FOO' is not a number"),
        ("* * * * 8", "UTC", "day of week '8'"),
        ("*/0 * * * *", "UTC", "a step is a number from 1 to 59"),
        ("*/99999999999 * * * *", "UTC", "is not a number"),
        ("1, * * * *", "UTC", "minute: '' is not a number"),
        ("-1 * * * *", "UTC", "minute: '' is not a number"),
        ("\u0663 * * * *", "UTC", "is not a number"),
        ("0 0 30 2 *", "UTC", "never comes"),
        ("0 0 31 4,6,9,11 *", "UTC", "never comes"),
        ("1," * CRON_CHARS_MAX, "UTC", f"at most {CRON_CHARS_MAX} characters"),
        ("* * * * *", "Europe/Nowhere", "time zone 'Europe/Nowhere' is not known here"),
        ("* * * * *", "../../etc/passwd", "is not known here"),
        ("* * * * *", "", "a time zone has a name"),
        ("* * * * *", "x" * 1000, "a time zone has a name"),
        ("* * * * *", "Europe", "is not known here"),
        ("* * * * *", "a\0b", "is not known here"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, zone: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        Cron(text, zone)
    assert words in str(caught.value)


def test_the_calendar_ends() -> None:
    cron = Cron("0 0 29 2 *")
    for far_ms in (ms("9999-12-31T23:59:00"), 2**62, -(2**62)):
        assert cron.next_ms(far_ms) is None
    assert cron.last_ms(ms("1700-01-01T00:00:00")) is None


HOURLY = Cron("0 * * * *")
NOON_MS = ms("2026-06-01T12:00:00")
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("misfire", "late_ms", "due_ms"),
    [
        # Not due yet, or late by less than a period: nothing was missed.
        (MISFIRE_ALL, -1, NOON_MS + HOUR_MS),
        (MISFIRE_ONCE, 1, NOON_MS + HOUR_MS),
        (MISFIRE_SKIP, 1, NOON_MS + HOUR_MS),
        (MISFIRE_SKIP, HOUR_MS - 1, NOON_MS + HOUR_MS),
        # Two and a half hours later three were due.
        (MISFIRE_ALL, 2 * HOUR_MS + HOUR_MS // 2, NOON_MS + HOUR_MS),
        (MISFIRE_ONCE, 2 * HOUR_MS + HOUR_MS // 2, NOON_MS + 3 * HOUR_MS),
        (MISFIRE_SKIP, 2 * HOUR_MS + HOUR_MS // 2, NOON_MS + 4 * HOUR_MS),
        # At the moment itself it is due, not missed.
        (MISFIRE_ONCE, HOUR_MS, NOON_MS + 2 * HOUR_MS),
    ],
)
def test_missed_times(misfire: str, late_ms: int, due_ms: int) -> None:
    recurrence = Recurrence(HOURLY, None, None, misfire)
    assert recurrence.next_ms(NOON_MS, 0, NOON_MS + HOUR_MS + late_ms) == due_ms


@pytest.mark.parametrize("misfire", [MISFIRE_ONCE, MISFIRE_SKIP, MISFIRE_ALL])
def test_ends_and_counts(misfire: str) -> None:
    ends = Recurrence(HOURLY, NOON_MS + 2 * HOUR_MS, None, misfire)
    assert ends.next_ms(NOON_MS + HOUR_MS, 1, NOON_MS + HOUR_MS) == NOON_MS + 2 * HOUR_MS
    assert ends.next_ms(NOON_MS + 2 * HOUR_MS, 2, NOON_MS + 2 * HOUR_MS) is None
    counts = Recurrence(HOURLY, None, 3, misfire)
    assert counts.next_ms(NOON_MS, 2, NOON_MS) == NOON_MS + HOUR_MS
    assert counts.next_ms(NOON_MS, 3, NOON_MS) is None


def test_missed_times_behind_the_end_stay_away_and_the_latest_before_it_comes_once() -> None:
    year_later_ms = NOON_MS + 365 * 24 * HOUR_MS
    end_ms = NOON_MS + 5 * HOUR_MS
    assert Recurrence(HOURLY, end_ms, None, MISFIRE_ONCE).next_ms(NOON_MS, 0, year_later_ms) == (
        end_ms
    )
    assert Recurrence(HOURLY, end_ms, None, MISFIRE_SKIP).next_ms(NOON_MS, 0, year_later_ms) is None
    all_of_them = Recurrence(HOURLY, end_ms, None, MISFIRE_ALL)
    due_ms: int | None = NOON_MS
    times: list[int] = []
    while due_ms is not None:
        due_ms = all_of_them.next_ms(due_ms, len(times), year_later_ms)
        if due_ms is not None:
            times.append(due_ms)
    assert times == [NOON_MS + hours * HOUR_MS for hours in range(1, 6)]


def test_utc_is_the_zone_when_none_is_named() -> None:
    assert HOURLY.next_ms(0) == HOUR_MS
    assert datetime.fromtimestamp(HOUR_MS / 1000, UTC).hour == 1
