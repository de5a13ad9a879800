"""Verification: everything in one log's directory read and compared, on a broker that is stopped.

It checks each batch's CRC, records and offsets, and both indexes against the batches.  It compares
snapshots, epochs, the compaction checkpoint and the recovery point with the files.  Nothing is
changed.  There are two kinds of findings: damage, which loses or hides durable data, and notes
about what a start after a crash repairs by itself.  One kind of damage cannot be seen: no CRC
covers the base offset, so a changed one inside a gap of compaction looks sound.

A dry run of recovery would not do.  Recovery trusts what the recovery point covers without reading
it and stops at the first flaw; a report has to read everything and continue behind each flaw.  Both
use one set of rules, `Coverage`, to tell damage from the results of a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.doors import Disk
from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.checkpoint import (
    COMPACTION_FILE,
    FoundCompaction,
    cleaned_name,
    read_compaction,
)
from tarry.log.identity import IDENTITY_FILE, LogIdentity
from tarry.log.index.epoch_index import EPOCH_FILE, EpochIndex, decode_epochs
from tarry.log.index.index_check import IndexCheck
from tarry.log.index.offset_index import OffsetIndex
from tarry.log.recovery.coverage import Coverage
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint
from tarry.log.recovery.resumption import resume_behind
from tarry.log.recovery.snapshot import read_snapshot, snapshot_path
from tarry.log.segment import LOG_SUFFIX, SegmentRow, segment_path
from tarry.log.small_files import read_file
from tarry.records.batch import BatchHeader
from tarry.records.record import decode_records

# Decoded records of one batch may not exceed this; message.max.bytes is far below it.
BATCH_BYTES_MAX: Final = 1 << 30

# Number of offsets that one segment holds at most.
_MORE: Final = 1 << 31

# Findings kept of one log: a damaged one may have as many as it has batches.
FINDINGS_MAX: Final = 20


class Finding:
    """Finding in one file; `position` and `offset` are -1 if they do not apply."""

    def __init__(
        self, path: str, problem: str, *, is_damage: bool, offset: int = -1, position: int = -1
    ) -> None:
        self.path = path
        self.problem = problem
        self.is_damage = is_damage
        self.offset = offset
        self.position = position


class VerifiedLog:
    """Findings of a verification in one directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.segments = 0
        self.batches = 0
        self.records = 0
        self.size_bytes = 0
        self.start_offset = -1
        self.end_offset = -1
        self.findings: list[Finding] = []
        # Number of findings beyond FINDINGS_MAX, which were dropped.
        self.left_out = 0

    @property
    def is_damaged(self) -> bool:
        return any(one.is_damage for one in self.findings)

    def add(self, finding: Finding) -> None:
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)
        else:
            self.left_out += 1


