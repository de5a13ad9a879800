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

# Logs that one flush at start makes durable: up to three descriptors each stay open until then, and
# some hundred are all that a small process has.
UNSETTLED_LOGS_MAX: Final = 64


class EarlierLog(StorageError):
    """The recovery points on the disk tell of an earlier log of the same directory and topic."""


class Logs:
    """The logs by directory, and what the last life left about them."""

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
        # Logs that were opened or made so far, those that were given up since too.
        self.opened = 0
        self.was_clean = False
        # The recovery points could not be read: what logs lack at their ends cannot be told.
        self.has_lost_points = False
        self._loaded: dict[str, RecoveryPoint] | None = {}
        # Logs whose recovery is not durable yet.
        self._unsettled: list[Log] = []
        # There were recovery points: a log without one was begun since they were written.
        self._has_rows = False
        # The first turn has come: nothing may be read at length any more.
        self._is_started = False

    def load(self) -> None:
        """Read the recovery points and take the clean marker away, durably.

        `StorageError` if the device fails: nothing was changed, and another start may succeed.
        """
        self._is_started = False
        self.was_clean = self.disk.exists(CLEAN_MARKER)
        if self.disk.exists(RECOVERY_POINTS_FILE):
            # A device that cannot read them now says nothing about damage: the start is refused.
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
        # Recovery removes what these recovery points do not need: after a kill -9 their own name
        # may not be durable yet, and older ones that came back would miss it.
        self.disk.flush([], [""])

    def open(
        self, directory: str, topic_id: bytes, config: LogConfig, listener: LogListener | None
    ) -> Log:
        """Open the log of a topic's partition, or make it.

        A directory that says it belongs to another topic is moved out of the way.  So is one whose
        first batches a crash has taken, and, once the broker runs, one that had to be read first:
        the log begins anew then, and is copied from another replica if there is one.
        `topic_id` b"": no topic's log, any directory of that name will do.

        `EarlierLog` if the next round of recovery points has to come before.
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
                # Written by a process that was killed, perhaps not durable.
                identity.file = self.disk.open(identity.path)
            # A row says whose the directory is; else its own file has to.
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
        """Make durable what recovery kept and cut; before the first turn.

        `is_last`: every log that this broker has was opened; one that is opened later is not read.

        A new log has nothing yet, and its names wait for its first flush.  `FlushFailed` is no
        `StorageError`: who opens a log again after one of those must not flush again.
        """
        self._is_started = is_last
        if is_last:
            for directory in list(self._loaded or ()):
                # Given up in the last life, after its recovery points were written.
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
        """Forget a log whose topic was deleted: its files are given up; removing them is the
        caller's.
        """
        log.close()
        self.recovery_points.forget(log)

    def forget_directory(self, directory: str) -> bool:
        """Forget what was loaded about a directory that is given up, which was not opened: a later
        log of its name is another one, though of the same topic.  Return whether there was any.
        """
        row = None if self._loaded is None else self._loaded.pop(directory, None)
        if row is not None:
            self.recovery_points.forget_row(directory, row.identity)
        return row is not None

    def close_cleanly(self) -> None:
        """Save everything that a start would have to find out, then mark the stop as clean.

        All tails are written and flushed before.  Raises `StorageError`; then the next start
        recovers.
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
        """Return true if the recovery point tells all about the log: nothing has to be read."""
        if not listing.base_offsets:
            return True
        if point is None or not point.segments:
            return False
        if listing.base_offsets[-1] != point.segments[-1].base_offset:
            return False
        path = segment_path(listing.directory, listing.base_offsets[-1]) + LOG_SUFFIX
        return self.disk.open(path).size == point.segments[-1].size

    def _lacks_beginning(self, listing: Listing, point: RecoveryPoint | None) -> bool:
        """Return true if the log's first segment is gone: without a row it begins at offset 0.

        Nothing of it was flushed, or else all of it.  As a replica it would seem to have what lies
        before.
        """
        if self.was_clean or not self._has_rows or not listing.base_offsets:
            return False
        return point is not None and not point.segments and listing.base_offsets[0] > 0

    def _move_away(self, directory: str, found: str, reason: str) -> None:
        """Files are in the way: of a deleted topic whose renaming a crash undid, or unread ones.

        They are kept, since it may also be the metadata that was lost.
        """
        away = f"{directory}.{found}-stray"
        while self.disk.exists(away):
            away += "+"
        logger.warning(
            "%s %s and is now called %s; remove it if you do not need it", directory, reason, away
        )
        self.disk.rename(directory, away)
