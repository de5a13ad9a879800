"""Headers of recurring records, as users write them: `x-sched-cron` and what goes with it.

What they cannot mean is a `BadRecurrence` with a sentence.
"""

from __future__ import annotations

from typing import Final

from tarry.base.setting import shown
from tarry.schedule.recurring.cron import CRON_CHARS_MAX, ZONE_CHARS_MAX, CronError
from tarry.schedule.recurring.terms import (
    COUNT,
    CRON,
    END,
    MISFIRE,
    MISFIRE_ONCE,
    MISFIRES,
    RECURRING_HEADERS,
    UNBOUNDED,
    ZONE,
    RecurrenceTerms,
)
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.times import parse_time

_COUNT_MAX: Final = 1_000_000_000
_NUMBER_BYTES_MAX: Final = 10
_SENTENCE_CHARS_MAX: Final = 300
_UTC: Final = "UTC"


class BadRecurrence(Exception):
    """Headers that say no recurrence; the sentence tells why."""


class FirstInstance:
    """First instance of a recurring record: its terms, and when it is due."""

    def __init__(self, terms: RecurrenceTerms, due_ms: int) -> None:
        self.terms = terms
        self.due_ms = due_ms


def parse_recurrence(
    found: dict[str, bytes | None], now_wall_ms: int, times: RecurringTimes
) -> FirstInstance | None:
    """Parse the headers of a record that has come now; None if it does not recur.

    Raises `BadRecurrence`, or `BadTime` of its end.
    """
    if CRON not in found:
        for name in RECURRING_HEADERS:
            if name in found:
                raise BadRecurrence(f"{name} needs {CRON}")
        return None
    cron = _text_of(CRON, found[CRON], CRON_CHARS_MAX)
    zone = _text_of(ZONE, found[ZONE], ZONE_CHARS_MAX) if ZONE in found else _UTC
    end_ms = parse_time(END, found[END]) if END in found else UNBOUNDED
    count = _count_of(found[COUNT]) if COUNT in found else UNBOUNDED
    misfire = _misfire_of(found[MISFIRE]) if MISFIRE in found else MISFIRE_ONCE
    if END in found and end_ms <= now_wall_ms:
        raise BadRecurrence(f"{END} is over: it is {end_ms}, and the broker's clock {now_wall_ms}")
    terms = RecurrenceTerms(cron, zone, now_wall_ms, end_ms=end_ms, count=count, misfire=misfire)
    try:
        due_ms = times.first_ms(terms)
    except CronError as error:
        raise BadRecurrence(f"{CRON}: {str(error)[:_SENTENCE_CHARS_MAX]}") from None
    if due_ms is None:
        until = f"{END}={end_ms}" if END in found else "the calendar ends"
        raise BadRecurrence(f"{CRON}={shown(cron)}: it does not come before {until}")
    return FirstInstance(terms, due_ms)


def _text_of(header: str, value: bytes | None, bytes_max: int) -> str:
    if value is None or not value.strip(b" "):
        raise BadRecurrence(f"{header} is empty")
    if len(value) > bytes_max:
        raise BadRecurrence(f"{header} has {len(value)} bytes, {bytes_max} are the most")
    if not value.isascii():
        raise BadRecurrence(f"{header} has a character that is not of ASCII")
    return value.decode("ascii").strip(" ")


def _count_of(value: bytes | None) -> int:
    text = _text_of(COUNT, value, _NUMBER_BYTES_MAX)
    if not text.isdigit() or not 1 <= int(text) <= _COUNT_MAX:
        raise BadRecurrence(f"{COUNT}={shown(text)}: it must be a number from 1 to {_COUNT_MAX}")
    return int(text)


def _misfire_of(value: bytes | None) -> str:
    text = _text_of(MISFIRE, value, _NUMBER_BYTES_MAX)
    if text not in MISFIRES:
        raise BadRecurrence(f"{MISFIRE}={shown(text)}: it must be {', '.join(MISFIRES)}")
    return text