def verify_log(
    disk: Disk,
    directory: str,
    point: RecoveryPoint | None,
    *,
    was_clean: bool,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> VerifiedLog:
    """Read the whole log.  `point` is its recovery point, None if that is not known;
    `on_bytes` is called again and again with the bytes read since its last call."""
    verification = _Verification(disk, directory, point, on_bytes, was_clean=was_clean)
    verification.run()
    return verification.found


class _Verification:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        point: RecoveryPoint | None,
        on_bytes: Callable[[int], None],
        *,
        was_clean: bool,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.point = point
        self.was_clean = was_clean
        self.on_bytes = on_bytes
        self.found = VerifiedLog(directory)
        self.bases: list[int] = []
        # True if the log ends in a tail that a crash has torn.
        self.is_torn = False
        self.listing = Listing(disk, directory)
        self.compaction = self._read_compaction()
        self.coverage = Coverage(self.listing, self.compaction, point, was_clean=was_clean)
        self.epochs: EpochIndex | None = None
        # Below this offset everything was durable when the broker stopped.
        self.sure_offset = point.recovery_offset if point is not None else 0
        self.expected_offset = -1
        # The last leader epoch beyond the recovery point, where epochs must not decrease.
        self.leader_epoch_min = -1

    def run(self) -> None:
        self._read_epochs()
        self._check_identity()
        names = self._segment_names()
        rows = {row.base_offset: row for row in self._rows()}
        for base_offset, row in rows.items():
            if row.size > 0 and base_offset not in names:
                self._damage(
                    f"{segment_path(self.directory, base_offset)}{LOG_SUFFIX}",
                    f"missing: the recovery point names it with {row.size} bytes",
                    offset=base_offset,
                )
        self.bases = sorted(names)
        for base_offset in self.bases:
            if not self._check_segment(base_offset, names[base_offset], rows.get(base_offset)):
                break
        if self.found.start_offset < 0:
            self.found.start_offset = self.found.end_offset = self.coverage.log_start_offset
        self._check_end()
        self._check_snapshots()

    def _damage(self, path: str, problem: str, *, offset: int = -1, position: int = -1) -> None:
        self.found.add(Finding(path, problem, is_damage=True, offset=offset, position=position))

    def _note(self, path: str, problem: str, *, offset: int = -1, position: int = -1) -> None:
        self.found.add(Finding(path, problem, is_damage=False, offset=offset, position=position))

    # --- Small files

    def _read_compaction(self) -> FoundCompaction:
        void_generation = 0 if self.point is None else self.point.void_generation
        try:
            found = read_compaction(self.disk, self.listing, void_generation)
        except StorageError:
            found = FoundCompaction()
            found.is_damaged = True
        if found.is_damaged:
            path = f"{self.directory}/{COMPACTION_FILE}"
            self._damage(path, "cannot be read, or its CRC does not match")
        return found

    def _read_epochs(self) -> None:
        if not self.listing.has(EPOCH_FILE):
            return
        path = f"{self.directory}/{EPOCH_FILE}"
        content = read_file(self.disk, path)
        self.epochs = None if content is None else decode_epochs(content)
        if self.epochs is None:
            # A start writes the file in place, so a crash may have left a part of it.
            problem = "cannot be read, or its CRC does not match; a start makes it anew"
            self.found.add(Finding(path, problem, is_damage=self.was_clean))

    def _check_identity(self) -> None:
        if not self.listing.has(IDENTITY_FILE):
            return
        identity = LogIdentity(self.directory, b"")
        if identity.read(self.disk) == "":
            # The file is durable with the log's first bytes, which a recovery point then covers.
            is_damage = self.was_clean or self.sure_offset > 0
            problem = "cannot be read, or its CRC does not match"
            self.found.add(Finding(identity.path, problem, is_damage=is_damage))

    def _check_snapshots(self) -> None:
        for offset in self.listing.snapshot_offsets:
            if read_snapshot(self.disk, self.directory, offset) is not None:
                continue
            path = snapshot_path(self.directory, offset)
            if offset <= self.sure_offset:
                self._damage(path, "its CRC does not match; a start reads the log instead")
            else:
                self._note(path, "was not finished; a start removes it")
        wanted = self.point.snapshot_offset if self.point is not None else -1
        if wanted >= 0 and wanted not in self.listing.snapshot_offsets:
            path = snapshot_path(self.directory, wanted)
            self._damage(
                path, "missing: the recovery point names it; a start reads the log instead"
            )

    # --- Segments

    def _rows(self) -> list[SegmentRow]:
        """Return the known rows of segments; without a recovery point those of compacted ones."""
        checkpoint = self.compaction.checkpoint
        if self.point is None and checkpoint is not None:
            return checkpoint.rows
        return self.coverage.rows

    def _segment_names(self) -> dict[int, str]:
        """Return the file names of the segments that count, by base offset.

        An unfinished compaction may have files that a start will rename, and files that they
        replace.
        """
        first = self.coverage.rows[0].base_offset
        names = {
            base: f"{base:020d}{LOG_SUFFIX}" for base in self.listing.base_offsets if base >= first
        }
        checkpoint = self.compaction.checkpoint
        if checkpoint is None:
            return names
        for base in checkpoint.replaced(self.listing.base_offsets):
            names.pop(base, None)
        for row in checkpoint.rows:
            base = row.base_offset
            name = cleaned_name(f"{base:020d}{LOG_SUFFIX}", checkpoint.generation)
            if self.listing.has(name):
                names[base] = name
        return names

    def _check_segment(self, base_offset: int, name: str, row: SegmentRow | None) -> bool:
        """Read one segment; return False if the segments behind it cannot be judged."""
        path = f"{self.directory}/{name}"
        is_compacted = base_offset < self.coverage.gaps_end_offset
        if not self._can_begin(path, base_offset):
            return False
        try:
            file = self.disk.open(path)
        except StorageError as error:
            self._damage(path, str(error), offset=base_offset)
            self.expected_offset = -1
            return True
        self.found.segments += 1
        self.found.size_bytes += file.size
        if row is not None and file.size < row.size:
            self._damage(
                path,
                f"has {file.size} bytes, and the recovery point names {row.size}",
                offset=base_offset,
                position=file.size,
            )
        expected_offset = self.expected_offset if is_compacted else base_offset
        walk = BatchWalk(file, 0, file.size, expected_offset)
        walk.checks_crc = True
        walk.has_gaps = is_compacted or self.listing.has_gaps
        walk.leader_epoch_min = self.leader_epoch_min
        check = IndexCheck(base_offset)
        while True:
            try:
                self._check_batches(walk, path, check)
            except StorageError as error:
                position = int(walk.position)
                self._damage(path, str(error), offset=self.expected_offset, position=position)
                return True
            if not walk.flaw:
                break
            resumed = self._resume(walk, path, base_offset, row, check)
            if resumed is None:
                return not self.is_torn
            walk = resumed
        # Compaction may have taken the last batches of a segment.
        self.expected_offset = int(walk.expected_offset)
        self.found.end_offset = max(self.found.end_offset, self.expected_offset)
        self._check_indexes(base_offset, check, row)
        return True

    def _can_begin(self, path: str, base_offset: int) -> bool:
        """Return True if the segment follows the one before, or damage is between them; False if a
        crash left it over.
        """
        last_covered = self.coverage.rows[-1].base_offset
        if self.found.start_offset < 0:
            self.found.start_offset = max(self.coverage.log_start_offset, base_offset)
            self.found.end_offset = base_offset
            if base_offset <= last_covered:
                return True
            # No covered segment has a file.
            self.found.start_offset = self.coverage.log_start_offset
            self.found.end_offset = self.expected_offset = self.coverage.recovery_offset
        end = self.expected_offset
        if end < 0 or base_offset == end or end < base_offset <= self.coverage.gaps_end_offset:
            return True
        if end < base_offset and base_offset in self.listing.gap_offsets:
            return True
        before = max((each for each in self.bases if each < base_offset), default=last_covered)
        if self.coverage.may_be_torn(before, end):
            self._note(path, f"no segment begins at {end}; the next start removes it", offset=end)
            return False
        if base_offset < end:
            self._damage(path, f"begins before {end}, the end of the one before", offset=end)
        else:
            gap = f"offsets {end} to {base_offset - 1} are missing before it"
            self._damage(path, gap, offset=end)
        return True

    def _check_batches(self, walk: BatchWalk, path: str, check: IndexCheck) -> None:
        told = int(walk.position)
        while (header := walk.next()) is not None:
            self.found.batches += 1
            self._check_batch(walk, header, path)
            check.add(int(header.last_offset), int(walk.batch_position), int(header.max_timestamp))
            if walk.expected_offset >= self.coverage.recovery_offset:
                self.leader_epoch_min = walk.leader_epoch_min = int(header.leader_epoch)
            if walk.position - told > 1 << 20:
                self.on_bytes(int(walk.position) - told)
                told = int(walk.position)
        self.on_bytes(int(walk.position) - told)

    def _check_batch(self, walk: BatchWalk, header: BatchHeader, path: str) -> None:
        problem = ""
        offset, position = int(header.base_offset), int(walk.batch_position)
        try:
            records = decode_records(walk.batch_bytes(header), size_max=BATCH_BYTES_MAX)
        except CorruptData as error:
            problem = str(error)
        else:
            self.found.records += len(records)
            offsets = [record.offset for record in records]
            if offsets != sorted(set(offsets)):
                problem = "the offsets of its records do not increase"
            elif offsets and (offsets[0] < offset or offsets[-1] > header.last_offset):
                problem = f"its records have offsets {offsets[0]} to {offsets[-1]}"
        if not problem and self.epochs is not None and offset < self._epochs_end():
            known = self.epochs.epoch_of(offset)
            if known not in (-1, header.leader_epoch):
                problem = f"leader epoch {header.leader_epoch}, and {EPOCH_FILE} says {known}"
        if problem:
            self._damage(path, f"batch: {problem}", offset=offset, position=position)

    def _epochs_end(self) -> int:
        """Return the offset below which the epoch file must be right."""
        return 1 << 62 if self.was_clean else self.sure_offset

    def _resume(
        self,
        walk: BatchWalk,
        path: str,
        base_offset: int,
        row: SegmentRow | None,
        check: IndexCheck,
    ) -> BatchWalk | None:
        """Report the flaw at which a walk has stopped, and return a walk that continues behind it.

        Return None if nothing more of the segment can be read.
        """
        offset, position = int(walk.flaw_offset), int(walk.flaw_position)
        left = int(walk.end) - position
        self.found.end_offset = max(self.found.end_offset, offset)
        if self.coverage.may_be_torn(base_offset, offset):
            # All bytes behind the flaw belong to the torn tail.
            self.is_torn = True
            self._note(
                path,
                f"torn tail of {left} bytes, as a crash leaves it ({walk.flaw}); the next start "
                "cuts it off",
                offset=offset,
                position=position,
            )
            return None
        end_offset = next((each for each in self.bases if each > base_offset), base_offset + _MORE)
        resumed = resume_behind(
            walk, range(base_offset, end_offset), self._index_positions(base_offset, row)
        )
        if resumed is None:
            problem = f"{walk.flaw}; {left} bytes from here on cannot be read"
            self.expected_offset = -1
            skipped = left
        else:
            skipped = int(resumed.position) - position
            end_offset = int(resumed.expected_offset)
            problem = f"{walk.flaw}; {skipped} bytes cannot be read, up to offset {end_offset}"
            check.add_hole(offset, end_offset)
        self._damage(path, problem, offset=offset, position=position)
        self.on_bytes(skipped)
        return resumed

    def _check_end(self) -> None:
        point = self.point
        if point is None or not point.segments or self.found.is_damaged:
            return
        end = max(self.found.end_offset, point.segments[-1].base_offset)
        if self.listing.has_gaps:
            # A cut may have ended the log in a gap, behind its last batch.
            return
        if end < point.recovery_offset and self.coverage.gaps_end_offset < point.recovery_offset:
            self._damage(
                self.directory,
                f"ends at offset {end}, before its recovery point {point.recovery_offset}",
                offset=end,
            )

    # --- Indexes

    def _check_indexes(self, base_offset: int, check: IndexCheck, row: SegmentRow | None) -> None:
        """Compare the index entries that a start trusts; a start writes the others again."""
        if row is None:
            return
        path = segment_path(self.directory, base_offset)
        for suffix, entries in ((".index", row.offset_entries), (".timeindex", row.time_entries)):
            if entries == 0:
                continue
            content = self._index_content(base_offset, suffix)
            problem = "missing" if content is None else check.problem(suffix, content, entries)
            if problem:
                self._damage(
                    path + suffix,
                    f"{problem}; remove it, and the next start makes it anew",
                    offset=base_offset,
                )

    def _index_content(self, base_offset: int, suffix: str) -> bytes | None:
        name = f"{base_offset:020d}{suffix}"
        checkpoint = self.compaction.checkpoint
        if checkpoint is not None:
            cleaned = cleaned_name(name, checkpoint.generation)
            name = cleaned if self.listing.has(cleaned) else name
        return read_file(self.disk, f"{self.directory}/{name}")

    def _index_positions(self, base_offset: int, row: SegmentRow | None) -> list[int]:
        """Return positions of batches from the offset index, as many as the file has."""
        content = self._index_content(base_offset, ".index")
        if row is None or content is None:
            return []
        index = OffsetIndex(base_offset)
        entries = min(row.offset_entries, len(content) // int(index.entry_bytes()))
        index.load(content, entries)
        return [int(index.position_at(entry)) for entry in range(entries)]
