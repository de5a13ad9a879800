"""Entries of a schedule, as a client returns them to its users."""

from __future__ import annotations

from typing import NamedTuple

from tarry.base.percentiles import percentile
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


class ScheduleCounts(NamedTuple):
    """Counts of records of one topic: each broker that leads one of its partitions has counted
    since it began to, the first of them at `since_ms`.

    `cancelled_count` were taken back or replaced, `refused_count` belonged to batches that were
    refused.  A record is late by the time from when it is due until consumers see it.
    """

    since_ms: int
    parked_count: int
    released_count: int
    cancelled_count: int
    refused_count: int
    longest_late_ms: int
    # By the number of a bucket, as in the event log.
    lateness: dict[int, int]

    def late_ms(self, percent: float) -> int:
        """Return by how much so many percent of the released records were late at most."""
        return percentile(self.lateness, percent, self.longest_late_ms).at_most_ms


class ScheduleTotals(NamedTuple):
    """Sums of the scheduled records: entries, records and bytes.

    `damaged_count` counts the entries that cannot be released.  It and `furthest_due_ms` (-1 if no
    record is scheduled) do not depend on the requested range.  `counts` is
    None where no broker tells it.  `flaws` has a sentence for each partition whose log of scheduled
    records is damaged: some of them are not counted.
    """

    entry_count: int
    record_count: int
    size: int
    damaged_count: int
    furthest_due_ms: int
    buckets: list[ScheduleBucket]
    counts: ScheduleCounts | None = None
    flaws: tuple[str, ...] = ()


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
