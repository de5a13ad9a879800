"""Deferral: a record that a consumer could not handle, and that is sent again or given up.

The new record has the same key, value and headers, and further headers that count its attempts.
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

# Header with the number of times that the record was sent again.
DEFER_ATTEMPT: Final = "x-defer-attempt"
# Header with the timestamp of the record before its first deferral.
DEFER_TIMESTAMP: Final = "x-defer-timestamp"
# Headers with the place of the record that was given up.
DEFER_TOPIC: Final = "x-defer-topic"
DEFER_PARTITION: Final = "x-defer-partition"
DEFER_OFFSET: Final = "x-defer-offset"

_OWN: Final = frozenset(
    {*HEADER_NAMES, SCHEDULE_DUE}
    | {DEFER_ATTEMPT, DEFER_TIMESTAMP, DEFER_TOPIC, DEFER_PARTITION, DEFER_OFFSET}
)

# Bound on the attempts: a record that always fails must end in the dead-letter topic.
ATTEMPTS_MAX: Final = 1_000_000

# Time for which the producer tries to deliver a record, in ms; Kafka's default.
DELIVERY_TIMEOUT_MS: Final = 120_000


class Deferral(NamedTuple):
    """Record to send: to its own topic after a time, or to the dead-letter topic if that is
    None."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    after_ms: int | None


def deferral_of(record: object, after: object, attempts: object, dead_letter: object) -> Deferral:
    """Return the deferral of a record; raise TypeError or ValueError for invalid arguments."""
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
    """Return the wait of each attempt in ms; the last one also holds for all that follow."""
    if not isinstance(after, Sequence) or isinstance(after, (str, bytes)):
        return [duration_ms_of("after", after)]
    if not after:
        raise ValueError('after holds no duration: give one, such as "5m", or one an attempt')
    return [duration_ms_of("after", one) for one in after]


def _attempts_of(record: Record) -> int:
    """Return how often the record was sent again; 0 if the header is missing or malformed."""
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
    """Return the settings of a producer for the same cluster as this client."""
    # The caller waits for each record, so records must not linger.  The delivery time-out must
    # exceed the request time-out, as ProducerSettings demand.
    delivery_timeout_ms = max(settings.request_timeout_ms, DELIVERY_TIMEOUT_MS)
    return {**settings.common(), "linger.ms": 0, "delivery.timeout.ms": delivery_timeout_ms}
