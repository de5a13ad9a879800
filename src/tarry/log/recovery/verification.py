"""Verification: everything in one log's directory read and compared, on a broker that is stopped.

Each batch's CRC, records and offsets; both indexes against the batches; snapshots, epochs, the
compaction checkpoint and the recovery point against what is there.  Nothing is changed.  Two kinds
of findings: damage, which loses or hides what was durable, and notes about what a start after a
crash mends by itself.  One kind of damage cannot be seen: a base offset, which no CRC covers, that
became another one in a gap that compaction left, here or where the log was copied from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.doors import Disk
from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.checkpoint import (
    COMPACTION_FILE,
    CompactionCheckpoint,
    cleaned_name,
    decode_compaction,
)
from tarry.log.identity import IDENTITY_FILE, LogIdentity
from tarry.log.index.epoch_index import EPOCH_FILE, EpochIndex, decode_epochs
from tarry.log.index.index_check import IndexCheck
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint
from tarry.log.recovery.snapshot import read_snapshot, snapshot_path
from tarry.log.segment import LOG_SUFFIX, SegmentRow, segment_path
from tarry.log.small_files import read_file
from tarry.records.batch import BatchHeader
from tarry.records.record import decode_records

# Larger content of one batch is no batch of ours: message.max.bytes is far below it.
BATCH_BYTES_MAX: Final = 1 << 30

# Findings of one log: a broken one has as many as it has batches.
FINDINGS_MAX: Final = 20


class Finding:
    """Finding in one file; `position` and `offset` are -1 where they mean nothing."""

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
        # How many more there were than are kept.
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
    on_bytes: Callable[[int], None] | None = None,
) -> VerifiedLog:
    """Read the whole log.  `point` is its recovery point, None if that is not known;
    `on_bytes` is told how many bytes were read, again and again."""
    verification = _Verification(disk, directory, point, was_clean=was_clean)
    verification.on_bytes = on_bytes
    verification.run()
    return verification.found


class _Verification:
    def __init__(
        self, disk: Disk, directory: str, point: RecoveryPoint | None, *, was_clean: bool
    ) -> None:
        self.disk = disk
        self.directory = directory
        # A log that no recovery point has seen yet may be torn anywhere.
        self.is_new = point is not None and not point.segments
        self.point = None if self.is_new else point
        self.was_clean = was_clean
        self.on_bytes: Callable[[int], None] | None = None
        self.found = VerifiedLog(directory)
        self.listing = Listing(disk, directory)
        self.compaction: CompactionCheckpoint | None = None
        self.gaps_end_offset = 0
        self.epochs: EpochIndex | None = None
        # Below it everything was durable when the broker stopped.
        self.sure_offset = 0
        self.expected_offset = -1

    def run(self) -> None:
        if self.point is not None:
            self.sure_offset = self.point.recovery_offset
        self._read_compaction()
        self._read_epochs()
        self._check_identity()
        names = self._segment_names()
        rows = self._rows()
        for base_offset, row in rows.items():
            if row.size > 0 and base_offset not in names:
                self._damage(
                    f"{segment_path(self.directory, base_offset)}{LOG_SUFFIX}",
                    f"missing: the recovery point names it with {row.size} bytes",
                    offset=base_offset,
                )
        bases = sorted(names)
        for base_offset in bases:
            is_last = base_offset == bases[-1]
            if not self._check_segment(base_offset, names[base_offset], rows, is_last=is_last):
                break
        if self.found.start_offset < 0:
            begin = 0 if self.point is None else self.point.log_start_offset
            self.found.start_offset = self.found.end_offset = begin
        self._check_end()
        self._check_snapshots()

    def _damage(self, path: str, problem: str, *, offset: int = -1, position: int = -1) -> None:
        self.found.add(Finding(path, problem, is_damage=True, offset=offset, position=position))

    def _note(self, path: str, problem: str, *, offset: int = -1, position: int = -1) -> None:
        self.found.add(Finding(path, problem, is_damage=False, offset=offset, position=position))

    # --- Small files

    def _read_compaction(self) -> None:
        if not self.listing.has(COMPACTION_FILE):
            return
        path = f"{self.directory}/{COMPACTION_FILE}"
        content = read_file(self.disk, path)
        self.compaction = None if content is None else decode_compaction(content)
        void_generation = 0 if self.point is None else self.point.void_generation
        if self.compaction is not None and self.compaction.generation <= void_generation:
            # Of segments that were cut off since; the next start removes it.
            self.compaction = None
        elif self.compaction is not None:
            self.gaps_end_offset = self.compaction.end_offset
        else:
            self._damage(path, "cannot be read, or its CRC does not match")
            self.gaps_end_offset = max(self.listing.base_offsets, default=0)

    def _read_epochs(self) -> None:
        if not self.listing.has(EPOCH_FILE):
            return
        path = f"{self.directory}/{EPOCH_FILE}"
        content = read_file(self.disk, path)
        self.epochs = None if content is None else decode_epochs(content)
        if self.epochs is None:
            # It is written anew in its place, so a crash may have left a part of it.
            problem = "cannot be read, or its CRC does not match; a start makes it anew"
            self.found.add(Finding(path, problem, is_damage=self.was_clean))

    def _check_identity(self) -> None:
        if not self.listing.has(IDENTITY_FILE):
            return
        identity = LogIdentity(self.directory, b"")
        if identity.read(self.disk) == "":
            # Durable with the log's first bytes, which a recovery point then covers.
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

    def _rows(self) -> dict[int, SegmentRow]:
        """Return what is known of the segments up to the recovery point."""
        if self.point is None:
            rows = self.compaction.rows if self.compaction is not None else []
        elif self.compaction is not None:
            rows = self.compaction.covered_rows(self.point)
        else:
            rows = self.point.segments
        return {row.base_offset: row for row in rows}

    def _segment_names(self) -> dict[int, str]:
        """Return the files of the segments that count, by base offset: a compaction that was under
        way may have files that are to be renamed, and others that they have taken the place of.
        """
        names = {base: f"{base:020d}" for base in self.listing.base_offsets}
        if self.point is not None:
            first = self.point.segments[0].base_offset
            names = {base: name for base, name in names.items() if base >= first}
        compaction = self.compaction
        if compaction is None:
            return names
        counting = {row.base_offset: None for row in compaction.rows}
        for base in [base for base in names if base < compaction.end_offset]:
            if base not in counting:
                del names[base]
        for base in counting:
            name = cleaned_name(f"{base:020d}{LOG_SUFFIX}", compaction.generation)
            if self.listing.has(name):
                names[base] = name
        return names

    def _check_segment(
        self, base_offset: int, name: str, rows: dict[int, SegmentRow], *, is_last: bool
    ) -> bool:
        """Read one segment; False if nothing is known of what follows it."""
        suffix = "" if LOG_SUFFIX in name else LOG_SUFFIX
        path = f"{self.directory}/{name}{suffix}"
        row = rows.get(base_offset)
        is_compacted = base_offset < self.gaps_end_offset
        if not self._can_begin(path, base_offset, is_last=is_last):
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
        check = IndexCheck(base_offset)
        try:
            self._check_batches(walk, path, check)
        except StorageError as error:
            self._damage(path, str(error), offset=self.expected_offset, position=int(walk.position))
            return True
        if walk.flaw:
            return self._stopped(walk, path, is_last=is_last)
        # Compaction may have taken the last batches of a segment.
        self.expected_offset = int(walk.expected_offset)
        self.found.end_offset = max(self.found.end_offset, self.expected_offset)
        self._check_indexes(base_offset, check, row)
        return True

    def _can_begin(self, path: str, base_offset: int, *, is_last: bool) -> bool:
        """Return true if the segment follows the one before, or damage is between them; false if it
        was left over by a crash.
        """
        if self.found.start_offset < 0:
            start = base_offset if self.point is None else self.point.log_start_offset
            self.found.start_offset = max(start, base_offset)
            self.found.end_offset = base_offset
            return True
        end = self.expected_offset
        if end < 0 or base_offset == end or end < base_offset <= self.gaps_end_offset:
            return True
        if end < base_offset and base_offset in self.listing.gap_offsets:
            return True
        if self._may_be_torn(end, is_last=is_last):
            self._note(path, f"no segment begins at {end}; the next start removes it", offset=end)
            return False
        if base_offset < end:
            self._damage(path, f"begins before {end}, the end of the one before", offset=end)
        else:
            gap = f"offsets {end} to {base_offset - 1} are missing before it"
            self._damage(path, gap, offset=end)
        return True

    def _may_be_torn(self, offset: int, *, is_last: bool) -> bool:
        """Return true if a crash may leave what is not sound at this offset."""
        if self.was_clean:
            return False
        if self.point is not None or self.is_new:
            return offset >= self.sure_offset
        # Without recovery points, segments before the last were flushed in all likelihood.
        return is_last

    def _check_batches(self, walk: BatchWalk, path: str, check: IndexCheck) -> None:
        told = int(walk.position)
        while (header := walk.next()) is not None:
            self.found.batches += 1
            self._check_batch(walk, header, path)
            check.add(int(header.last_offset), int(walk.batch_position), int(header.max_timestamp))
            if self.on_bytes is not None and walk.position - told > 1 << 20:
                self.on_bytes(int(walk.position) - told)
                told = int(walk.position)
        if self.on_bytes is not None:
            self.on_bytes(int(walk.end) - told)

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
        """Return up to where the epochs' file has to be right."""
        return 1 << 62 if self.was_clean else self.sure_offset

    def _stopped(self, walk: BatchWalk, path: str, *, is_last: bool) -> bool:
        """Report that batches cannot be read to the end of the file; returns if to go on behind
        it.
        """
        offset, position = int(walk.flaw_offset), int(walk.flaw_position)
        left = int(walk.end) - position
        self.found.end_offset = max(self.found.end_offset, offset)
        if self._may_be_torn(offset, is_last=is_last):
            self._note(
                path,
                f"torn tail of {left} bytes, as a crash leaves it ({walk.flaw}); the next start "
                "cuts it off",
                offset=offset,
                position=position,
            )
            # What follows belongs to the tail.
            return False
        self._damage(
            path,
            f"{walk.flaw}; {left} bytes from here on cannot be read",
            offset=offset,
            position=position,
        )
        self.expected_offset = -1
        return not is_last

    def _check_end(self) -> None:
        point = self.point
        if point is None or self.found.is_damaged:
            return
        end = max(self.found.end_offset, point.segments[-1].base_offset)
        if self.listing.has_gaps:
            # A cut may have ended the log in a gap, behind its last batch.
            return
        if end < point.recovery_offset and self.gaps_end_offset < point.recovery_offset:
            self._damage(
                self.directory,
                f"ends at offset {end}, before its recovery point {point.recovery_offset}",
                offset=end,
            )

    # --- Indexes

    def _check_indexes(self, base_offset: int, check: IndexCheck, row: SegmentRow | None) -> None:
        """Compare the entries that a start goes by; others it writes anew."""
        if row is None:
            return
        path = segment_path(self.directory, base_offset)
        for suffix, entries in ((".index", row.offset_entries), (".timeindex", row.time_entries)):
            if entries == 0:
                continue
            name = f"{base_offset:020d}{suffix}"
            if self.compaction is not None:
                cleaned = cleaned_name(name, self.compaction.generation)
                name = cleaned if self.listing.has(cleaned) else name
            content = read_file(self.disk, f"{self.directory}/{name}")
            problem = "missing" if content is None else check.problem(suffix, content, entries)
            if problem:
                self._damage(
                    path + suffix,
                    f"{problem}; remove it, and the next start makes it anew",
                    offset=base_offset,
                )
