"""Due: the arguments that say when a record is due, checked before anything has changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tarry.base.limits import DUE_MS_MAX, SCHEDULE_ID_BYTES_MAX
from tarry.client.core.producer.due import ARGUMENT_NAMES, UNSAID, DueGiven, DueNames
from tarry.schedule.times import BadTime, parse_deliver_after

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def due_given(
    deliver_at: object,
    deliver_after: object,
    schedule_id: object,
    names: DueNames = ARGUMENT_NAMES,
) -> DueGiven:
    """Return what was given for a delayed record, checked; raise TypeError or ValueError for what
    is invalid, with its name."""
    if deliver_at is not None and deliver_after is not None:
        raise ValueError(
            f"{names.deliver_at} and {names.deliver_after} both say when the record is due: give "
            "one"
        )
    return DueGiven(
        UNSAID if deliver_at is None else _deliver_at_ms(names.deliver_at, deliver_at),
        UNSAID if deliver_after is None else duration_ms_of(names.deliver_after, deliver_after),
        b"" if schedule_id is None else _schedule_id_of(names.schedule_id, schedule_id),
    )


def cancel_given(schedule_id: object) -> DueGiven:
    """Return the checked arguments for cancelling the record with this id."""
    found = _schedule_id_of(ARGUMENT_NAMES.schedule_id, schedule_id)
    return DueGiven(schedule_id=found, is_cancel=True)


def _schedule_id_of(argument: str, schedule_id: object) -> bytes:
    """Return the id as a header has it."""
    if isinstance(schedule_id, str):
        try:
            found = schedule_id.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{argument}={schedule_id!r:.60} cannot be encoded as UTF-8") from None
    elif isinstance(schedule_id, (bytes, bytearray, memoryview)):
        found = bytes(schedule_id)
    else:
        raise TypeError(
            f"{argument} is of type {type(schedule_id).__name__}, not a str or bytes: give a "
            'name, such as "call-7"'
        )
    if not 0 < len(found) <= SCHEDULE_ID_BYTES_MAX:
        raise ValueError(f"{argument} has {len(found)} bytes, not 1 to {SCHEDULE_ID_BYTES_MAX}")
    return found


def _deliver_at_ms(argument: str, deliver_at: object) -> int:
    if isinstance(deliver_at, datetime):
        if deliver_at.tzinfo is None or deliver_at.utcoffset() is None:
            raise ValueError(
                f"{argument}={deliver_at.isoformat()} has no time zone: give one, such as "
                "datetime.now(UTC) + timedelta(hours=1)"
            )
        due_ms = _whole_ms(deliver_at - _EPOCH)
    elif type(deliver_at) is int:
        due_ms = deliver_at
    else:
        raise TypeError(
            f"{argument} is of type {type(deliver_at).__name__}, not a time: give a datetime with "
            "a time zone, or an int of milliseconds since 1970"
        )
    if not 0 <= due_ms <= DUE_MS_MAX:
        raise ValueError(f"{argument}={deliver_at!s:.60} is not between 1970 and the year 10000")
    return due_ms


def duration_ms_of(argument: str, duration: object) -> int:
    """Return a duration in milliseconds: a timedelta, a text such as "1h30m", or an int."""
    if isinstance(duration, timedelta):
        duration_ms = _whole_ms(duration)
    elif isinstance(duration, str):
        duration_ms = _text_ms(argument, duration)
    elif type(duration) is int:
        duration_ms = duration
    else:
        raise TypeError(
            f"{argument} is of type {type(duration).__name__}, not a duration: give a timedelta, "
            'a text such as "1h30m", or an int of milliseconds'
        )
    if not 0 <= duration_ms <= DUE_MS_MAX:
        raise ValueError(f"{argument}={duration!s:.60} is not between 0 and {DUE_MS_MAX} ms")
    return duration_ms


def _whole_ms(duration: timedelta) -> int:
    """Return the milliseconds, rounded up so that no record is early."""
    whole_ms, rest = divmod(duration, timedelta(milliseconds=1))
    return whole_ms + bool(rest)


def _text_ms(argument: str, text: str) -> int:
    try:
        return parse_deliver_after(text.encode())
    except (BadTime, UnicodeEncodeError):
        raise ValueError(
            f'{argument}={text!r:.60} is no duration: write it as in "1h30m", with d, h, m, s and '
            "ms from the largest to the smallest"
        ) from None
