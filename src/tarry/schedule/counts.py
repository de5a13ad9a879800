"""Counts of a topic's scheduled records on one broker, and how late those are that it releases.

A batch costs some additions, however many records it has.  A record is late by the time from when
it is due until it counts, which is when consumers see it.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.turn import Turn
from tarry.base.wait_buckets import bucket_of

# Numbers of `wait_buckets`; the last one begins at 24 days and has all that is later.
LATENESS_BUCKETS: Final = 64


class TopicCounts:
    """Counts of one topic since `since_ms`, by the calendar: records, not batches."""

    def __init__(self, topic: str, turn: Turn) -> None:
        self.topic = topic
        self._turn = turn
        self.since_ms = turn.now_wall_ms
        # Appended to the companion log by producers.
        self.parked: i64 = 0
        self.released: i64 = 0
        # Taken back or replaced before they were due.
        self.cancelled: i64 = 0
        # Of batches that were refused for what their records say.
        self.refused: i64 = 0
        self.lateness: list[int] = [0] * LATENESS_BUCKETS
        self.longest_late_ms: i64 = 0
        # Since it was taken last.
        self._longest_ms: i64 = 0

    def add_parked(self, record_count: i64) -> None:
        """Count records of a producer that wait from now on."""
        self.parked += record_count

    def add_cancelled(self, record_count: i64) -> None:
        """Count records that were taken back or replaced."""
        self.cancelled += record_count

    def add_refused(self, record_count: i64) -> None:
        """Count the records of a batch that was refused."""
        self.refused += record_count

    def add_released(self, record_count: i64, due_ms: i64) -> None:
        """Count records that were due then and count since this turn."""
        # Negative where the clock was set back since the release.
        late_ms: i64 = max(self._turn.now_wall_ms - due_ms, 0)
        self.released += record_count
        self.lateness[min(bucket_of(late_ms), LATENESS_BUCKETS - 1)] += record_count
        self.longest_late_ms = max(self.longest_late_ms, late_ms)
        self._longest_ms = max(self._longest_ms, late_ms)

    def take_longest_ms(self) -> int:
        """Return by how much a record was late at most since the last call."""
        longest_ms = self._longest_ms
        self._longest_ms = 0
        return int(longest_ms)

    @property
    def total(self) -> int:
        """Number that grows with each count."""
        return self.parked + self.released + self.cancelled + self.refused
