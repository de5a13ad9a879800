"""Comparison of replicas on the disks of stopped brokers: the same records at the same offsets.

Batches that are equal byte for byte are skipped.  Where they differ their records are compared one
by one, because each broker compacts by itself: a record that only one of them has is a difference
unless the other one has compacted that part of its log.  Only committed records are compared, as
far as that is known: above the high watermark replicas may differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from tarry.base.doors import Disk
from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.checkpoint import COMPACTION_FILE, decode_compaction
from tarry.log.identity import LogIdentity
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import (
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
)
from tarry.log.recovery.verification import BATCH_BYTES_MAX
from tarry.log.segment import LOG_SUFFIX, segment_path
from tarry.log.small_files import read_file
from tarry.records.record import Record, decode_records
from tarry.runtime.inspection import InspectedDirectory, InspectionRefused

# Differences of one partition; after so many the rest of it is not compared.
DIFFERENCES_MAX: Final = 20


class ReplicaDifference(NamedTuple):
    """Difference of two replicas at one offset; -1 if it is about the whole partition."""

    partition: str
    offset: int
    problem: str


class ComparedReplicas:
    """Result of a comparison: the number of partitions that both have, and their differences."""

    def __init__(self, root: str, other_root: str) -> None:
        self.root = root
        self.other_root = other_root
        self.partitions = 0
        self.differences: list[ReplicaDifference] = []


def compare_directories(one: InspectedDirectory, other: InspectedDirectory) -> ComparedReplicas:
    """Compare every partition that both directories have; both brokers were stopped cleanly.

    `InspectionRefused` if one was not: its bytes beyond the last flush prove nothing.
    """
    for inspected in (one, other):
        if not inspected.was_clean:
            raise InspectionRefused(
                f"the broker of {inspected.root} was not stopped cleanly: start it, wait until it "
                "is in sync, and stop it by SIGTERM"
            )
    compared = ComparedReplicas(one.root, other.root)
    shared = dict.fromkeys(other.directories)
    points, other_points = _points(one), _points(other)
    for directory in one.directories:
        if directory not in shared:
            continue
        compared.partitions += 1
        first = _ComparedReplica(one.disk, directory, points.get(directory))
        second = _ComparedReplica(other.disk, directory, other_points.get(directory))
        compared.differences += _differences(directory, first, second)
    return compared


def _points(inspected: InspectedDirectory) -> dict[str, RecoveryPoint]:
    content = read_file(inspected.disk, RECOVERY_POINTS_FILE)
    points = None if content is None else decode_recovery_points(content)
    return {} if points is None else points


class _ComparedBatch(NamedTuple):
    base_offset: int
    last_offset: int
    data: bytes

    def records(self) -> list[Record]:
        return decode_records(self.data, size_max=BATCH_BYTES_MAX)


class _ComparedReplica:
    """Copy of a partition on one broker, read from its first record on."""

    def __init__(self, disk: Disk, directory: str, point: RecoveryPoint | None) -> None:
        self._disk = disk
        self._directory = directory
        self._listing = Listing(disk, directory)
        self.start_offset = 0
        # Offset up to which records are known to be committed; -1 if this was never known.
        self.committed_end = -1
        if point is not None:
            self.start_offset = point.log_start_offset
            self.committed_end = point.high_watermark_hint
        elif self._listing.base_offsets:
            self.start_offset = self._listing.base_offsets[0]
        self.identity = LogIdentity(directory, b"").read(disk)
        self.compacted_end = self._compacted_end()
        self._batches = self._walk()
        self.batch = next(self._batches, None)
        self.pending: deque[Record] = deque()

    def _compacted_end(self) -> int:
        content = read_file(self._disk, f"{self._directory}/{COMPACTION_FILE}")
        checkpoint = None if content is None else decode_compaction(content)
        return 0 if checkpoint is None else checkpoint.end_offset

    def _walk(self) -> Iterator[_ComparedBatch]:
        for base_offset in self._listing.base_offsets:
            path = f"{segment_path(self._directory, base_offset)}{LOG_SUFFIX}"
            file = self._disk.open(path)
            walk = BatchWalk(file, 0, file.size, -1)
            walk.has_gaps = True
            walk.checks_crc = True
            while (header := walk.next()) is not None:
                yield _ComparedBatch(
                    int(header.base_offset), int(header.last_offset), walk.batch_bytes(header)
                )
            if walk.flaw:
                raise CorruptData(f"{path} at offset {walk.flaw_offset}: {walk.flaw}")

    def pass_batch(self) -> None:
        """Go on to the next batch."""
        self.batch = next(self._batches, None)

    def head(self, start_offset: int) -> Record | None:
        """Return the next record from `start_offset` on; None at the end."""
        while not self.pending:
            if self.batch is None:
                return None
            self.pending.extend(
                record for record in self.batch.records() if record.offset >= start_offset
            )
            self.pass_batch()
        return self.pending[0]


def _differences(
    directory: str, one: _ComparedReplica, other: _ComparedReplica
) -> list[ReplicaDifference]:
    """Return the differences between two copies, some at most."""
    if one.identity and other.identity and one.identity != other.identity:
        return [ReplicaDifference(directory, -1, "the two are of different topics with one name")]
    found: list[ReplicaDifference] = []
    start = max(one.start_offset, other.start_offset)
    # The hints are written with the recovery points: the higher one is the later one.
    end = max(one.committed_end, other.committed_end)
    try:
        while len(found) < DIFFERENCES_MAX:
            if _is_same_batch(one, other):
                one.pass_batch()
                other.pass_batch()
                continue
            first, second = one.head(start), other.head(start)
            offset = min([each.offset for each in (first, second) if each is not None], default=-1)
            if offset < 0 or 0 <= end <= offset:
                break
            if first is None or second is None:
                # Without a known end, a record that only one of them has need not be committed.
                if end >= 0:
                    which = "first" if first is None else "second"
                    problem = f"the {which} one ends before it, and it is committed"
                    found.append(ReplicaDifference(directory, offset, problem))
                break
            problem = _compare_heads(one, other, first, second)
            if problem:
                found.append(ReplicaDifference(directory, offset, problem))
    except (CorruptData, StorageError) as error:
        found.append(ReplicaDifference(directory, -1, str(error)))
    return found


def _is_same_batch(one: _ComparedReplica, other: _ComparedReplica) -> bool:
    if one.pending or other.pending or one.batch is None or other.batch is None:
        return False
    return one.batch == other.batch


def _compare_heads(
    one: _ComparedReplica, other: _ComparedReplica, first: Record, second: Record
) -> str:
    """Compare the next records of both and drop the lower one; a sentence if they differ."""
    if first.offset == second.offset:
        one.pending.popleft()
        other.pending.popleft()
        return "" if first == second else "the two records there are not the same"
    if first.offset < second.offset:
        one.pending.popleft()
        return "" if first.offset < other.compacted_end else "only the first one has a record there"
    other.pending.popleft()
    return "" if second.offset < one.compacted_end else "only the second one has a record there"
