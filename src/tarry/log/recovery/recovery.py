"""Recovery: opening a log, trusting what its recovery point covers and scanning what lies beyond.

After a clean stop the recovery point is the log's end and nothing is scanned.  After a crash the
bytes beyond it may be torn, missing or out of order.  The log is kept up to the first batch that is
not sound; the rest is cut and reported.  Below the recovery point everything was durable, so
anything wrong there is damage: it is reported, and nothing is cut.

Recovery runs before the first turn or for a new directory, so it may read at length and flush.
"""

from __future__ import annotations

import logging

from tarry.base.doors import Disk, LogFile
from tarry.base.errors import StorageError
from tarry.log.batch_walk import UNKNOWN_OFFSET, BatchWalk, Flaw
from tarry.log.compaction.checkpoint import COMPACTION_FILE, FoundCompaction, finish_swap
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.index.epoch_index import EPOCH_FILE, EpochIndex, decode_epochs
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tarry.log.log import Log
from tarry.log.open_files import OpenFiles
from tarry.log.recovery.coverage import Coverage
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import EMPTY_SNAPSHOT, RecoveryPoint
from tarry.log.recovery.snapshot import read_snapshot, snapshot_path
from tarry.log.segment import (
    GAP_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    Segment,
    SegmentRow,
    segment_path,
)
from tarry.log.small_files import read_file
from tarry.log.state import LogListener

logger = logging.getLogger("tarry.log")


def recover_log(
    files: OpenFiles,
    listing: Listing,
    config: LogConfig,
    listener: LogListener | None,
    point: RecoveryPoint | None,
    was_clean: bool,
    *,
    identity: LogIdentity,
) -> Log:
    """Open or make a log; `settle_logs` later makes the result durable, once for many logs.

    `point` is None when the recovery point is not known (the file was damaged).
    """
    if not listing.is_there:
        files.disk.make_directory(listing.directory)
    void_generation = point.void_generation if point is not None else 0
    compaction = finish_swap(files.disk, listing, void_generation)
    recovery = _Recovery(
        files,
        listing,
        config,
        listener or LogListener(),
        coverage=Coverage(listing, compaction, point, was_clean=was_clean),
        compaction=compaction,
        identity=identity,
        was_clean=was_clean,
    )
    log = recovery.run(point)
    if point is None or not point.segments:
        # The directory's own name must be durable before a recovery point names it.
        log.unflushed.is_directory_new = True
    if (
        not listing.is_there
        or compaction.has_changed
        or recovery.has_uncovered_names(point)
        or (listing.has_gaps and not was_clean)
    ):
        # After a kill -9 a name may be visible and not durable: flush names along with the bytes.
        log.unflushed.note_name()
    return log


def settle_logs(disk: Disk, logs: list[Log]) -> None:
    """Make the results of recovery durable, with one flush.  Only before the first turn."""
    files: list[LogFile] = []
    directories: dict[str, None] = {}
    dirty = [log for log in logs if log.is_dirty]
    offsets = [log.collect_flush(files, directories) for log in dirty]
    if files or directories:
        disk.flush(files, list(directories))
    for log, offset in zip(dirty, offsets, strict=True):
        log.flushed(offset)


