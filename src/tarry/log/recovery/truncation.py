"""Truncation: the log loses its end, and everything derived from it follows.

The recovery point on disk must never lie past the log's end: recovery would take the missing bytes
for damage.  So a cut below it first lowers it, with the next round of recovery points,
and happens then.
"""

from __future__ import annotations

import logging

from tarry.log.log import Log
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.snapshot import read_snapshot, snapshot_path
from tarry.log.segment import Segment, SegmentRow
from tarry.records.batch import NO_TIMESTAMP

logger = logging.getLogger("tarry.log")


def try_truncate(log: Log, offset: int) -> bool:
    """Cut the log at the batch that contains `offset`; epochs, indexes and listener follow.

    False: the recovery point has to be lowered first, which the next round does.  Until then
    nothing may be appended; call again after it.  Durable with the log's next flush.
    """
    assert not log.has_tail
    assert log.log_start_offset <= offset
    # Compaction stays below the high watermark, and what is there is never cut.
    assert log.compaction.end_offset <= offset
    point = log.recovery_point
    if offset >= log.log_end_offset:
        point.limit_offset = -1
        return True
    segment = log.segments_from(offset)[0]
    walk = segment.walk(segment.find(offset, segment.written_size), segment.written_size)
    header = segment.next_header(walk)
    assert header is not None
    end_offset = max(header.base_offset, log.log_start_offset)
    if point.is_under_way or point.offset_max > end_offset:
        point.limit_offset = end_offset
        return False
    logger.info("%s is cut from offset %d to %d", log.directory, log.log_end_offset, end_offset)
    log.cut_after(segment, row_below(segment, walk.batch_position, end_offset), end_offset)
    _restore_listener(log, end_offset)
    point.limit_offset = -1
    return True


def row_below(segment: Segment, position: int, offset: int) -> SegmentRow:
    """Return a segment's row as if it ended at `position`, where the batch at `offset` begins."""
    indexes = segment.loaded()
    row = segment.row()
    row.size = position
    row.offset_entries = indexes.offsets.entry_of_offset(offset - 1) + 1
    row.time_entries = indexes.times.entry_before_offset(offset) + 1
    row.max_timestamp, row.max_timestamp_offset = _largest_timestamp(segment, position, row)
    return row


def _largest_timestamp(segment: Segment, position: int, row: SegmentRow) -> tuple[int, int]:
    """Return the largest timestamp before `position`, with the last offset of its batch."""
    times = segment.loaded().times
    best = (NO_TIMESTAMP, segment.base_offset)
    start = 0
    if row.time_entries > 0:
        entry = row.time_entries - 1
        best = (times.timestamp_at(entry), times.offset_at(entry))
        start = segment.find(best[1], position)
    walk = segment.walk(start, position)
    while (header := segment.next_header(walk)) is not None:
        if header.max_timestamp > best[0]:
            best = (header.max_timestamp, header.last_offset)
    return best


def _restore_listener(log: Log, end_offset: int) -> None:
    """Bring derived state back to where the log now ends."""
    log.listener.reset()
    start = log.segments[0].base_offset
    for offset in reversed(Listing(log.disk, log.directory).snapshot_offsets):
        if offset > end_offset:
            log.disk.remove(snapshot_path(log.directory, offset))
            log.note_name()
            continue
        data = read_snapshot(log.disk, log.directory, offset)
        if data is not None and log.listener.load_snapshot(data):
            start = max(start, offset)
            break
        log.listener.reset()
    for segment in log.segments_from(start):
        if segment.written_size == 0:
            return
        walk = segment.walk(segment.find(start, segment.written_size), segment.written_size)
        while (header := segment.next_header(walk)) is not None:
            if header.base_offset >= start:
                log.listener.on_recovered_batch(header)
