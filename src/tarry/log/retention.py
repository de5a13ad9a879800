"""Retention: how many of a log's oldest segments are due, by Kafka's rules.

By time a segment is due when its largest record timestamp is older than `retention.ms`; one whose
records have no timestamps goes by the time of its last append.  By size the oldest go while what
is left still reaches `retention.bytes`.  Nothing at or above the high watermark is ever due, and
nothing at all of a topic whose `cleanup.policy` does not say `delete`.
"""

from __future__ import annotations

from tarry.log.config import LogConfig
from tarry.log.segment import UNKNOWN_TIMESTAMP, Segment


def segments_due(
    segments: list[Segment], deletable: int, config: LogConfig, now_wall_ms: int
) -> int:
    """Return how many of the oldest segments may go, `deletable` at most."""
    if not config.has_deletion:
        return 0
    count = 0
    if config.retention_ms >= 0:
        while count < deletable and _is_expired(segments[count], now_wall_ms, config.retention_ms):
            count += 1
    if config.retention_bytes >= 0:
        kept_bytes = sum([segment.size for segment in segments[count:]])
        while count < deletable:
            kept_bytes -= segments[count].size
            if kept_bytes < config.retention_bytes:
                break
            count += 1
    return count


def segments_below(segments: list[Segment], written_end_offset: int, high_watermark: int) -> int:
    """Count segments that end at or below the high watermark, but for an empty last one."""
    count = 0
    while count + 1 < len(segments):
        if segments[count + 1].base_offset > high_watermark:
            return count
        count += 1
    if segments[-1].size > 0 and written_end_offset <= high_watermark:
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
