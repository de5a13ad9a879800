"""Appending of copies: a follower takes its leader's batches with their offsets and gaps.  Hot."""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.errors import CorruptData, StorageError
from tarry.log.log import Log
from tarry.log.segment import GAP_SUFFIX, INT32_MAX, Segment, segment_path
from tarry.records.batch import BatchHeader
from tarry.wire.reader import Window


def append_copy(log: Log, window: Window, header: BatchHeader, now_wall_ms: i64) -> i64:
    """Add a batch copied from the leader to the tail, with its own offset and leader epoch.

    Offsets between the log's end and the batch stay missing, as in the leader's log.
    `CorruptData` if the batch cannot follow the log's last one; `StorageError` as in `Log.append`,
    and while a cut is not durable.  Both leave the log unchanged.
    """
    base_offset = header.base_offset
    leader_epoch = header.leader_epoch
    if base_offset < log.log_end_offset or leader_epoch < log.leader_epochs.latest_epoch:
        raise CorruptData(
            f"{log.directory} ends at offset {log.log_end_offset} in leader epoch "
            f"{log.leader_epochs.latest_epoch}; a batch of epoch {leader_epoch} at offset "
            f"{base_offset} cannot follow"
        )
    if not log.has_tail:
        if log.has_undurable_cut:
            raise StorageError(f"{log.directory} was cut, and that is not durable yet")
        log.begin_tail()
    if base_offset > log.log_end_offset:
        last_offset: i64 = base_offset + header.last_offset_delta
        segment = _leave_gap(log, base_offset, last_offset)
        if segment.must_roll(header.size, last_offset, header.max_timestamp, now_wall_ms):
            # `roll` names the new segment by the log's end before the gap.
            log.roll()
        # Nothing fails from here on.
        log.log_end_offset = base_offset
    return log.append(window, header, leader_epoch, now_wall_ms)


def _leave_gap(log: Log, base_offset: i64, last_offset: i64) -> Segment:
    """Prepare a gap before a batch; return the segment that the batch may go to.

    The gap lies inside a segment, even if the segment is new: its base offset is the log's end
    before the gap.  Each segment then begins where the one before ended, and a start does not
    take batches that a crash tore off for a gap.  If relative offsets of 32 bits cannot reach
    over the gap, the new segment begins behind it, with a file beside it that says that.  All
    earlier batches must be durable before.
    """
    if last_offset - log.log_end_offset > INT32_MAX:
        if log.is_dirty or not log.tail.is_empty:
            raise StorageError(
                f"{log.directory} has to be flushed before it leaves out the offsets up to "
                f"{base_offset}"
            )
        log.unflushed.make_name(log.disk, segment_path(log.directory, base_offset) + GAP_SUFFIX)
        segment = log.roll_at(base_offset)
        segment.is_behind_gap = True
    else:
        segment = log.active
    log.allow_gaps()
    return segment
