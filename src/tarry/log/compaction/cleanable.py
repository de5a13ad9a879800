"""Cleanable part of a log: which segments can be compacted, and when they are, by Kafka's rules.

Compaction takes whole segments that are below the high watermark, that a recovery point covers,
and whose records are all older than `min.compaction.lag.ms`; never the last one.  If only the
recovery point is missing, the log asks for one.
"""

from __future__ import annotations

from itertools import pairwise

from tarry.log.config import INT64_MAX
from tarry.log.log import Log
from tarry.log.retention import newest_ms
from tarry.log.segment import Segment


class Cleanable:
    """The dirty part of a log, from `start_offset` to `end_offset`."""

    def __init__(self, log: Log, start_offset: int) -> None:
        self.log = log
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.clean_bytes = 0
        self.dirty_bytes = 0
        # Bytes that will count as dirty once a recovery point covers them.
        self.uncovered_bytes = 0
        # True if `max.compaction.lag.ms` has passed for a record of the dirty part.
        self.is_overdue = False

    @property
    def dirty_ratio(self) -> float:
        """Share of the dirty part in all bytes that can be compacted."""
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """True if the log should be compacted now."""
        if self.dirty_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio

    @property
    def needs_recovery_point(self) -> bool:
        """True if the log would be due if a recovery point covered all of it."""
        dirty_bytes = self.dirty_bytes + self.uncovered_bytes
        total_bytes = self.clean_bytes + dirty_bytes
        ratio_min = self.log.config.min_cleanable_dirty_ratio
        return self.uncovered_bytes > 0 and (
            self.is_overdue or dirty_bytes / total_bytes > ratio_min
        )

    def add(self, segment: Segment, end_offset: int) -> None:
        """Count the next segment, which ends before `end_offset`: as dirty if a recovery point
        covers it and all before it, else as not covered.
        """
        if end_offset > self.log.recovery_point.offset or segment.is_dirty:
            self.uncovered_bytes += segment.size
        elif self.uncovered_bytes == 0:
            self.dirty_bytes += segment.size
            self.end_offset = end_offset

    def maybe_ask_for_recovery_point(self) -> None:
        """Ask for a recovery point in the next round, if the log is due apart from that."""
        self.log.recovery_point.is_wanted = self.needs_recovery_point

    def maybe_ask_to_cover(self) -> None:
        """Ask for a recovery point in the next round, if closed segments are not covered."""
        self.log.recovery_point.is_wanted = self.uncovered_bytes > 0


def find_cleanable(log: Log, limit_offset: int, now_wall_ms: int) -> Cleanable:
    """Find the dirty part: segments that end at or below `limit_offset`, the high watermark."""
    cleanable = Cleanable(log, max(log.compaction.cleaned_offset, log.log_start_offset))
    if _is_out_of_reach(log):
        return cleanable
    latest_ms = now_wall_ms - log.config.min_compaction_lag_ms
    for segment, following in pairwise(log.segments):
        if following.base_offset > limit_offset:
            break
        if following.base_offset <= cleanable.start_offset:
            cleanable.clean_bytes += segment.size
            continue
        if log.config.min_compaction_lag_ms > 0 and newest_ms(segment, now_wall_ms) > latest_ms:
            break
        cleanable.is_overdue = cleanable.is_overdue or _is_overdue(log, segment, now_wall_ms)
        cleanable.add(segment, following.base_offset)
    return cleanable


def find_closed(log: Log, limit_offset: int) -> Cleanable:
    """Find the closed part, for a rule that looks at the whole log: whole segments that end at or
    below `limit_offset` and that a recovery point covers, never the last one.
    """
    closed = Cleanable(log, int(log.log_start_offset))
    if _is_out_of_reach(log):
        return closed
    for segment, following in pairwise(log.segments):
        if following.base_offset > limit_offset:
            break
        closed.add(segment, following.base_offset)
    return closed


def _is_out_of_reach(log: Log) -> bool:
    return log.is_closed or log.flaw_offset >= 0 or log.cut.is_under_way


def _is_overdue(log: Log, segment: Segment, now_wall_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == INT64_MAX:
        return False
    first_ms = segment.load_first_timestamp()
    return 0 <= first_ms < now_wall_ms - lag_ms
