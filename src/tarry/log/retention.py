"""Retention: how many of a log's oldest segments are due, by Kafka's rules.

By time a segment is due when its largest record timestamp is older than `retention.ms`; if its
records have no timestamps, the time of its last append counts.  In a log of released records, which
may have been sent long ago, the later of the two counts: they stay for `retention.ms` after their
release.  By size the oldest segments are due while the rest still reaches `retention.bytes`.  No
segment with offsets at or above the high watermark is ever due, and none of a topic whose
`cleanup.policy` lacks `delete`.
"""

from __future__ import annotations

import logging

from tarry.base.errors import StorageError
from tarry.log.log import Log
from tarry.log.segment import UNKNOWN_TIMESTAMP, Segment

logger = logging.getLogger("tarry.log")


def delete_old_segments(
    log: Log, now_wall_ms: int, high_watermark: int, *, has_releases: bool = False
) -> int:
    """Let the log begin behind the segments that are due; return how many these are.

    The next recovery point, which is due at once, gives them up.  `has_releases`: scheduled records
    may have waited long before they were appended.
    """
    if log.has_tail or log.flaw_offset >= 0:
        return 0
    count = _segments_due(log, now_wall_ms, high_watermark, has_releases)
    if count == 0:
        return 0
    if count == len(log.segments):
        try:
            log.roll()
        except StorageError as error:
            if log.flaw_offset < 0:
                # The segment's indexes cannot be read now; the next check tries again.
                logger.warning("%s: old segments cannot be deleted yet: %s", log.directory, error)
            return 0
    segments = log.segments
    start = segments[count].base_offset
    if start <= log.coming_start_offset:
        return 0
    count -= len(segments) - len(log.segments_from(log.coming_start_offset))
    logger.info("%s: %d segments below offset %d expired", log.directory, count, start)
    log.ask_for_start(start)
    return count


def _segments_due(log: Log, now_wall_ms: int, high_watermark: int, has_releases: bool) -> int:
    """Count the oldest segments that are due; the last one may be among them."""
    config = log.config
    if not config.has_deletion:
        return 0
    segments = log.segments
    deletable = _deletable(log, high_watermark)
    count = 0
    if config.retention_ms >= 0:
        latest_ms = now_wall_ms - config.retention_ms
        while count < deletable:
            segment = segments[count]
            counted_ms = newest_ms(segment, now_wall_ms)
            if has_releases:
                counted_ms = max(counted_ms, appended_ms(segment, now_wall_ms))
            if counted_ms >= latest_ms:
                break
            count += 1
    if config.retention_bytes >= 0:
        kept_bytes = sum([segment.size for segment in segments[count:]])
        while count < deletable:
            kept_bytes -= segments[count].size
            if kept_bytes < config.retention_bytes:
                break
            count += 1
    return count


def _deletable(log: Log, high_watermark: int) -> int:
    """Count segments that end at or below the high watermark, without an empty last one."""
    segments = log.segments
    count = 0
    while count + 1 < len(segments):
        if segments[count + 1].base_offset > high_watermark:
            return count
        count += 1
    if log.active.size > 0 and log.written_end_offset <= high_watermark:
        count += 1
    return count


def newest_ms(segment: Segment, now_wall_ms: int) -> int:
    """Return the largest timestamp; without one, the time of the last append."""
    if segment.max_timestamp >= 0:
        return segment.max_timestamp
    return appended_ms(segment, now_wall_ms)


def appended_ms(segment: Segment, now_wall_ms: int) -> int:
    """Return the time of the segment's last append, in calendar ms."""
    if segment.modified_wall_ms == UNKNOWN_TIMESTAMP:
        # Recovery found the segment and does not know the time: its age counts from now on.
        segment.modified_wall_ms = now_wall_ms
    return segment.modified_wall_ms
