"""Counts of a topic's scheduled records on one broker, and the lateness of released records.

Counting a batch costs a few additions, however many records it has.  A record's lateness is the
time from its due time until its release is committed, when consumers see it.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.turn import Turn
from tarry.base.wait_buckets import bucket_of

# Buckets of `wait_buckets`; the last one begins at 24 days and counts all longer latenesses.
LATENESS_BUCKETS: Final = 64

# Lateness from which on the broker's log reports a record.
LATE_MS: Final = 5_000


class TopicCounts:
    """Counts of one topic since `since_ms`, by the calendar: records, not batches."""

    def __init__(self, topic: str, turn: Turn) -> None:
        self.topic = topic
        self._turn = turn
        self.since_ms = turn.now_wall_ms
        # Records that producers have parked, and records whose releases are committed.
        self.parked: i64 = 0
        self.released: i64 = 0
        # Records that were cancelled or replaced before they were due.
        self.cancelled: i64 = 0
        # Records of batches that were refused because of their records' headers or times.
        self.refused: i64 = 0
        self.lateness: list[int] = [0] * LATENESS_BUCKETS
        self.longest_late_ms: i64 = 0
        # Longest lateness since the last call of `take_longest_ms`.
        self._longest_ms: i64 = 0
        # Records that came late by `LATE_MS` or more since the last call of `take_late`, and the
        # longest lateness of them.
        self.late: i64 = 0
        self._late_longest_ms: i64 = 0

    def add_parked(self, record_count: i64) -> None:
        """Count records that a producer has parked."""
        self.parked += record_count

    def add_cancelled(self, record_count: i64) -> None:
        """Count records that were cancelled or replaced."""
        self.cancelled += record_count

    def add_refused(self, record_count: i64) -> None:
        """Count the records of a batch that was refused."""
        self.refused += record_count

    def add_released(self, record_count: i64, due_ms: i64) -> None:
        """Count records that were due at `due_ms` and whose release is committed in this turn."""
        # The difference is negative if the clock was set back after the release.
        late_ms: i64 = max(self._turn.now_wall_ms - due_ms, 0)
        self.released += record_count
        self.lateness[min(bucket_of(late_ms), LATENESS_BUCKETS - 1)] += record_count
        self.longest_late_ms = max(self.longest_late_ms, late_ms)
        self._longest_ms = max(self._longest_ms, late_ms)
        if late_ms >= LATE_MS:
            self.late += record_count
            self._late_longest_ms = max(self._late_longest_ms, late_ms)

    def take_late(self) -> tuple[int, int]:
        """Return the number of late records since the last call, and their longest lateness."""
        taken = int(self.late), int(self._late_longest_ms)
        self.late = 0
        self._late_longest_ms = 0
        return taken

    def take_longest_ms(self) -> int:
        """Return the longest lateness of a record since the last call, in ms."""
        longest_ms = self._longest_ms
        self._longest_ms = 0
        return int(longest_ms)

    @property
    def total(self) -> int:
        """Sum of all counts, which grows with each of them."""
        return self.parked + self.released + self.cancelled + self.refused


class UncountedWrites:
    """Counts of what one partition has parked and cancelled in this turn, until it is written."""

    def __init__(self, counts: TopicCounts) -> None:
        self._counts = counts
        # An s-offset that the turn's write has to keep, records parked, records cancelled.
        self._writes: list[tuple[int, int, int]] = []

    def add(self, s_offset: int, *, parked: int = 0, cancelled: int = 0) -> None:
        """Note records that count if the turn's write keeps `s_offset`."""
        self._writes.append((s_offset, parked, cancelled))

    def settle(self, s_end: int) -> None:
        """Count what lies below `s_end`, the end of what was written, and forget the rest."""
        for s_offset, parked, cancelled in self._writes:
            if s_offset < s_end:
                self._counts.add_parked(parked)
                self._counts.add_cancelled(cancelled)
        self._writes.clear()
