"""Checkpoints of a companion log: which bodies one says are done, and whether it counts.  Hot."""

from __future__ import annotations

from bisect import bisect_left

from tarry.log.index.epoch_index import EpochIndex
from tarry.schedule.notes import CheckpointNote


class NotedCheckpoint:
    """Checkpoint with the offset of its note in S."""

    def __init__(self, offset: int, checkpoint: CheckpointNote) -> None:
        self.offset = offset
        self.checkpoint = checkpoint

    def is_exception(self, s_offset: int) -> bool:
        """Return whether the checkpoint names a body as pending."""
        exceptions = self.checkpoint.exceptions
        index = bisect_left(exceptions, s_offset)
        return index < len(exceptions) and exceptions[index] == s_offset

    def is_done(self, due_ms: int, s_offset: int) -> bool:
        """Return whether the checkpoint says that a body was released below its c, or was cancelled
        before its note.  The body must not be a recurring one.
        """
        if s_offset >= self.offset:
            return False
        watermark = self.checkpoint.watermark_of(s_offset)
        if watermark is None or not watermark.covers(due_ms, s_offset):
            return False
        return not self.is_exception(s_offset)


def counts(
    checkpoint: CheckpointNote, epochs: EpochIndex, p_start_offset: int, p_end_offset: int
) -> bool:
    """Return whether the partition has the records below c that a checkpoint speaks of."""
    c = checkpoint.c
    if c > p_end_offset:
        return False
    # P's start passes only records that a committed checkpoint covers, so the epoch of removed
    # records need not be checked.  Compaction may have removed those behind the start as well:
    # then the first known epoch begins behind c.
    if c <= p_start_offset or (epochs.start_offsets and c <= epochs.start_offsets[0]):
        return True
    return epochs.epoch_of(c - 1) == checkpoint.c_epoch