class _Recovery:
    """Recovery of one log."""

    def __init__(
        self,
        files: OpenFiles,
        listing: Listing,
        config: LogConfig,
        listener: LogListener,
        *,
        coverage: Coverage,
        compaction: FoundCompaction,
        identity: LogIdentity,
        was_clean: bool,
    ) -> None:
        self.files = files
        self.disk = files.disk
        self.listing = listing
        self.directory = listing.directory
        self.base_offsets = listing.base_offsets
        self.config = config
        self.listener = listener
        self.coverage = coverage
        self.compaction = compaction
        self.identity = identity
        self.was_clean = was_clean
        self.end_offset = coverage.recovery_offset
        # Reason why the scan ended before the end of a file.
        self.torn_reason = ""
        # True while the only known epoch is that of the log's start and no batch has proved it.
        self.is_start_epoch_alone = False
        # `version` of the epochs if their file has them durably, or -1.
        self.loaded_epochs_version = -1

    def run(self, point: RecoveryPoint | None) -> Log:
        """Take over what the recovery point covers, scan what lies beyond, and return the log."""
        log_start_offset = self.coverage.log_start_offset
        recovery_offset = self.coverage.recovery_offset
        log = self._covered_log(self.coverage.rows)
        if point is not None:
            # A new swap needs a higher generation than the void ones.
            log.compaction.generation = point.void_generation
        self._take_over_compaction(log)
        self._restore_derived(log, point, recovery_offset)
        self._scan(log)
        for base_offset in self.listing.gap_offsets:
            if log.segments_from(base_offset)[0].base_offset != base_offset:
                # The segment is gone.  A segment that begins there later has no gap before it.
                self.disk.remove(segment_path(self.directory, base_offset) + GAP_SUFFIX)
                log.unflushed.note_name()
        log.leader_epochs.truncate_start(log_start_offset)
        log.open_at(log_start_offset, self.end_offset, recovery_offset)
        if point is not None and point.segments:
            log.recovery_point.take_over(point, 0, self.loaded_epochs_version)
            # The committed records were not always written when this broker stopped.
            hint = min(point.high_watermark_hint, self.end_offset)
            log.high_watermark_hint = log.recovery_point.high_watermark_hint = hint
        self._tell(log)
        return log

    def has_uncovered_names(self, point: RecoveryPoint | None) -> bool:
        """Return True if a segment's name in the directory may not be durable yet."""
        if not self.base_offsets:
            return False
        if point is None or not point.segments:
            return True
        newest = point.segments[-1]
        # A segment that was empty at the recovery point need not have had a file.
        covered = newest.base_offset if newest.size > 0 else newest.base_offset - 1
        return not self.was_clean and self.base_offsets[-1] > covered

    def _take_over_compaction(self, log: Log) -> None:
        found = self.compaction.checkpoint
        if found is not None:
            log.compaction.take_over(found.generation, found.cleaned_offset, found.end_offset)
        elif self.compaction.is_damaged:
            logger.warning("%s: %s is damaged", self.directory, COMPACTION_FILE)
            # The checkpoint that replaces this file must still say where gaps may be.
            log.compaction.take_over(log.compaction.generation, 0, self.coverage.gaps_end_offset)

    def _segment(self, base_offset: int) -> Segment:
        segment = Segment(self.files, self.directory, base_offset, self.config)
        segment.has_gaps = base_offset < self.coverage.gaps_end_offset or self.listing.has_gaps
        segment.is_behind_gap = base_offset in self.listing.gap_offsets
        return segment

    # --- What the recovery point covers.

    def _covered_log(self, rows: list[SegmentRow]) -> Log:
        segments = []
        for row in rows:
            segment = self._segment(row.base_offset)
            segment.cover(row)
            segment.has_file = row.base_offset in self.base_offsets
            segments.append(segment)
        log = Log(self.directory, self.config, self.listener, self.files, segments, self.identity)
        log.has_gaps = self.listing.has_gaps
        self.report = log.recovery_report
        for base_offset in dict.fromkeys([*self.base_offsets, *self.listing.index_offsets]):
            if base_offset < rows[0].base_offset:
                # The segment was removed before the crash, and the crash brought its name back.
                self._remove(log, base_offset)
        for segment in segments:
            try:
                self._check_names(segment)
            except Flaw as flaw:
                log.note_flaw(flaw)
                break
        return log

    def _check_names(self, segment: Segment) -> None:
        path = segment.path
        if segment.size > 0 and not segment.has_file:
            raise Flaw(f"{path}{LOG_SUFFIX} is missing", segment.base_offset, 0)
        name = path.rpartition("/")[2]
        if (
            segment.indexes.saved_offsets and name + OFFSET_INDEX_SUFFIX not in self.listing.names
        ) or (segment.indexes.saved_times and name + TIME_INDEX_SUFFIX not in self.listing.names):
            segment.rebuild_indexes()
            self.report.walked_bytes += segment.size

    def _restore_derived(self, log: Log, point: RecoveryPoint | None, recovery_offset: int) -> None:
        """Restore the epochs and the listener's state as of the recovery point."""
        first_offset: int = log.segments[0].base_offset
        self.listener.reset()
        listener_from = first_offset
        for offset in reversed(self.listing.snapshot_offsets):
            if offset > recovery_offset or point is None:
                # The round of this snapshot's recovery point did not finish.
                self.disk.remove(snapshot_path(self.directory, offset))
                log.unflushed.note_name()
        if point is not None and point.segments:
            listener_from = max(first_offset, self._load_snapshot(point))
        epochs_from = first_offset
        epochs = self._load_epochs()
        if epochs is not None:
            if self.was_clean:
                # After a kill -9 the file may be visible and not durable: it is written again.
                self.loaded_epochs_version = epochs.version
            # The epoch of an empty log's start stays: it says where earlier ones ended.
            epochs.truncate_end(max(recovery_offset, self.coverage.log_start_offset + 1))
            if point is not None and point.is_restart:
                # The epochs may be those of the log that was given up for this one.
                epochs.clear()
            log.leader_epochs.restore(epochs)
            self.is_start_epoch_alone = recovery_offset <= self.coverage.log_start_offset
            epochs_from = recovery_offset
        elif recovery_offset > first_offset:
            logger.warning("%s: %s is missing or damaged", self.directory, EPOCH_FILE)
        if min(listener_from, epochs_from) < recovery_offset:
            self._walk_covered(log, listener_from, epochs_from)

    def _load_epochs(self) -> EpochIndex | None:
        if not self.listing.has(EPOCH_FILE):
            return None
        content = read_file(self.disk, f"{self.directory}/{EPOCH_FILE}")
        return decode_epochs(content) if content is not None else None

    def _load_snapshot(self, point: RecoveryPoint) -> int:
        """Load the newest usable snapshot; return the offset up to which it knows the batches."""
        if point.snapshot_offset == EMPTY_SNAPSHOT:
            return point.recovery_offset
        for offset in reversed(self.listing.snapshot_offsets):
            if offset > point.recovery_offset:
                continue
            data = read_snapshot(self.disk, self.directory, offset)
            if data is not None and self.listener.load_snapshot(data):
                return offset
            logger.warning("%s: the snapshot at %d is not usable", self.directory, offset)
            self.listener.reset()
        return 0

    def _walk_covered(self, log: Log, listener_from: int, epochs_from: int) -> None:
        """Read batches below the recovery point again to replace a lost epoch file or snapshot."""
        start = min(listener_from, epochs_from)
        for segment in log.segments_from(start):
            if segment.size == 0:
                # A segment before a wide gap may have no file.
                continue
            flaw_offset = segment.base_offset
            flaw_position = 0
            try:
                if segment.has_file:
                    # A file that cannot be opened is no proof of damage: the start is refused.
                    segment.file()
                position = segment.find(start, segment.size)
                walk = segment.walk(position, segment.size)
                walk.checks_crc = True
                self.report.walked_bytes += segment.size - position
                while (header := segment.next_header(walk)) is not None:
                    flaw_offset = walk.expected_offset
                    flaw_position = walk.position
                    if header.base_offset >= epochs_from:
                        log.leader_epochs.assign(header.leader_epoch, header.base_offset)
                    if header.base_offset >= listener_from:
                        self.listener.on_recovered_batch(header)
            except Flaw as flaw:
                log.note_flaw(flaw)
                return
            except StorageError as error:
                if not segment.is_open:
                    raise
                log.note_flaw(Flaw(str(error), flaw_offset, flaw_position))
                return

    # --- What lies beyond.

    def _scan(self, log: Log) -> None:
        """Read from the recovery point on, segment after segment, while all batches are sound."""
        later = [base for base in self.base_offsets if base > log.active.base_offset]
        while True:
            if not self._scan_segment(log):
                if self.torn_reason:
                    self._cut(log, later, self.torn_reason)
                return
            while later and later[0] < self.end_offset:
                # The write of the tail that began this segment failed, and another tail replaced
                # it.
                self._remove(log, later.pop(0))
            if not later:
                return
            if later[0] > self.end_offset and (
                log.active.base_offset < self.coverage.gaps_end_offset
                or self._is_behind_gap(log, later[0])
            ):
                # Compaction took the last batches of a segment, here or in the log that was copied.
                self.end_offset = later[0]
            if later[0] > self.end_offset:
                self._cut(log, later, f"no segment begins at {self.end_offset}")
                return
            if not self._seal(log):
                return
            segment = self._segment(later.pop(0))
            segment.has_file = True
            segment.reset_indexes()
            log.segment_order.kept.append(segment)

    def _is_behind_gap(self, log: Log, base_offset: int) -> bool:
        """Return True if a segment begins far behind the end of the one before, and has a batch.

        An empty segment proves nothing: batches fetched again may begin at another offset.
        """
        if base_offset not in self.listing.gap_offsets:
            return False
        file = self.disk.open(segment_path(self.directory, base_offset) + LOG_SUFFIX)
        walk = BatchWalk(file, 0, file.size, base_offset)
        walk.checks_crc = True
        walk.leader_epoch_min = self._epoch_min(log)
        return walk.step()

    def _epoch_min(self, log: Log) -> int:
        """Return the least leader epoch that the next batch may have; -1 if any may be right."""
        return -1 if self.is_start_epoch_alone else int(log.leader_epochs.latest_epoch)

    def _seal(self, log: Log) -> bool:
        """Add the last entry to the time index of the last segment, because another follows."""
        try:
            log.active.seal()
        except Flaw as flaw:
            log.note_flaw(flaw)
            return False
        return True

    def _scan_segment(self, log: Log) -> bool:
        """Take over the sound batches of the last segment; return False if others follow them."""
        segment = log.active
        if not segment.has_file:
            return segment.size == 0
        if log.segment_order.flaw_segment is segment:
            return False
        try:
            return self._scan_file(log, segment)
        except Flaw as flaw:
            log.note_flaw(flaw)
            return False

    def _scan_file(self, log: Log, segment: Segment) -> bool:
        file = segment.file()
        if not self.was_clean:
            # The last process may have cut this file without a flush; the bytes could come back.
            log.unflushed.add(segment)
        if file.size == segment.written_size:
            return True
        segment.loaded().must_save = True
        walk = BatchWalk(file, segment.written_size, file.size, self._first_offset(file, segment))
        walk.checks_crc = True
        walk.has_gaps = segment.has_gaps
        walk.leader_epoch_min = self._epoch_min(log)
        log.unflushed.add(segment)
        try:
            while (header := walk.next()) is not None:
                segment.note_recovered(header, walk.batch_position)
                self.end_offset = walk.expected_offset
                if self.is_start_epoch_alone:
                    self.is_start_epoch_alone = False
                    if header.leader_epoch < log.leader_epochs.latest_epoch:
                        # The file is older than a cut that took the batch of this epoch.
                        log.leader_epochs.clear()
                log.leader_epochs.assign(header.leader_epoch, header.base_offset)
                self.listener.on_recovered_batch(header)
                walk.leader_epoch_min = header.leader_epoch
        except StorageError as error:
            # The device fails to read an open file.  Whether it has more batches is unknown.
            log.note_flaw(Flaw(str(error), self.end_offset, segment.written_size))
            return False
        self.report.scanned_bytes += file.size - segment.flushed_size
        self.torn_reason = walk.flaw
        return walk.flaw == ""

    def _first_offset(self, file: LogFile, segment: Segment) -> int:
        """Return the offset at which the next batch must begin.

        The log start, and the recovery point with it, may lie inside a batch: a cut lowers the
        recovery point there first, and a crash may prevent the cut itself.  The batch is then still
        in the file, and its own base offset is the answer.
        """
        if self.end_offset == self.coverage.log_start_offset > segment.base_offset:
            first = BatchWalk(file, segment.written_size, file.size, UNKNOWN_OFFSET)
            if first.step() and first.batch_offset < self.end_offset <= first.last_offset:
                return int(first.batch_offset)
        return self.end_offset

    def _cut(self, log: Log, later: list[int], reason: str) -> None:
        """Cut off everything behind the last sound batch, or note a flaw if it was durable."""
        segment = log.active
        if not self.coverage.may_be_torn(segment.base_offset, self.end_offset):
            log.note_flaw(Flaw(reason, self.end_offset, segment.written_size))
        if log.flaw_offset >= 0:
            return
        if segment.has_file:
            file = segment.file()
            self.report.torn_bytes += file.size - segment.written_size
            if file.size > segment.written_size:
                file.truncate(segment.written_size)
                log.unflushed.add(segment)
        for base_offset in later:
            path = segment_path(self.directory, base_offset) + LOG_SUFFIX
            self.report.torn_bytes += self.disk.open(path).size
            self._remove(log, base_offset)
        self.report.torn_offset = self.end_offset
        self.report.torn_reason = reason

    def _remove(self, log: Log, base_offset: int) -> None:
        """Remove a segment that does not belong to the log."""
        path = segment_path(self.directory, base_offset)
        for suffix in (*SEGMENT_SUFFIXES, GAP_SUFFIX):
            self.disk.remove(path + suffix)
        self.report.removed_segments = (*self.report.removed_segments, path)
        log.unflushed.note_name()

    def _tell(self, log: Log) -> None:
        report = self.report
        if log.flaw_offset >= 0:
            report.flaw_offset = log.flaw_offset
            report.flaw_reason = log.flaw_reason
        if report.torn_bytes:
            logger.warning(
                "%s: a torn tail of %d bytes was cut off at offset %d (%s)",
                self.directory,
                report.torn_bytes,
                report.torn_offset,
                report.torn_reason,
            )
