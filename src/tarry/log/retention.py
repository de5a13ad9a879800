"""Retention: how many of a log's oldest segments are due, by Kafka's rules.

By time a segment is due when its largest record timestamp is older than `retention.ms`; one whose
records have no timestamps goes by the time of its last append.  By size the oldest go while what
is left still reaches `retention.bytes`.  Nothing at or above the high watermark is ever due, and
nothing at all of a topic whose `cleanup.policy` does not say `delete`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.log.segment import UNKNOWN_TIMESTAMP, Segment

if TYPE_CHECKING:
    from tarry.log.log import Log


def segments_due(log: Log, now_wall_ms: int, high_watermark: int) -> int:
    """How many segments may go.  All of them: the active one has to roll first."""
    if not log.config.has_deletion:
        return 0
    deletable = _segments_below(log, high_watermark)
    count = 0
    if log.config.retention_ms >= 0:
        while count < deletable and _is_expired(
            log.segments[count], now_wall_ms, log.config.retention_ms
        ):
            count += 1
    if log.config.retention_bytes >= 0:
        kept_bytes = sum([segment.size for segment in log.segments[count:]])
        while count < deletable:
            kept_bytes -= log.segments[count].size
            if kept_bytes < log.config.retention_bytes:
                break
            count += 1
    return count


def _segments_below(log: Log, high_watermark: int) -> int:
    """Segments that end at or below the high watermark; an empty one is not worth a change."""
    count = 0
    while count + 1 < len(log.segments):
        if log.segments[count + 1].base_offset > high_watermark:
            return count
        count += 1
    if log.active.size > 0 and log.written_end_offset <= high_watermark:
        count += 1
    return count


def _is_expired(segment: Segment, now_wall_ms: int, retention_ms: int) -> bool:
    return now_wall_ms - newest_ms(segment, now_wall_ms) > retention_ms


def newest_ms(segment: Segment, now_wall_ms: int) -> int:
    """The largest timestamp, or without one when the segment was last appended to."""
    if segment.max_timestamp >= 0:
        return segment.max_timestamp
    if segment.modified_wall_ms == UNKNOWN_TIMESTAMP:
        # Found by recovery: its age counts from now on.
        segment.modified_wall_ms = now_wall_ms
    return segment.modified_wall_ms
