"""Reading of a snapshot at the beginning of a load, in steps, and whether it counts here.

A snapshot is a hint, derived from the two logs.  If it is damaged, or of another log or epoch, that
is reported, and the companion log S is read from its start.  Hot.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from tarry.base.doors import Disk, LogFile
from tarry.base.errors import CorruptData, StorageError
from tarry.log.compaction.checkpoint import remove_later
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.entries import ENTRY_SIZE
from tarry.schedule.noted_checkpoint import counts
from tarry.schedule.pending import LINK_SIZE
from tarry.schedule.snapshot import SnapshotHeader, SnapshotReader

logger = logging.getLogger("tarry.broker")

SNAPSHOT_FILE: Final = "schedule-snapshot"

# Bytes of a snapshot that one step reads: a millisecond or two.
_READ_BYTES: Final = 512 * 1024


class SnapshotLoad:
    """Reading of a snapshot at a start, in steps."""

    def __init__(self, companion: ReplicatedLog) -> None:
        self._companion = companion
        self._partition = companion.leadership.records
        self._path = snapshot_path(companion)
        self._file: LogFile | None = None
        self._position = 0
        self._reader = SnapshotReader()
        # Number of entries that fill a file of this size.
        self.entry_count = 0
        # True when the snapshot was read, or there is none that counts.
        self.is_over = False
        # True if the disk has refused to read it.
        self.has_failed = False

    @property
    def found(self) -> SnapshotReader | None:
        """Return the reader of the snapshot if it was read whole and counts; None otherwise."""
        return self._reader if self._reader.is_over else None

    @property
    def header(self) -> SnapshotHeader | None:
        """Return what the snapshot speaks of, once that is read and counts; None before, and
        without a snapshot that counts."""
        return self._reader.header

    def end(self) -> None:
        """Read no more."""
        if not self.is_over:
            self._leave()

    def step(self) -> None:
        """Read on.  A damaged snapshot is reported, and `found` is None then."""
        try:
            self._read_on()
        except (CorruptData, StorageError, IndexError, ValueError) as error:
            logger.warning(
                "the snapshot of the scheduled records of %s is left aside, and the log of what "
                "waits is read from its start: %s: %s",
                self._partition.name,
                self._path,
                error,
            )
            self._leave()
            self.has_failed = isinstance(error, StorageError)
            if not self.has_failed:
                # The logs may come to have again what it speaks of, and other things before that.
                with suppress(StorageError):
                    remove_later(self._companion.log.disk, self._path)

    def _read_on(self) -> None:
        file = self._file
        if file is None:
            disk: Disk = self._companion.log.disk
            if not disk.exists(self._path):
                self.is_over = True
                return
            file = self._file = disk.open(self._path)
            self.entry_count = file.size // (ENTRY_SIZE + LINK_SIZE)
        reader = self._reader
        is_behind = reader.is_behind
        data = b"" if is_behind else file.read(self._position, _READ_BYTES)
        self._position += len(data)
        had_header = reader.header is not None
        reader.take(data)
        if not had_header and reader.header is not None:
            self._check(reader.header)
        if reader.is_over:
            file.close()
            self.is_over = True
        elif not data and not is_behind:
            raise CorruptData(f"it ends at {self._position} bytes, in the midst of its blocks")

    def _check(self, header: SnapshotHeader) -> None:
        """Raise `CorruptData` unless the snapshot is of these logs, which reach its offsets."""
        leadership = self._companion.leadership
        if (header.topic_id, header.index) != (leadership.topic_id, leadership.index):
            raise CorruptData("it is of another partition")
        log = self._companion.log
        if header.s_offset > log.written_end_offset or log.has_flaw_before(header.s_offset):
            raise CorruptData(f"the log of what waits ends before offset {header.s_offset}")
        if (
            header.s_offset > log.log_start_offset
            and log.epoch_at(header.s_offset - 1) != header.s_epoch
        ):
            raise CorruptData(f"the log of what waits has another epoch than {header.s_epoch}")
        records = self._partition.log
        if not counts(
            header.checkpoint,
            records.leader_epochs,
            records.log_start_offset,
            records.log_end_offset,
        ):
            raise CorruptData("the partition does not have what had come then")
        c, c_epoch = header.checkpoint.c, header.checkpoint.c_epoch
        if header.unclean_epoch != leadership.row.unclean_epoch:
            # Compaction may have dropped by a later checkpoint what is scheduled again.
            raise CorruptData("it is from before an unclean election")
        if 0 < c <= records.log_start_offset and c_epoch < leadership.row.unclean_epoch:
            raise CorruptData("an unclean election may have lost what had come then")

    def _leave(self) -> None:
        if self._file is not None:
            self._file.close()
        self._reader = SnapshotReader()
        self.is_over = True


def snapshot_path(companion: ReplicatedLog) -> str:
    """Return the path of a companion log's snapshot."""
    return f"{companion.log.directory}/{SNAPSHOT_FILE}"
