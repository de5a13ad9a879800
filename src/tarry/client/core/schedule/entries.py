"""Entries of a schedule, as a client returns them to its users."""

from __future__ import annotations

from typing import NamedTuple

from tarry.records.record import Record

# Due time and s-offset of the last entry that was returned, by partition.
ScheduleCursor = dict[int, tuple[int, int]]


class ScheduledRecords(NamedTuple):
    """Scheduled records that are due together: one record, or a batch of them.

    `due_ms` is their time in milliseconds since 1970; `s_offset` identifies them within their
    partition, and so does `schedule_id` if they have one; `size` is about how many bytes they take.
    `records` is set if the caller asked for records and they could be read; their offsets mean
    nothing yet.  A recurring record has `cron` and `time_zone`, and `due_ms` is its next time.
    """

    topic: str
    partition: int
    due_ms: int
    s_offset: int
    record_count: int
    size: int
    schedule_id: bytes | None = None
    records: list[Record] | None = None
    cron: str | None = None
    time_zone: str | None = None


class ScheduleBucket(NamedTuple):
    """Number and bytes of the records that are due from `from_ms` on and before `until_ms`."""

    from_ms: int
    until_ms: int
    record_count: int
    size: int


class ScheduleTotals(NamedTuple):
    """Sums of the scheduled records: entries, records and bytes.

    `damaged_count` counts the entries that cannot be released.  It and `furthest_due_ms` (-1 if no
    record is scheduled) do not depend on the requested range.
    """

    entry_count: int
    record_count: int
    size: int
    damaged_count: int
    furthest_due_ms: int
    buckets: list[ScheduleBucket]


class SchedulePage(NamedTuple):
    """Page of the scheduled records of a topic, in order of due time, with the sums of the whole
    range.

    `next` is the argument `after` for the next page; None if this is the last one.
    """

    entries: list[ScheduledRecords]
    totals: ScheduleTotals
    next: ScheduleCursor | None


class ScheduleOutcome(NamedTuple):
    """Outcome of a cancel or a move: `"cancelled"`, `"moved"`, `"already_released"` or `"unknown"`.

    `s_offset` is the one of the cancelled or released record, or the new one of a moved record.
    `offset` is the offset of a released record in the partition, -1 if the broker does not know it
    any more.  `is_repeated` is true if an earlier try had no answer; an `"unknown"` may be its
    result then.
    """

    outcome: str
    partition: int = -1
    s_offset: int = -1
    offset: int = -1
    is_repeated: bool = False
