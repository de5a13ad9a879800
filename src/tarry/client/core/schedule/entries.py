"""Entries of a schedule, as a client tells them to its users."""

from __future__ import annotations

from typing import NamedTuple

from tarry.records.record import Record

# By partition the due time and the s-offset of the entry that was told last.
ScheduleCursor = dict[int, tuple[int, int]]


class ScheduledRecords(NamedTuple):
    """Records that wait and are due together: one record, or a batch of them.

    `due_ms` is when, in milliseconds since 1970; `s_offset` names them within their partition, and
    so does `schedule_id` if they have one; `size` is about how many bytes they take.  `records` are
    there if they were asked for and could be read; their offsets mean nothing yet.  A record that
    comes again and again has `cron` and `time_zone`, and `due_ms` is when it comes next.
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
    """Records that are due from `from_ms` on and before `until_ms`, and their bytes."""

    from_ms: int
    until_ms: int
    record_count: int
    size: int


class ScheduleTotals(NamedTuple):
    """Sums of what waits: entries, their records and bytes.

    `damaged_count` entries cannot be released; they and `furthest_due_ms` (-1: nothing waits) do
    not depend on the range that was asked for.
    """

    entry_count: int
    record_count: int
    size: int
    damaged_count: int
    furthest_due_ms: int
    buckets: list[ScheduleBucket]


class SchedulePage(NamedTuple):
    """Page of what waits in a topic, in order of due time, with the sums of the whole range.

    `next` is the argument `after` for the page behind this one; None if this is the last one.
    """

    entries: list[ScheduledRecords]
    totals: ScheduleTotals
    next: ScheduleCursor | None


class ScheduleOutcome(NamedTuple):
    """Outcome of a cancel or a move: `"cancelled"`, `"moved"`, `"already_released"` or `"unknown"`.

    `s_offset` is the one of what was cancelled or released, or the new one of what was moved;
    `offset` the one in the partition of what was released, -1 if the broker does not know it any
    more.  `is_repeated`: an earlier try had no answer, so that an `"unknown"` may be its doing.
    """

    outcome: str
    partition: int = -1
    s_offset: int = -1
    offset: int = -1
    is_repeated: bool = False
