"""Truncation: the log loses its end, or all of it, and the state derived from it follows.

A cut (`try_truncate`) and a restart (`try_restart`) are called once a turn until they return True;
each call does a bounded part.  Whole segments go from the end, so the log is valid after each call.
Nothing may be appended before the cut has ended and a flush has covered it
(`Log.has_undurable_cut`).  Until then a crash may bring back the longer log, all or a part of it,
and never a part of it behind a new batch.

The recovery point on disk must never lie beyond the log's end: recovery would report the missing
bytes as damage.  A cut below it therefore waits until the next round of recovery points has
lowered it.  If the cut reaches below what compaction has done, the same row declares the compaction
checkpoint void.  A restart begins with a row that says that the log is empty.  From then on all
files of the log are left over, whatever part of them a crash leaves.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.log.compaction.checkpoint import remove_later
from tarry.log.log import Log
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.snapshot import read_snapshot, snapshot_path
from tarry.log.segment import Segment, SegmentRow
from tarry.log.state import ASKED, CUTTING, EMPTYING, GIVING_UP, LOWERING, NO_CUT, RESTORING
from tarry.records.batch import NO_TIMESTAMP

logger = logging.getLogger("tarry.log")

# Segments that one call removes, three files each: 2 ms.
SEGMENTS_PER_CALL_MAX: Final = 16
# Batches whose headers one call reads for the listener: 10 ms, interpreted.
BATCHES_PER_CALL_MAX: Final = 1_000


def try_truncate(log: Log, offset: int) -> bool:
    """Cut the log at the batch that contains `offset`; epochs, indexes and listener follow.

    False: call again in the next turn; a recovery point may have to be written first.  Until then
    nothing may be appended.  An offset at or beyond the log's end ends a cut where it stands.  An
    offset below the log start makes the log empty, beginning there.  A cut that has begun ends
    before a lower one begins.  The log's next flush makes the cut durable.
    """
    assert not log.has_tail
    cut = log.cut
    if cut.state in (GIVING_UP, EMPTYING):
        return try_restart(log, int(cut.offset))
    if offset < log.log_start_offset:
        return try_restart(log, offset)
    if cut.state == RESTORING or offset >= log.log_end_offset:
        # An epoch without a batch here may not belong to the history that the log now follows.
        log.leader_epochs.truncate_end(max(offset, int(log.log_end_offset)))
        is_done = _try_end(log)
    elif cut.state == CUTTING:
        is_done = _cut(log, max(offset, int(cut.offset)))
    else:
        if cut.state == NO_CUT:
            cut.enter(ASKED)
        # A compaction that reads beyond the offset ends by itself; no new one begins.
        is_done = log.compaction.target_offset <= offset and _cut(log, offset)
    if is_done and log.log_end_offset > offset:
        cut.enter(ASKED)
        return False
    return is_done


def _cut(log: Log, offset: int) -> bool:
    """Cut as much as one call may, once the recovery point is low enough; see `try_truncate`."""
    cut, point = log.cut, log.recovery_point
    segment = log.segments_from(offset)[0]
    position = segment.find(offset, segment.written_size)
    end_offset = offset
    if position < segment.written_size:
        header = segment.next_header(segment.walk(position, segment.written_size))
        assert header is not None
        end_offset = max(min(offset, int(header.base_offset)), int(log.log_start_offset))
    if cut.state != CUTTING:
        highest = max(point.offset_max, int(log.compaction.end_offset))
        if point.is_in_round or highest > end_offset:
            cut.enter(LOWERING, end_offset)
            return False
        logger.info("%s is cut from offset %d to %d", log.directory, log.log_end_offset, end_offset)
        cut.enter(CUTTING, end_offset)
    _give_up_segments(log, segment)
    if log.active is not segment:
        return False
    log.cut_after(segment, row_below(segment, position, end_offset), end_offset)
    return _try_end(log)


def try_restart(log: Log, offset: int) -> bool:
    """Give the whole log up and begin an empty one at `offset`; see `try_truncate`.

    A restart that has begun ends at its own offset, even if a later call names another one.
    """
    assert not log.has_tail
    cut = log.cut
    if cut.state == NO_CUT:
        if _is_new_at(log, offset):
            log.leader_epochs.clear()
            return True
        cut.enter(ASKED)
    if log.compaction.is_under_way:
        return False
    if cut.state not in (GIVING_UP, EMPTYING):
        logger.info(
            "%s is given up from offset %d to %d and begins anew at %d",
            log.directory,
            log.log_start_offset,
            log.log_end_offset,
            offset,
        )
        cut.enter(GIVING_UP, offset)
    if cut.state == GIVING_UP:
        # `RecoveryPointWriter` first writes a recovery point that says that the log is empty.
        return False
    first = log.segments[0]
    _give_up_segments(log, first)
    if log.active is not first:
        return False
    for snapshot_offset in Listing(log.disk, log.directory).snapshot_offsets:
        log.disk.remove(snapshot_path(log.directory, snapshot_offset))
    for segment in (*log.segments, *log.segment_order.condemned):
        _remove_files(log, segment)
    log.begin_anew(cut.offset)
    log.listener.reset()
    cut.enter(NO_CUT)
    return True


def _is_new_at(log: Log, offset: int) -> bool:
    """Return True if the log is empty at `offset` already, and has no flaw."""
    return (
        log.log_start_offset == offset
        and log.log_end_offset == offset
        and log.active.base_offset == offset
        and log.flaw_offset < 0
    )


def _give_up_segments(log: Log, kept: Segment) -> None:
    """Remove some segments behind `kept` from the log's end.

    A segment behind a gap is removed alone.  Until its removal is durable, the segment before it
    must not become shorter: if a crash brought it back, the gap would seem longer.
    """
    for _ in range(SEGMENTS_PER_CALL_MAX):
        segment = log.active
        if segment is kept or log.unflushed.has_gap_cut:
            return
        _remove_files(log, segment)
        log.drop_last()


def _remove_files(log: Log, segment: Segment) -> None:
    """Remove a segment's files; a segment of the same name may be made at once."""
    for path in segment.file_paths():
        if remove_later(log.disk, path):
            log.unflushed.note_name()


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
    """Return the largest timestamp before `position`, with the last offset of its batch.

    The time index has it up to the last batch in the offset index; the batches behind are read.
    """
    indexes = segment.loaded()
    best = (NO_TIMESTAMP, int(segment.base_offset))
    start = 0
    if row.time_entries > 0:
        entry = row.time_entries - 1
        best = (int(indexes.times.timestamp_at(entry)), int(indexes.times.offset_at(entry)))
    if row.offset_entries > 0:
        start = int(indexes.offsets.position_at(row.offset_entries - 1))
    if start == position:
        return best
    walk = segment.walk(start, position)
    while (header := segment.next_header(walk)) is not None:
        if header.max_timestamp > best[0]:
            best = (int(header.max_timestamp), int(header.last_offset))
    return best


