"""Headers of recurring records, as users write them: `x-sched-cron` and the headers beside it.

Invalid headers raise a `BadRecurrence` with a sentence.
"""

from __future__ import annotations

from typing import Final

from tarry.base.schedule_headers import (
    RECURRENCE_COUNT,
    RECURRENCE_CRON,
    RECURRENCE_END,
    RECURRENCE_MISFIRE,
    RECURRENCE_NAMES,
    RECURRENCE_ZONE,
)
from tarry.base.setting import shown
from tarry.schedule.recurring.cron import CRON_CHARS_MAX, ZONE_CHARS_MAX, CronError
from tarry.schedule.recurring.terms import MISFIRE_ONCE, MISFIRES, UNBOUNDED, RecurrenceTerms
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.times import parse_time

_COUNT_MAX: Final = 1_000_000_000
_NUMBER_BYTES_MAX: Final = 10
_SENTENCE_CHARS_MAX: Final = 300
_UTC: Final = "UTC"


class BadRecurrence(Exception):
    """Headers that are no valid recurrence; the sentence says why."""


class FirstInstance:
    """First instance of a recurring record: its terms, and when it is due."""

    def __init__(self, terms: RecurrenceTerms, due_ms: int) -> None:
        self.terms = terms
        self.due_ms = due_ms


def parse_recurrence(
    found: dict[str, bytes | None], now_wall_ms: int, times: RecurringTimes
) -> FirstInstance | None:
    """Parse the headers of a record that was received now; None if it does not recur.

    Raises `BadRecurrence`, or `BadTime` if the end is no valid time.
    """
    if RECURRENCE_CRON not in found:
        for name in RECURRENCE_NAMES:
            if name in found:
                raise BadRecurrence(f"{name} needs {RECURRENCE_CRON}")
        return None
    cron = _text_of(RECURRENCE_CRON, found[RECURRENCE_CRON], CRON_CHARS_MAX)
    zone = (
        _text_of(RECURRENCE_ZONE, found[RECURRENCE_ZONE], ZONE_CHARS_MAX)
        if RECURRENCE_ZONE in found
        else _UTC
    )
    end_ms = (
        parse_time(RECURRENCE_END, found[RECURRENCE_END]) if RECURRENCE_END in found else UNBOUNDED
    )
    count = _count_of(found[RECURRENCE_COUNT]) if RECURRENCE_COUNT in found else UNBOUNDED
    misfire = (
        _misfire_of(found[RECURRENCE_MISFIRE]) if RECURRENCE_MISFIRE in found else MISFIRE_ONCE
    )
    if RECURRENCE_END in found and end_ms <= now_wall_ms:
        raise BadRecurrence(
            f"{RECURRENCE_END} is over: it is {end_ms}, and the broker's clock {now_wall_ms}"
        )
    terms = RecurrenceTerms(cron, zone, now_wall_ms, end_ms=end_ms, count=count, misfire=misfire)
    try:
        due_ms = times.first_ms(terms)
    except CronError as error:
        raise BadRecurrence(f"{RECURRENCE_CRON}: {str(error)[:_SENTENCE_CHARS_MAX]}") from None
    if due_ms is None:
        until = f"{RECURRENCE_END}={end_ms}" if RECURRENCE_END in found else "the calendar ends"
        raise BadRecurrence(f"{RECURRENCE_CRON}={shown(cron)}: it does not come before {until}")
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
    text = _text_of(RECURRENCE_COUNT, value, _NUMBER_BYTES_MAX)
    if not text.isdigit() or not 1 <= int(text) <= _COUNT_MAX:
        raise BadRecurrence(
            f"{RECURRENCE_COUNT}={shown(text)}: it must be a number from 1 to {_COUNT_MAX}"
        )
    return int(text)


def _misfire_of(value: bytes | None) -> str:
    text = _text_of(RECURRENCE_MISFIRE, value, _NUMBER_BYTES_MAX)
    if text not in MISFIRES:
        raise BadRecurrence(f"{RECURRENCE_MISFIRE}={shown(text)}: it must be {', '.join(MISFIRES)}")
    return text
