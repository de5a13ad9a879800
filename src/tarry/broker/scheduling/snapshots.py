"""Snapshots of a partition's schedule: a file beside the companion log S, for the next start.

A snapshot is a hint, derived from the two logs.  It is written under a temporary name, some blocks
a turn, and gets its name once both logs are durable as far as it speaks of them.  If it is damaged,
or of another log or epoch, that is reported, and S is read from its start.  Hot.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from mypy_extensions import i64

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import Disk, LogFile
from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.noted_checkpoint import counts
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.snapshot import SnapshotHeader, SnapshotReader, SnapshotWriter
from tarry.schedule.state import ScheduleState

logger = logging.getLogger("tarry.broker")

SNAPSHOT_FILE: Final = "schedule-snapshot"
_TEMPORARY_SUFFIX: Final = ".tmp"
_NO_FLUSH: Final = -1

# Bytes of a snapshot that one step of a start reads: a millisecond or two.
_READ_BYTES: Final = 512 * 1024
# Blocks that one step writes: up to four thousand entries.
_BLOCKS_PER_STEP: Final = 4

# Offsets by which S has to grow before another snapshot is worth writing: a start reads them in
# half a second.
SNAPSHOT_OFFSETS_MIN: Final = 50_000
# A snapshot has 48 bytes for each pending body.  The next one is written when S has grown by an
# eighth of their number, or after this time.
_GROWN_PART: Final = 8
_AGE_MS: Final = 60_000


class SnapshotSettings:
    """Settings of how often snapshots are written."""

    def __init__(self) -> None:
        # open: tests and the simulation write them more often
        self.offsets_min: int = SNAPSHOT_OFFSETS_MIN


class ScheduleSnapshots:
    """Writing of one partition's snapshots, for as long as this broker leads it in one epoch."""

    def __init__(
        self,
        companion: ReplicatedLog,
        turn: Turn,
        flushes: Flushes,
        settings: SnapshotSettings,
        trouble: DiskTrouble,
    ) -> None:
        self._companion = companion
        self._partition = companion.leadership.records
        self._turn = turn
        self._flushes = flushes
        self._settings = settings
        self._trouble = trouble
        self._path = snapshot_path(companion)
        # Offset of S up to which the last snapshot speaks, and when it was begun.
        self.s_offset = 0
        self._begun_ms = 0
        self._writer: SnapshotWriter | None = None
        self._file: LogFile | None = None
        # True while a written snapshot waits for its flush and for those of both logs, up to
        # `_s_end` and `_p_end`.
        self._is_written = False
        self._flush_id = _NO_FLUSH
        self._s_end = 0
        self._p_end = 0

    def begin(self, s_offset: int) -> None:
        """Begin with the snapshot that a start has used, which speaks of S up to `s_offset`."""
        self.s_offset = s_offset
        self._begun_ms = self._turn.now_ms

    @property
    def is_under_way(self) -> bool:
        """Return whether a snapshot is being written, or waits for its name."""
        return self._writer is not None or self._is_written

    @property
    def has_steps(self) -> bool:
        """Return whether a step would write something, or give a written snapshot its name."""
        return self._writer is not None or (self._is_written and self._is_durable())

    def is_due(self, state: ScheduleState) -> bool:
        """Return whether another snapshot is worth writing, and can be written."""
        if self.is_under_way:
            return False
        companion = self._companion
        if companion.log.flaw_offset >= 0 or self._partition.log.flaw_offset >= 0:
            return False
        if companion.is_behind_epoch() or self._partition.is_behind_epoch():
            # An earlier leader may have released bodies that do not count as committed here yet.
            return False
        grown = companion.high_watermark - self.s_offset
        if grown < self._settings.offsets_min:
            return False
        if not state.can_be_kept:
            return False
        is_old = self._turn.now_ms - self._begun_ms >= _AGE_MS
        return is_old or grown * _GROWN_PART >= state.pending.count

    def step(self, state: ScheduleState) -> None:
        """Go on with a snapshot, or begin one that is due."""
        if self._is_written:
            self._publish()
            return
        if self._writer is None and not self.is_due(state):
            # It was due when it was put in line: what recurs or is damaged may have come since.
            return
        try:
            if self._writer is None:
                self._begin(state)
            self._write_on()
        except StorageError as error:
            self._trouble.report(
                f"the snapshot of the scheduled records of {self._partition.name} cannot be "
                "written, and a start would take longer",
                error,
            )
            self.give_up()

    def give_up(self) -> None:
        """Stop writing the snapshot that is under way."""
        writer, file = self._writer, self._file
        if writer is not None:
            writer.end()
        if file is not None:
            file.close()
        if self.is_under_way:
            with suppress(StorageError):
                self._companion.log.disk.remove(self._path + _TEMPORARY_SUFFIX)
        self._writer = None
        self._file = None
        self._is_written = False
        self._flush_id = _NO_FLUSH

    def _begin(self, state: ScheduleState) -> None:
        companion, partition = self._companion, self._partition
        state.commit_parked(companion.high_watermark)
        c = partition.high_watermark
        state.commit_released(c)
        s_offset = state.snapshot_offset(companion.high_watermark)
        # Set both even if the snapshot fails: the next one is not tried at once.
        self.s_offset = s_offset
        self._begun_ms = self._turn.now_ms
        c_epoch = partition.log.epoch_at(c - 1) if c > 0 else -1
        checkpoint = CheckpointNote(c, c_epoch, state.watermarks.copy(), [])
        header = SnapshotHeader(
            companion.leadership.topic_id,
            companion.leadership.index,
            s_offset,
            companion.log.epoch_at(s_offset - 1),
            checkpoint,
        )
        self._s_end, self._p_end = s_offset, c
        file = companion.log.disk.open(self._path + _TEMPORARY_SUFFIX, create=True)
        self._file = file
        file.truncate(0)
        self._writer = SnapshotWriter(state, header)

    def _write_on(self) -> None:
        writer, file = self._writer, self._file
        assert writer is not None
        assert file is not None
        blocks: list[bytes | memoryview] = []
        while len(blocks) < _BLOCKS_PER_STEP and not writer.is_over:
            blocks.append(writer.next())
        file.append(blocks)
        if writer.has_failed:
            self.give_up()
        elif writer.is_over:
            writer.end()
            self._writer = None
            self._is_written = True
            self._flush_id = self._companion.log.disk.begin_flush([file], [])
            self._flushes.then(self._flush_id, self._on_flushed)

    def _on_flushed(self, flush_id: int) -> None:
        file = self._file
        # The flushed snapshot may have been given up, and another one begun.
        if flush_id == self._flush_id and file is not None:
            self._flush_id = _NO_FLUSH
            self._file = None
            file.close()

    def _is_durable(self) -> bool:
        if self._flush_id != _NO_FLUSH:
            return False
        s_flushed: i64 = self._companion.log.flushed_offset
        p_flushed: i64 = self._partition.log.flushed_offset
        return s_flushed >= self._s_end and p_flushed >= self._p_end

    def _publish(self) -> None:
        """Give a written snapshot its name if both logs are durable as far as it speaks of them."""
        if not self._is_durable():
            return
        self._is_written = False
        try:
            self._companion.log.disk.rename(self._path + _TEMPORARY_SUFFIX, self._path)
        except StorageError as error:
            self._trouble.report(f"{self._path} cannot get its name", error)


class SnapshotLoad:
    """Reading of a snapshot at a start, in steps."""

    def __init__(self, companion: ReplicatedLog) -> None:
        self._companion = companion
        self._partition = companion.leadership.records
        self._path = snapshot_path(companion)
        self._file: LogFile | None = None
        self._position = 0
        self._reader = SnapshotReader()
        # True when the snapshot was read, or there is none that counts.
        self.is_over = False

    @property
    def found(self) -> SnapshotReader | None:
        """Return the reader of the snapshot if it was read whole and counts; None otherwise."""
        return self._reader if self._reader.is_over else None

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
            if not isinstance(error, StorageError):
                # The logs may come to have again what it speaks of, and other things before that.
                with suppress(StorageError):
                    self._companion.log.disk.remove(self._path)

    def _read_on(self) -> None:
        file = self._file
        if file is None:
            disk: Disk = self._companion.log.disk
            if not disk.exists(self._path):
                self.is_over = True
                return
            file = self._file = disk.open(self._path)
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
