"""Deferral: a record that a consumer could not handle, as it is sent again or given up.

It keeps key, value and headers, and has headers more that count how often it was sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tarry.base.schedule_headers import HEADER_NAMES, SCHEDULE_DUE
from tarry.client.core.consumer.decoding import DecodedRecord
from tarry.client.core.outgoing import check_topic
from tarry.client.face.due import duration_ms_of
from tarry.client.settings import ClientSettings, SettingValue
from tarry.records.record import Record

# How often the record was sent again.
DEFER_ATTEMPT: Final = "x-defer-attempt"
# The timestamp that it had when it was deferred first.
DEFER_TIMESTAMP: Final = "x-defer-timestamp"
# Where it was when it was given up.
DEFER_TOPIC: Final = "x-defer-topic"
DEFER_PARTITION: Final = "x-defer-partition"
DEFER_OFFSET: Final = "x-defer-offset"

_OWN: Final = frozenset(
    {*HEADER_NAMES, SCHEDULE_DUE}
    | {DEFER_ATTEMPT, DEFER_TIMESTAMP, DEFER_TOPIC, DEFER_PARTITION, DEFER_OFFSET}
)

# A record that fails for ever must end in the dead-letter topic one day.
ATTEMPTS_MAX: Final = 1_000_000

# How long a record is tried, Kafka's default for a producer.
DELIVERY_TIMEOUT_MS: Final = 120_000


class Deferral(NamedTuple):
    """Record to send: to its own topic after a time, or, without one, to the dead-letter topic."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    after_ms: int | None


def deferral_of(record: object, after: object, attempts: object, dead_letter: object) -> Deferral:
    """Return what becomes of a record; raises TypeError or ValueError for what none can be."""
    if isinstance(record, DecodedRecord):
        record = record.record
    if not isinstance(record, Record):
        raise TypeError(f"defer takes a record of this consumer, not {record!r:.60}")
    waits_ms = _waits_ms(after)
    if type(attempts) is not int:
        raise TypeError(f"attempts={attempts!r:.60} is no whole number: give an int, such as 5")
    if not 0 <= attempts <= ATTEMPTS_MAX:
        raise ValueError(f"attempts={attempts} is not between 0 and {ATTEMPTS_MAX}")
    check_topic(dead_letter)
    assert isinstance(dead_letter, str)
    done = _attempts_of(record)
    headers = [pair for pair in record.headers if pair[0] not in _OWN]
    headers.append((DEFER_TIMESTAMP, _first_timestamp(record)))
    if done < attempts:
        headers.append((DEFER_ATTEMPT, b"%d" % (done + 1)))
        after_ms = waits_ms[min(done, len(waits_ms) - 1)]
        return Deferral(record.topic, record.partition, record.key, record.value, headers, after_ms)
    headers += [
        (DEFER_ATTEMPT, b"%d" % done),
        (DEFER_TOPIC, record.topic.encode()),
        (DEFER_PARTITION, b"%d" % record.partition),
        (DEFER_OFFSET, b"%d" % record.offset),
    ]
    return Deferral(dead_letter, None, record.key, record.value, headers, None)


def _waits_ms(after: object) -> list[int]:
    """Return how long each attempt waits, the last one also those that follow."""
    if not isinstance(after, Sequence) or isinstance(after, (str, bytes)):
        return [duration_ms_of("after", after)]
    if not after:
        raise ValueError('after holds no duration: give one, such as "5m", or one an attempt')
    return [duration_ms_of("after", one) for one in after]


def _attempts_of(record: Record) -> int:
    """Return how often the record was sent again; a header of somebody else's counts as none."""
    for name, value in reversed(record.headers):
        if name == DEFER_ATTEMPT:
            is_number = value is not None and value.isdigit() and len(value) <= 7
            return int(value or b"0") if is_number else 0
    return 0


def _first_timestamp(record: Record) -> bytes | None:
    for name, value in record.headers:
        if name == DEFER_TIMESTAMP:
            return value
    return b"%d" % record.timestamp


def deferring_settings(settings: ClientSettings) -> dict[str, SettingValue]:
    """Return the settings of a producer that goes where this client does."""
    # A record is waited for, so that none lingers; and it is tried for longer than a request takes,
    # as ProducerSettings demand.
    delivery_timeout_ms = max(settings.request_timeout_ms, DELIVERY_TIMEOUT_MS)
    return {**settings.common(), "linger.ms": 0, "delivery.timeout.ms": delivery_timeout_ms}
