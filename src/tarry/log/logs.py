"""Logs of one broker: opened over shared descriptors, stopped cleanly, recovery points kept.

How a broker drives it: `load` and then `open` for each log, `settle` once, all before the first
turn; `open` for new logs in turns; `recovery_points.begin` every few seconds, and its `on_flushed`
for the flush ids that it gives; `close_cleanly` when the last answer has left.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import Disk
from tarry.base.errors import FlushFailed, StorageError
from tarry.log.config import LogConfig
from tarry.log.identity import IDENTITY_FILE, LogIdentity
from tarry.log.log import Log
from tarry.log.open_files import OPEN_FILES_MAX, OpenFiles
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.point_writer import RECOVERY_POINT_BYTES, RecoveryPointWriter
from tarry.log.recovery.points import (
    CLEAN_MARKER,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
)
from tarry.log.recovery.recovery import recover_log, settle_logs
from tarry.log.segment import LOG_SUFFIX, segment_path
from tarry.log.small_files import write_file
from tarry.log.state import LogListener

logger = logging.getLogger("tarry.log")

# Logs that one flush at start makes durable.  Each holds up to three descriptors until then, and
# a small process has only some hundred.
UNSETTLED_LOGS_MAX: Final = 64


class EarlierLog(StorageError):
    """The recovery points on the disk describe an earlier log of the same directory and topic."""


class Logs:
    """The logs by directory, and the recovery points and clean marker of the last process."""

    def __init__(
        self,
        disk: Disk,
        open_files_max: int = OPEN_FILES_MAX,
        recovery_point_bytes: int = RECOVERY_POINT_BYTES,
        directory: str = "the log directory",
    ) -> None:
        self.disk = disk
        self.files = OpenFiles(disk, open_files_max)
        self.trouble = DiskTrouble(disk, logger, directory)
        self.recovery_points = RecoveryPointWriter(disk, self.trouble, recovery_point_bytes)
        # Number of logs opened or made so far, including those given up since.
        self.opened = 0
        self.was_clean = False
        # True if the recovery points could not be read: batches that a log lost at its end stay
        # unnoticed.
        self.has_lost_points = False
        self._loaded: dict[str, RecoveryPoint] | None = {}
        # Logs whose recovery is not durable yet.
        self._unsettled: list[Log] = []
        # True if recovery points were read: a log without one was made after they were written.
        self._has_rows = False
        # True once the first turn may run: no log may be read at length any more.
        self._is_started = False

    def load(self) -> None:
        """Read the recovery points and remove the clean marker, durably.

        `StorageError` if the device fails: nothing was changed, and another start may succeed.
        """
        self._is_started = False
        self.was_clean = self.disk.exists(CLEAN_MARKER)
        if self.disk.exists(RECOVERY_POINTS_FILE):
            # A failing read is no sign of damage: it raises, and the start is refused.
            file = self.disk.open(RECOVERY_POINTS_FILE)
            self._loaded = decode_recovery_points(file.read(0, file.size))
            file.close()
            self._has_rows = self._loaded is not None
            self.has_lost_points = self._loaded is None
            if self._loaded is None:
                logger.error(
                    "%s is damaged: all logs are read from their start", RECOVERY_POINTS_FILE
                )
        if self.was_clean:
            self.disk.remove(CLEAN_MARKER)
        # Recovery removes files that these recovery points do not name.  After a kill -9 the rename
        # of the recovery points may not be durable: older ones could come back and miss these
        # files.
        self.disk.flush([], [""])

    def open(
        self, directory: str, topic_id: bytes, config: LogConfig, listener: LogListener | None
    ) -> Log:
        """Open the log of a topic's partition, or make it.

        A directory of another topic id is renamed and kept.  The same happens to a directory whose
        first batches a crash has lost, and, once the broker runs, to one that would have to be read
        first.  The log then begins empty and is copied from another replica if there is one.
        If `topic_id` is b"", the log is of no topic and any directory of that name is accepted.

        `EarlierLog` if the next round of recovery points must come first.
        """
        identity = LogIdentity(directory, topic_id)
        if self._is_started and self.recovery_points.is_stale(directory, identity.text):
            raise EarlierLog(f"{directory}: an earlier replica is still in the recovery points")
        point = self._point_of(directory, identity.text)
        listing = Listing(self.disk, directory)
        identity.is_missing = bool(topic_id) and not listing.has(IDENTITY_FILE)
        is_covered = point is not None and len(point.segments) > 0
        if topic_id and listing.has(IDENTITY_FILE):
            if not self.was_clean:
                # A killed process wrote the file, so it may not be durable.
                identity.file = self.disk.open(identity.path)
            # A row of the recovery points says whose directory it is; without one its file does.
            found = identity.text if is_covered else identity.read(self.disk)
            identity.is_missing = found == ""
            reason = ""
            if found not in ("", identity.text):
                reason = f"belongs to topic id {found}"
            elif self._is_started and not self._is_known(listing, point):
                reason = "was not read when this broker started"
            elif self._lacks_beginning(listing, point):
                reason = f"lacks the batches before offset {listing.base_offsets[0]}"
            if reason:
                self._move_away(directory, found, reason)
                point = RecoveryPoint(directory, identity.text)
                identity = LogIdentity(directory, topic_id)
                listing = Listing(self.disk, directory)
        log = recover_log(
            self.files, listing, config, listener, point, self.was_clean, identity=identity
        )
        self.recovery_points.add(log, point)
        self.opened += 1
        if log.has_unflushed_bytes and not self._is_started:
            self._unsettled.append(log)
            if len(self._unsettled) == UNSETTLED_LOGS_MAX:
                self._settle()
        return log

    def settle(self, *, is_last: bool = True) -> None:
        """Make the result of recovery durable, before the first turn.

        `is_last`: every log of this broker was opened; a log opened later is not read.

        A new log is empty, and its names wait for its first flush.  `FlushFailed` is no
        `StorageError`: code that opens a log again after a `StorageError` must not flush again.
        """
        self._is_started = is_last
        if is_last:
            for directory in list(self._loaded or ()):
                # The last process gave the directory up after it wrote these recovery points.
                if not self.disk.exists(directory):
                    self.forget_directory(directory)
        self._settle()

    def _settle(self) -> None:
        try:
            settle_logs(self.disk, self._unsettled)
        except StorageError as error:
            raise FlushFailed(
                f"a flush failed ({error}); what was not flushed may be lost; check the disk and "
                "start the broker again"
            ) from None
        self._unsettled = []

    def forget(self, log: Log) -> None:
        """Forget a log whose topic was deleted, and close its files; the caller removes them."""
        log.close()
        self.recovery_points.forget(log)

    def forget_directory(self, directory: str) -> bool:
        """Forget the loaded row of a directory that was never opened and is given up; return True
        if there was one.  A later log of that name is another one, even if it is of the same topic.
        """
        row = None if self._loaded is None else self._loaded.pop(directory, None)
        if row is not None:
            self.recovery_points.forget_row(directory, row.identity)
        return row is not None

    def close_cleanly(self) -> None:
        """Save everything that a start would have to find out, then mark the stop as clean.

        The caller has written and flushed all tails.  Raises `StorageError`; the next start then
        recovers the logs.
        """
        self.recovery_points.write_all()
        write_file(self.disk, CLEAN_MARKER, b"")

    def _point_of(self, directory: str, identity: str) -> RecoveryPoint | None:
        if self._loaded is None:
            return None
        # Each row is used once: a later log of this name is another one.
        row = self._loaded.pop(directory, None)
        if row is None or row.identity != identity:
            return RecoveryPoint(directory, identity)
        return row

    def _is_known(self, listing: Listing, point: RecoveryPoint | None) -> bool:
        """Return True if the recovery point covers the whole log: nothing has to be read."""
        if not listing.base_offsets:
            return True
        if point is None or not point.segments:
            return False
        if listing.base_offsets[-1] != point.segments[-1].base_offset:
            return False
        path = segment_path(listing.directory, listing.base_offsets[-1]) + LOG_SUFFIX
        return self.disk.open(path).size == point.segments[-1].size

    def _lacks_beginning(self, listing: Listing, point: RecoveryPoint | None) -> bool:
        """Return True if the log has no row and its first segment does not begin at offset 0.

        A log without a row began at offset 0 after the recovery points were written, so a crash
        took its first segment.  As a replica the log would claim to have the records before.
        """
        if self.was_clean or not self._has_rows or not listing.base_offsets:
            return False
        return point is not None and not point.segments and listing.base_offsets[0] > 0

    def _move_away(self, directory: str, found: str, reason: str) -> None:
        """Rename a directory in the way: a deleted topic's, back after a crash, or an unread one.

        The files are kept, because the metadata may be what was lost.
        """
        away = f"{directory}.{found}-stray"
        while self.disk.exists(away):
            away += "+"
        logger.warning(
            "%s %s and is now called %s; remove it if you do not need it", directory, reason, away
        )
        self.disk.rename(directory, away)
