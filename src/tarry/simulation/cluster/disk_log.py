"""Logs of replicas as they lie on simulated disks, read without the brokers' own code."""

from __future__ import annotations

from tarry.log.log import Log
from tarry.log.segment import LOG_SUFFIX
from tarry.records.batch import HEADER_SIZE, BatchHeader
from tarry.simulation.disk import SimulatedDisk


class DiskBatch:
    """Batch as it lies on a disk."""

    def __init__(self, header: BatchHeader, data: bytes) -> None:
        self.base_offset = int(header.base_offset)
        self.end_offset = int(header.last_offset) + 1
        self.leader_epoch = int(header.leader_epoch)
        self.data = data


class DiskLog:
    """Log of one replica as it was seen last: its batches by base offset, in order."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.start_offset = int(log.log_start_offset)
        self.end_offset = int(log.log_start_offset)
        self.flushed_offset = 0
        self.high_watermark = 0
        # The last leader epoch in which the replica was seen to lead.
        self.leader_epoch = -1
        self.batches: dict[int, DiskBatch] = {}
        # True if the log was cut, and its producers' state was not checked since.
        self.has_unseen_cut = False
        # Whether the replica followed at the last look; and whether a crash could then mix two
        # histories in its log.
        self.was_following = False
        self.may_be_mixed = False
        # Count of committed batches, from the first on, that this log was found to have.
        self.verified = 0
        # File of the last segment, and the position at which its reading goes on.
        self._path = ""
        self._position = 0

    @property
    def last_epoch(self) -> int:
        """Return the leader epoch of the last batch; -1 without one."""
        return next(reversed(self.batches.values())).leader_epoch if self.batches else -1

    def cut(self, end_offset: int) -> None:
        """Forget the batches that reach beyond this offset."""
        self.batches = {
            base: batch for base, batch in self.batches.items() if batch.end_offset <= end_offset
        }
        self.end_offset = end_offset
        self.high_watermark = min(self.high_watermark, end_offset)
        self.verified = 0
        self._path = ""

    def content_from(self, start_offset: int) -> list[bytes]:
        """Return the batches that reach beyond this offset."""
        return [batch.data for batch in self.batches.values() if batch.end_offset > start_offset]

    def is_newly_mixed(self, disk: SimulatedDisk) -> bool:
        """Return whether a crash may mix two histories in a follower's log, since this look."""
        before = self.may_be_mixed
        self.may_be_mixed = disk.is_written_behind_cut(self.log.active.path + LOG_SUFFIX)
        return self.may_be_mixed and not before and self.was_following

    def read(self, disk: SimulatedDisk) -> list[DiskBatch]:
        """Read and return what was written since the last look."""
        found: list[DiskBatch] = []
        log = self.log
        for segment in log.segments_from(self.end_offset):
            path = segment.path + LOG_SUFFIX
            start = self._position if path == self._path else 0
            content = disk.content(path, start)[: int(segment.written_size) - start]
            position = 0
            while position + HEADER_SIZE <= len(content):
                header = BatchHeader(content, position)
                size = int(header.size)
                # The first batch may begin before the log does.  A batch without records was
                # emptied by compaction; no leader has written it so.
                if header.last_offset >= self.end_offset and size > HEADER_SIZE:
                    batch = DiskBatch(header, content[position : position + size])
                    found.append(batch)
                    self.batches[batch.base_offset] = batch
                position += size
            self._path = path
            self._position = start + position
        self.end_offset = int(log.written_end_offset)
        return found
