"""Writer of recovery points, which runs in rounds while the broker serves.

A round takes the logs that have grown enough and has three steps, each begun in a turn and ended by
its flush: (1) write what the recovery points rely on: batches, index entries, snapshots, epochs;
(2) write the new `recovery-points` under another name; (3) rename it.  Only then old files are
removed: segments below the log start, old snapshots.  A crash at any point therefore leaves
recovery points that are true, though they may be older.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import Disk, LogFile
from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.compaction.checkpoint import COMPACTION_FILE
from tarry.log.index.epoch_index import EPOCH_FILE
from tarry.log.log import Log
from tarry.log.recovery.points import (
    EMPTY_SNAPSHOT,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    encode_recovery_points,
    uncovered_row,
)
from tarry.log.recovery.snapshot import remove_old_snapshots, write_snapshot
from tarry.log.recovery.truncation import row_below
from tarry.log.segments import NO_POSITION
from tarry.log.state import EMPTYING, GIVING_UP, LOWERING
from tarry.log.unflushed import FlushMark

logger = logging.getLogger("tarry.log")

# A log that has grown by so many bytes gets a new recovery point at once: a scan of them takes 10
# ms.
RECOVERY_POINT_BYTES: Final = 16 << 20
# Bytes after which a log with `flush.policy=os` gets a new recovery point.  They are more, since
# the recovery point needs a flush of the log, which this policy leaves to the page cache.
RECOVERY_POINT_BYTES_LAZY: Final = 512 << 20
# A log that has changed at all gets a new recovery point after so long.
RECOVERY_POINT_AGE_MS: Final = 60_000
# Logs in one round: each takes about 50 µs of the turn that begins it.
LOGS_PER_ROUND_MAX: Final = 64
# Files in one round; the last log may exceed it.  Each is opened and written in the turn that
# begins the round, and stays open until it is flushed.  A log that rolled often has many.
FILES_PER_ROUND_MAX: Final = 64

_TEMPORARY_SUFFIX: Final = ".tmp"
_NO_FLUSH: Final = -1

_IDLE: Final = 0
_CATCHING_UP: Final = 1
_SAVING: Final = 2
_WRITING: Final = 3
_RENAMING: Final = 4


class SavedLog:
    """Log in a round: its new row, and what the round has written for it."""

    def __init__(self, log: Log, mark: FlushMark, row: RecoveryPoint) -> None:
        self.log = log
        self.mark = mark
        self.row = row
        # Version of the epochs that were written, or -1 if the file has them already.
        self.epochs_version = -1
        self.written_bytes = log.written_bytes
        self.swaps: int = log.compaction.swaps
        self.condemned = len(log.segment_order.condemned)
        # True if the row is in the new file; False if the log was given up before.
        self.is_written = False
        # True if the row says that the log is empty; its files are removed after the round.
        self.is_restart = False


class RecoveryPointWriter:
    """Rounds of recovery points, one at a time."""

    def __init__(self, disk: Disk, trouble: DiskTrouble, recovery_point_bytes: int) -> None:
        self.disk = disk
        self.trouble = trouble
        self.recovery_point_bytes = recovery_point_bytes
        self.files_per_round = FILES_PER_ROUND_MAX
        self.logs: dict[str, Log] = {}
        # Encoded rows by directory, as the file has them, without those of logs given up since.
        self.rows: dict[str, str] = {}
        # Number of logs given up so far, and how many of them the file already lacks.
        self.forgotten = 0
        self._forgotten_in_file = 0
        self._forgotten_in_writing = 0
        # (directory, identity) of each log given up whose row may still be in the file -> the value
        # of `forgotten` at that time.
        self._stale: dict[tuple[str, str], int] = {}
        self._step = _IDLE
        self._queue: list[Log] = []
        self._saved: list[SavedLog] = []
        self._flush_id = _NO_FLUSH
        # Files written for a round and not flushed yet.  An abandoned round leaves them to the next
        # one, which flushes them first: their indexes count them as saved.
        self._unflushed: list[LogFile] = []
        # Reason of the last failure to save a log.
        self._save_failure = ""

    def limit_files(self, files: int) -> None:
        """Set how many files a round may have before it takes no further log."""
        self.files_per_round = files

    def add(self, log: Log, row: RecoveryPoint | None) -> None:
        """Add a log that was opened, with the recovery point that its recovery used."""
        self.logs[log.directory] = log
        if row is not None and row.segments:
            self.rows[log.directory] = row.encode()

    def forget(self, log: Log) -> None:
        """Forget a log that was given up; its row goes with the next round."""
        if self.logs.get(log.directory) is log:
            del self.logs[log.directory]
            row = self.rows.pop(log.directory, None)
            self.forgotten += 1
            if row is not None or any(saved.log is log for saved in self._saved):
                self._stale[log.directory, log.identity.text] = self.forgotten

    def forget_row(self, directory: str, identity: str) -> None:
        """Drop the row of a directory whose log was not opened; the next round writes the file."""
        self.forgotten += 1
        self._stale[directory, identity] = self.forgotten

    def is_stale(self, directory: str, identity: str) -> bool:
        """Return True if the file may still have the row of an earlier log of this directory.

        After a crash, a start would recover a new log of the same topic by that row.
        """
        return (directory, identity) in self._stale

    def begin(self, now_ms: int) -> int:
        """Begin a round if a log is due and no round is under way; return a flush id, or -1."""
        if self._step != _IDLE:
            return _NO_FLUSH
        self._queue = [log for log in self.logs.values() if self.is_due(log, now_ms)]
        for log in self._queue:
            log.recovery_point.tried_ms = now_ms
        if self._unflushed:
            # Flush the left-over files alone: the new round then has its full number of files.
            return self._begin_flush(_CATCHING_UP, [])
        return self._begin_round()

    def on_flushed(self, flush_id: int) -> int:
        """Continue after a successful flush; return the next flush id, or -1 if the round ends."""
        if flush_id != self._flush_id:
            return _NO_FLUSH
        try:
            if self._step == _CATCHING_UP:
                self._unflushed = []
                self._step = _IDLE
                return self._begin_round()
            if self._step == _SAVING:
                self._unflushed = []
                return self._begin_writing()
            if self._step == _WRITING:
                return self._begin_renaming()
        except StorageError as error:
            self.trouble.report("recovery points could not be written", error)
            self._end()
            return _NO_FLUSH
        self._finish()
        return self._begin_round()

    def write_all(self) -> None:
        """Write one round over all changed logs and wait for its flushes; for a stop.

        `StorageError` if a log could not be saved: then the next start has to scan it.
        """
        self._end()
        self._save_failure = ""
        # A failed write leaves bytes that were cut off, and that cut may be all there is to flush.
        changed = [log for log in self.logs.values() if has_changed(log) or log.has_unflushed_bytes]
        directories: dict[str, None] = {}
        for log in changed:
            if len(self._unflushed) + len(directories) >= FILES_PER_ROUND_MAX:
                self._flush(directories)
                directories = {}
            self._save(log, self._unflushed, directories)
        if self._save_failure:
            raise StorageError(self._save_failure)
        self._mark_flawed(self._unflushed, directories)
        self._flush(directories)
        if not self._saved and self.forgotten == self._forgotten_in_file:
            return
        files, renamed = self._write()
        for start in range(0, len(renamed), FILES_PER_ROUND_MAX):
            self.disk.flush([], renamed[start : start + FILES_PER_ROUND_MAX])
        self.disk.flush(files, [])
        self._rename()
        self.disk.flush([], [""])
        self._finish()

    def _mark_flawed(self, files: list[LogFile], directories: dict[str, None]) -> None:
        """Mark logs with a flaw and logs that are being cut: they keep their old rows, and their
        written bytes are flushed all the same.
        """
        for log in self.logs.values():
            if log.flaw_offset < 0 and not log.cut.has_begun:
                continue
            try:
                log.unflushed.mark(log.end_position(), files, directories)
            except (StorageError, CorruptData) as error:
                logger.warning("%s is not flushed: %s", log.directory, error)

    def _flush(self, directories: dict[str, None]) -> None:
        self.disk.flush(self._unflushed, list(directories))
        self._unflushed = []

    def is_due(self, log: Log, now_ms: int) -> bool:
        """Return True if the next round has to take this log."""
        point = log.recovery_point
        if log.cut.state >= LOWERING:
            return has_changed(log)
        if log.written_bytes - point.written_bytes >= self.recovery_point_bytes:
            return True
        if point.is_wanted and has_changed(log):
            return True
        if log.segment_order.condemned or log.coming_start_offset > log.log_start_offset:
            return True
        return has_changed(log) and now_ms - point.tried_ms >= RECOVERY_POINT_AGE_MS

    # --- Steps.

    def _begin_round(self) -> int:
        files = self._unflushed
        directories: dict[str, None] = {}
        logs = 0
        while self._queue and logs < LOGS_PER_ROUND_MAX and len(files) < self.files_per_round:
            self._save(self._queue.pop(0), files, directories)
            logs += 1
        if not self._saved and self.forgotten == self._forgotten_in_file:
            self._end()
            return _NO_FLUSH
        return self._begin_flush(_SAVING, list(directories))

    def _begin_flush(self, step: int, directories: list[str]) -> int:
        """Flush the written files; if the disk refuses, end the round and keep the files."""
        try:
            self._flush_id = self.disk.begin_flush(self._unflushed, directories)
        except StorageError as error:
            self.trouble.report("recovery points could not be written", error)
            self._end()
            return _NO_FLUSH
        self._step = step
        return self._flush_id

    def _save(self, log: Log, files: list[LogFile], directories: dict[str, None]) -> None:
        if log.is_closed or log.has_tail or log.cut.has_begun:
            return
        is_given_up = log.cut.state == GIVING_UP
        if log.flaw_offset >= 0 and not is_given_up:
            return
        try:
            if is_given_up:
                self._saved.append(_save_restart(log, files, directories))
            else:
                self._saved.append(_save_log(log, files, directories))
        except Flaw as flaw:
            log.note_flaw(flaw)
        except StorageError as error:
            self.trouble.report(f"no recovery point for {log.directory}", error)
            self._save_failure = str(error)

    def _begin_writing(self) -> int:
        self._flush_id = self.disk.begin_flush(*self._write())
        self._step = _WRITING
        return self._flush_id

    def _write(self) -> tuple[list[LogFile], list[str]]:
        """Write all rows under another name; return the files and directories to flush."""
        directories: dict[str, None] = {}
        rows = dict(self.rows)
        for saved in self._saved:
            log = saved.log
            if log.is_closed:
                continue
            # A failed write after the row was taken was cut off behind the row's end, so the row
            # holds; any other cut waits for the end of the round (`try_truncate`).
            saved.is_written = True
            log.settle(saved.mark)
            if saved.epochs_version >= 0:
                path = f"{log.directory}/{EPOCH_FILE}"
                self.disk.rename(path + _TEMPORARY_SUFFIX, path)
                directories[log.directory] = None
            rows[log.directory] = saved.row.encode()
        self._forgotten_in_writing = self.forgotten
        file = self.disk.open(RECOVERY_POINTS_FILE + _TEMPORARY_SUFFIX, create=True)
        file.truncate(0)
        file.append([encode_recovery_points([rows[name] for name in sorted(rows)])])
        return [file], list(directories)

    def _begin_renaming(self) -> int:
        self._rename()
        self._flush_id = self.disk.begin_flush([], [""])
        self._step = _RENAMING
        return self._flush_id

    def _rename(self) -> None:
        for saved in self._saved:
            if saved.is_written:
                point = saved.log.recovery_point
                point.offset_max = max(point.offset_max, saved.row.recovery_offset)
        self.disk.rename(RECOVERY_POINTS_FILE + _TEMPORARY_SUFFIX, RECOVERY_POINTS_FILE)

    def _finish(self) -> None:
        """Finish a round whose recovery points are durable: remove files that they do not need."""
        self._forgotten_in_file = self._forgotten_in_writing
        for key in [
            key for key, number in self._stale.items() if number <= self._forgotten_in_file
        ]:
            del self._stale[key]
        for saved in self._saved:
            log = saved.log
            log.recovery_point.is_in_round = False
            if log.is_closed or not saved.is_written:
                continue
            row = saved.row
            self.rows[log.directory] = row.encode()
            self._void_compaction(log, row)
            log.recovery_point.take_over(row, saved.written_bytes, saved.epochs_version)
            log.recovery_point.swaps = saved.swaps
            if saved.is_restart:
                # `try_restart` does the rest.
                log.cut.enter(EMPTYING, row.log_start_offset)
                continue
            named_from = row.segments[0].base_offset
            for segment in log.release_below(row.log_start_offset, named_from, saved.condemned):
                for path in segment.file_paths():
                    if self.disk.exists(path):
                        self.disk.begin_remove(path)
            if row.snapshot_offset >= 0:
                self._remove_old_snapshots(log, row.snapshot_offset)
        self._saved = []
        self._step = _IDLE
        self._flush_id = _NO_FLUSH

    def _void_compaction(self, log: Log, row: RecoveryPoint) -> None:
        """Forget the compaction checkpoint if this row makes it void."""
        if row.void_generation == log.recovery_point.void_generation:
            return
        log.compaction.take_over(row.void_generation, 0, 0)
        try:
            self.disk.remove(f"{log.directory}/{COMPACTION_FILE}")
            log.unflushed.note_name()
        except StorageError as error:
            # The file is void all the same, and the next start removes it.
            logger.warning("%s of %s stays: %s", COMPACTION_FILE, log.directory, error)

    def _remove_old_snapshots(self, log: Log, offset: int) -> None:
        try:
            remove_old_snapshots(self.disk, log.directory, offset)
        except StorageError as error:
            # The next round finds them again.
            logger.warning("old snapshots of %s could not be removed: %s", log.directory, error)

    def _end(self) -> None:
        for saved in self._saved:
            saved.log.recovery_point.is_in_round = False
        self._saved = []
        self._queue = []
        self._step = _IDLE
        self._flush_id = _NO_FLUSH


def has_changed(log: Log) -> bool:
    """Return True if the log differs from its last recovery point."""
    point = log.recovery_point
    if log.cut.state == LOWERING:
        return point.offset_max > log.cut.offset or _voids_compaction(log)
    if log.cut.must_end:
        return log.cut.state == GIVING_UP
    if point.offset < 0 and log.written_end_offset == 0:
        # Nothing was ever written: a start recovers the empty log without a row.
        return False
    return (
        log.written_end_offset != point.offset
        or log.coming_start_offset != point.log_start_offset
        or log.leader_epochs.version != point.epochs_version
        or log.compaction.swaps != point.swaps
        or log.high_watermark_hint != point.high_watermark_hint
    )


def _voids_compaction(log: Log) -> bool:
    """Return True if the next recovery point makes the compaction checkpoint void, because a cut
    takes batches that the checkpoint describes.
    """
    return log.cut.state == LOWERING and log.compaction.end_offset > log.cut.offset


def _save_log(log: Log, files: list[LogFile], directories: dict[str, None]) -> SavedLog:
    """Write the files that a recovery point at the written end needs; name what must be flushed."""
    disk = log.disk
    offset = log.written_end_offset
    point = log.recovery_point
    point.is_wanted = False
    row = RecoveryPoint(log.directory, log.identity.text)
    row.log_start_offset = log.coming_start_offset
    row.recovery_offset = offset
    row.high_watermark_hint = int(log.high_watermark_hint)
    row.void_generation = int(point.void_generation)
    is_lower = log.cut.state == LOWERING
    if is_lower:
        row.log_start_offset = min(row.log_start_offset, int(log.cut.offset))
    if _voids_compaction(log):
        row.void_generation = max(int(log.compaction.generation), row.void_generation + 1)
        # Only the void checkpoint said that the segments before the cut have gaps.
        log.allow_gaps()
    # Index files, snapshot and epochs get their names below, before the flush begins.
    log.unflushed.note_name()
    mark = log.unflushed.mark(log.end_position(), files, directories)
    for segment in log.segments:
        if segment is log.active:
            segment.seal()
        if segment.indexes.has_unsaved():
            segment.indexes.save(files)
    row.segments = [segment.row() for segment in log.segments_from(row.log_start_offset)]
    if is_lower:
        _lower(log, row)
    else:
        _save_snapshot(log, row, files)
    saved = SavedLog(log, mark, row)
    if log.leader_epochs.version != point.epochs_version:
        file = disk.open(f"{log.directory}/{EPOCH_FILE}{_TEMPORARY_SUFFIX}", create=True)
        file.truncate(0)
        file.append([log.leader_epochs.encode()])
        files.append(file)
        saved.epochs_version = log.leader_epochs.version
    point.is_in_round = True
    return saved


def _save_restart(log: Log, files: list[LogFile], directories: dict[str, None]) -> SavedLog:
    """Make a recovery point of an empty log; once it is durable, the log's files do not count."""
    point = log.recovery_point
    offset = int(log.cut.offset)
    row = RecoveryPoint(log.directory, log.identity.text)
    row.log_start_offset = offset
    row.recovery_offset = offset
    row.snapshot_offset = EMPTY_SNAPSHOT
    row.void_generation = max(int(log.compaction.generation), int(point.void_generation) + 1)
    row.segments = [uncovered_row(offset)]
    # The directory's name must be durable first.  A log with a flaw cannot be flushed.
    mark = FlushMark(NO_POSITION, 0, -1)
    if log.flaw_offset < 0:
        log.unflushed.note_name()
        mark = log.unflushed.mark(log.end_position(), files, directories)
    saved = SavedLog(log, mark, row)
    saved.is_restart = True
    point.is_in_round = True
    return saved


def _save_snapshot(log: Log, row: RecoveryPoint, files: list[LogFile]) -> None:
    snapshot = log.listener.take_snapshot()
    if snapshot is None:
        row.snapshot_offset = EMPTY_SNAPSHOT
        return
    row.snapshot_offset = row.recovery_offset
    if row.snapshot_offset != log.recovery_point.snapshot_offset:
        files.append(write_snapshot(log.disk, log.directory, row.recovery_offset, snapshot))


def _lower(log: Log, row: RecoveryPoint) -> None:
    """Lower the row of a recovery point to the offset of the cut that waits for it."""
    offset = log.cut.offset
    segment = log.segments_from(offset)[0]
    row.recovery_offset = offset
    row.segments = [kept for kept in row.segments if kept.base_offset < segment.base_offset]
    position = segment.find(offset, segment.written_size)
    row.segments.append(row_below(segment, position, offset))