def _try_end(log: Log) -> bool:
    """Bring derived state to the log's new end, step by step; return True when that is done."""
    cut = log.cut
    if cut.state == CUTTING:
        cut.enter(RESTORING, _begin_restoring(log))
    if cut.state == RESTORING and not _restore(log):
        return False
    if cut.state != NO_CUT:
        cut.enter(NO_CUT)
    return True


def _begin_restoring(log: Log) -> int:
    """Remove snapshots behind the end; return the offset from which batches must be read."""
    end_offset = int(log.log_end_offset)
    offsets = Listing(log.disk, log.directory).snapshot_offsets
    while offsets and offsets[-1] > end_offset:
        log.disk.remove(snapshot_path(log.directory, offsets.pop()))
        log.unflushed.note_name()
    if log.listener.truncate(end_offset):
        return end_offset
    for offset in reversed(offsets):
        data = read_snapshot(log.disk, log.directory, offset)
        if data is not None and log.listener.load_snapshot(data):
            return offset
    log.listener.reset()
    return int(log.segments[0].base_offset)


def _restore(log: Log) -> bool:
    """Report some more batches to the listener; return True if it has all of them."""
    cut = log.cut
    left = BATCHES_PER_CALL_MAX
    while cut.offset < log.log_end_offset:
        segment = log.segments_from(cut.offset)[0]
        start = int(cut.offset)
        if segment.written_size > 0:
            position = segment.find(start, segment.written_size)
            walk = segment.walk(position, segment.written_size)
            while (header := segment.next_header(walk)) is not None:
                if header.base_offset >= start:
                    log.listener.on_recovered_batch(header)
                cut.offset = header.last_offset + 1
                left -= 1
                if left == 0:
                    return False
        cut.offset = _end_of(log, segment)
    return True


def _end_of(log: Log, segment: Segment) -> int:
    """Return where the segment behind `segment` begins, or the log's end."""
    following = log.segments_from(segment.base_offset)[1:2]
    return int(following[0].base_offset if following else log.log_end_offset)
