"""Decoding: values of `__tarry_events` become events, and a tally says what was not told.

Kinds and versions that are not known are passed over, so that a newer broker's log can be read; so
is what no broker tells, since a topic of this name may be anybody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tarry.broker.events.kinds import (
    VERSION,
    BrokerEvent,
    Event,
    GroupNoteEvent,
    OperationsEvent,
)
from tarry.spark.options import INT64_MAX

# The last time that a date tells, in calendar ms: the end of the year 9999.
AT_MS_MAX: Final = 253_402_300_799_999

# A wait of 2**63 ms is in a bucket before this one.
BUCKETS_MAX: Final = 128


@dataclass
class Tally:
    """Counts of what a log told and of what is missing in it.  Times are calendar ms."""

    events: int = 0
    # Of kinds or versions that are not known here.
    passed_over: int = 0
    # Events that brokers had no room for, or could not write.
    dropped: int = 0
    # For how long brokers did not run though they were up.
    stalled_ms: int = 0
    started_ms: list[int] = field(default_factory=list)
    first_ms: int | None = None
    last_ms: int | None = None

    def remarks(self) -> list[str]:
        """Return a sentence for each thing that a reader of the result has to know."""
        found = []
        if self.dropped:
            found.append(
                f"{self.dropped:,} events are missing: the broker had too many at once, or its "
                "disk refused them"
            )
        if self.passed_over:
            found.append(
                f"{self.passed_over:,} records were passed over: this Tarry does not know their "
                "kind or version"
            )
        if self.stalled_ms:
            found.append(
                f"brokers did not run for {self.stalled_ms:,} ms in all; no wait counts that time"
            )
        return found


@dataclass(frozen=True)
class TimeSpan:
    """Span of calendar time in ms, without its end; None: as far as the log goes."""

    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Return true if it is less than all time."""
        return self.since_ms is not None or self.until_ms is not None

    def has(self, at_ms: int) -> bool:
        """Return true if a time lies in the span."""
        if self.since_ms is not None and at_ms < self.since_ms:
            return False
        return self.until_ms is None or at_ms < self.until_ms


def decode_events(values: Iterable[bytes | None], span: TimeSpan, tally: Tally) -> Iterator[Event]:
    """Yield the events of a span in the log's order, and count them in the tally."""
    decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
    for value in values:
        event = _decoded(decoder, value)
        if event is None:
            tally.passed_over += 1
            continue
        if not span.has(event.at_ms):
            continue
        count_event(event, tally)
        yield event


def _decoded(decoder: msgspec.json.Decoder[Event], value: bytes | None) -> Event | None:
    try:
        event = decoder.decode(value or b"")
    except msgspec.DecodeError:
        return None
    if event.v != VERSION or not 0 <= event.at_ms <= AT_MS_MAX:
        return None
    if isinstance(event, GroupNoteEvent) and not _is_since_1970(event):
        return None
    if isinstance(event, OperationsEvent) and not all(map(_is_bucket, event.buckets)):
        return None
    return event if _is_countable(msgspec.to_builtins(event)) else None


def _is_since_1970(event: GroupNoteEvent) -> bool:
    stood_ms = event.note.get("stood_ms")
    return not isinstance(stood_ms, int) or 0 <= stood_ms <= event.at_ms


def _is_bucket(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 3 and int(name) < BUCKETS_MAX


def _is_countable(told: object) -> bool:
    """Return whether the numbers of an event are such as brokers count: others would not fit into
    a table."""
    if isinstance(told, dict):
        return all(map(_is_countable, told.values()))
    if isinstance(told, list):
        return all(map(_is_countable, told))
    return not isinstance(told, int) or -1 <= told <= INT64_MAX


def count_event(event: Event, tally: Tally) -> None:
    """Count an event that is told."""
    tally.events += 1
    if tally.first_ms is None or event.at_ms < tally.first_ms:
        tally.first_ms = event.at_ms
    if tally.last_ms is None or event.at_ms > tally.last_ms:
        tally.last_ms = event.at_ms
    if isinstance(event, BrokerEvent):
        tally.dropped += event.dropped
        tally.stalled_ms += event.stalled_ms
        if event.what == "started":
            tally.started_ms.append(event.at_ms)
