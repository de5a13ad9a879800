"""Cron expressions with time zones: when does a recurring record come next?

Five fields as in crontab(5): minute, hour, day of month, month, day of week; names (`MON`, `JAN`),
lists, ranges, steps, and `@hourly` to `@yearly`.  As in crontab(5) a day matches if either of the
two day fields does, when neither begins with `*`; else both have to.

Daylight saving follows Debian's cron.  An expression with a fixed time of day, neither minute nor
hour beginning with `*`, comes once a day: a time that the clock skips comes at the end of the gap,
a time that it shows twice comes the first time.  Any other expression follows the clock: nothing
in a gap, and both times in an hour that is repeated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

# Longest expression: five fields, of about 170 characters each at most.
CRON_CHARS_MAX: Final = 1000
ZONE_CHARS_MAX: Final = 100

# Days to search ahead: 29 February comes within eight years, and on a day of the week within 40.
_DAYS_AHEAD_MAX: Final = 41 * 366

_DAY_MINUTES: Final = 24 * 60
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
_WEEK: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SHORT: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class CronError(ValueError):
    """A cron expression or a time zone cannot be used; the text says why."""


class Cron:
    """Times at which a cron expression comes in its time zone.

    Times are milliseconds since 1970 (UTC).  Raises CronError if the expression cannot be read or
    never comes, or if the time zone is not known.
    """

    def __init__(self, text: str, zone: str = "UTC") -> None:
        self._zone = _zone_of(zone)
        minute, hour, day, month, weekday = _fields_of(text)
        minutes = _values_of("minute", minute, 0, 59)
        hours = _values_of("hour", hour, 0, 23)
        self._days = frozenset(_values_of("day of month", day, 1, 31))
        self._months = frozenset(_values_of("month", month, 1, 12, _MONTHS, 1))
        # Sunday is 0 and 7 in crontab(5).
        weekdays = _values_of("day of week", weekday, 0, 7, _WEEK, 0)
        self._weekdays = frozenset(each % 7 for each in weekdays)
        self._is_any_day = not (day.startswith("*") or weekday.startswith("*"))
        self._is_fixed = not (minute.startswith("*") or hour.startswith("*"))
        # Times of day at which the expression comes, in minutes since midnight, ascending.
        self._times = [60 * h + m for h in hours for m in minutes]
        # The last day with a change of the clock that was asked for, and its times.
        self._odd_day: date | None = None
        self._odd_times: list[int] = []
        if not self._comes_ever():
            raise CronError(f"cron expression {text!r} never comes: no month of it has such a day")

    def next_ms(self, after_ms: int) -> int | None:
        """Return the first time later than `after_ms`; None if the calendar ends before."""
        day = self._day_of(after_ms)
        if day is None:
            return None
        # A gap at midnight moves the last times of a day to the next day.
        day -= timedelta(days=1)
        for _ in range(_DAYS_AHEAD_MAX):
            if self._matches(day):
                found = self._first_after(day, after_ms)
                if found is not None:
                    return found
            if day.year > 9990:
                return None
            day += timedelta(days=1) if day.month in self._months else _to_next_month(day)
        return None

    def last_ms(self, until_ms: int) -> int | None:
        """Return the last time that is not later than `until_ms`; None if there was none."""
        day = self._day_of(until_ms)
        if day is None:
            return None
        for _ in range(_DAYS_AHEAD_MAX):
            if self._matches(day):
                found = self._last_until(day, until_ms)
                if found is not None:
                    return found
            if day.year < 1900:
                return None
            day -= timedelta(days=1) if day.month in self._months else timedelta(days=day.day)
        return None

    def _day_of(self, time_ms: int) -> date | None:
        """Return the day of `time_ms` by the zone's clock."""
        try:
            return datetime.fromtimestamp(time_ms // 1000, self._zone).date()
        except (ValueError, OverflowError, OSError):
            return None

    def _comes_ever(self) -> bool:
        if self._is_any_day:
            # A day of the week comes in each month.
            return True
        return any(min(self._days) <= _LONGEST_MONTHS[month - 1] for month in sorted(self._months))

    def _matches(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        is_day = day.day in self._days
        is_weekday = day.isoweekday() % 7 in self._weekdays
        return is_day or is_weekday if self._is_any_day else is_day and is_weekday

    def _first_after(self, day: date, after_ms: int) -> int | None:
        """Return the first time of `day` that is later than `after_ms`; None if it has none."""
        midnight, start_ms, is_odd = self._start_of(day)
        times = self._odd_times_of(midnight) if is_odd else self._times
        after = after_ms if is_odd else (after_ms - start_ms) // 60_000
        place = bisect_right(times, after)
        if place == len(times):
            return None
        return times[place] if is_odd else start_ms + 60_000 * times[place]

    def _last_until(self, day: date, until_ms: int) -> int | None:
        """Return the last time of `day` that is not later than `until_ms`; None if it has none."""
        midnight, start_ms, is_odd = self._start_of(day)
        times = self._odd_times_of(midnight) if is_odd else self._times
        until = until_ms if is_odd else (until_ms - start_ms) // 60_000
        place = bisect_right(times, until)
        if place == 0:
            return None
        return times[place - 1] if is_odd else start_ms + 60_000 * times[place - 1]

    def _start_of(self, day: date) -> tuple[datetime, int, bool]:
        """Return the day's midnight, the same in ms, and whether the clock changes on this day."""
        midnight = datetime(day.year, day.month, day.day)
        start_ms = self._instant_ms(midnight, 0)
        end_ms = self._instant_ms(midnight + timedelta(days=1), 0)
        return midnight, start_ms, end_ms - start_ms != _DAY_MINUTES * 60_000

    def _odd_times_of(self, midnight: datetime) -> list[int]:
        """Return the times of a day on which the clock is changed, ascending.

        The result is kept, since it is needed again after each of these times: for an expression
        that comes each minute it takes a millisecond to compute.
        """
        day = midnight.date()
        if self._odd_day == day:
            return self._odd_times
        found: set[int] = set()
        hour_offsets = [self._hour_offset_ms(midnight, hour) for hour in range(24)]
        midnight_ms = _ms_of(midnight)
        for minute in self._times:
            offset_ms = hour_offsets[minute // 60]
            if offset_ms is not None:
                found.add(midnight_ms + 60_000 * minute - offset_ms)
                continue
            clock = midnight + timedelta(minutes=minute)
            first_ms = self._instant_ms(clock, 0)
            second_ms = self._instant_ms(clock, 1)
            if second_ms < first_ms:
                # The clock skips this time; `fold` selects the offset before or behind the gap.
                if self._is_fixed:
                    found.add(self._gap_end_ms(second_ms, first_ms))
            else:
                found.add(first_ms)
                if not self._is_fixed:
                    found.add(second_ms)
        self._odd_day = day
        self._odd_times = sorted(found)
        return self._odd_times

    def _hour_offset_ms(self, midnight: datetime, hour: int) -> int | None:
        """Return the offset from UTC, in ms, in one hour; None if the clock changes within it."""
        start = midnight + timedelta(hours=hour)
        end = start + timedelta(minutes=59)
        offset = self._offset(start, 0)
        others = (self._offset(start, 1), self._offset(end, 0), self._offset(end, 1))
        if any(other != offset for other in others):
            return None
        return int(offset.total_seconds() * 1000)

    def _offset(self, clock: datetime, fold: int) -> timedelta:
        offset = self._zone.utcoffset(clock.replace(fold=fold))
        assert offset is not None
        return offset

    def _instant_ms(self, clock: datetime, fold: int) -> int:
        instant = clock - self._offset(clock, fold)
        return _ms_of(instant)

    def _gap_end_ms(self, low_ms: int, high_ms: int) -> int:
        """Return the first moment behind the gap that lies between `low_ms` and `high_ms`."""
        before = self._offset_at(low_ms)
        low_s, high_s = low_ms // 1000, high_ms // 1000
        seconds = range(low_s, high_s + 1)
        return 1000 * (
            low_s + bisect_left(seconds, True, key=lambda s: self._offset_at(1000 * s) != before)
        )

    def _offset_at(self, time_ms: int) -> timedelta:
        offset = datetime.fromtimestamp(time_ms // 1000, self._zone).utcoffset()
        assert offset is not None
        return offset


def _ms_of(instant: datetime) -> int:
    return int(instant.replace(tzinfo=UTC).timestamp()) * 1000


def _to_next_month(day: date) -> timedelta:
    following = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return following - day


def _zone_of(name: str) -> tzinfo:
    if name == "UTC":
        # UTC is known even where no time zones are installed.
        return UTC
    if not name or len(name) > ZONE_CHARS_MAX:
        raise CronError(f"a time zone has a name of 1 to {ZONE_CHARS_MAX} characters")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise CronError(
            f"time zone {name!r} is not known here; write a name such as Europe/Berlin or UTC"
        ) from None


def _fields_of(text: str) -> list[str]:
    if len(text) > CRON_CHARS_MAX:
        raise CronError(f"a cron expression has at most {CRON_CHARS_MAX} characters")
    stripped = text.strip()
    if stripped.startswith("@"):
        known = _SHORT.get(stripped.lower())
        if known is None:
            raise CronError(f"cron expression {text!r} is not known: {', '.join(sorted(_SHORT))}")
        stripped = known
    fields = stripped.split()
    if len(fields) != 5:
        raise CronError(
            f"cron expression {text!r} has {len(fields)} fields; it takes 5: minute, hour, "
            "day of month, month, day of week"
        )
    return fields


def _values_of(
    what: str, field: str, least: int, most: int, names: tuple[str, ...] = (), base: int = 0
) -> list[int]:
    """Return the values of one field, ascending."""
    values: set[int] = set()
    for part in field.split(","):
        span, slash, step_text = part.partition("/")
        step = 1
        if slash:
            step = _number_of(what, step_text)
            if not 1 <= step <= most:
                raise CronError(f"{what} {part!r}: a step is a number from 1 to {most}")
        if span == "*":
            low, high = least, most if names != _WEEK else 6
        else:
            low_text, dash, high_text = span.partition("-")
            low = _value_of(what, low_text, names, base)
            high = _value_of(what, high_text, names, base) if dash else low
            if slash and not dash:
                # `5/15` means `5-59/15`.
                high = most
        if not least <= low <= high <= most:
            raise CronError(f"{what} {part!r}: values go from {least} to {most}, the lesser first")
        values.update(range(low, high + 1, step))
    return sorted(values)


def _value_of(what: str, text: str, names: tuple[str, ...], base: int) -> int:
    upper = text.upper()
    if upper in names:
        return names.index(upper) + base
    return _number_of(what, text)


def _number_of(what: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise CronError(f"{what}: {text!r} is not a number")
    return int(text)
