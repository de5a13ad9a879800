"""Compaction checkpoint: how far a log is compacted, and which compacted segments it has.

It is one file in the log's directory, replaced as a whole and with a checksum.  A swap of segments
counts from the renaming of this file on: before it the old segments count, after it the new ones.
Their files then get their final names, by the running broker or by the next start.

`generation` is part of the names that new files have until then, so that a start never confuses a
file of a later swap, perhaps half written, with one of this swap.  Below `end_offset` the log has
exactly the segments of `rows`, and only these may have gaps.  Records below `cleaned_offset` have
been compared with all later ones up to there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from tarry.base.doors import Disk
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint
from tarry.log.segment import (
    LOG_SUFFIX,
    UNKNOWN_TIMESTAMP,
    SegmentRow,
    decode_segment_row,
    segment_path,
)
from tarry.log.small_files import decode_lines, encode_lines
from tarry.records.batch import NO_TIMESTAMP

logger = logging.getLogger("tarry.log")

COMPACTION_FILE: Final = "compaction-checkpoint"
TEMPORARY_SUFFIX: Final = ".tmp"
# Suffix of a new file until its swap, after the segment's suffix and the generation.
CLEANED_SUFFIX: Final = ".cleaned"
# Suffix added to such a file if it is unknown whether the file counts.
KEPT_SUFFIX: Final = "-kept"
# Generation in the name of a file that was replaced and is to be removed; no swap has it.
REPLACED_GENERATION: Final = 0
_FIRST_LINE: Final = "tarry compaction 1"


def cleaned_name(name: str, generation: int) -> str:
    """Return the name that the file `name` has before the swap."""
    return f"{name}.{generation}{CLEANED_SUFFIX}"


def remove_later(disk: Disk, path: str) -> bool:
    """Rename a file, and have it removed outside the turn, since a gigabyte takes a quarter of a
    second; return False if there is none.

    Another file may have the name `path` at once.  After a kill -9 the next start removes the file.
    """
    if not disk.exists(path):
        return False
    removed = cleaned_name(path, REPLACED_GENERATION)
    disk.rename(path, removed)
    disk.begin_remove(removed)
    return True


class CompactionCheckpoint:
    """Content of the checkpoint file."""

    def __init__(self) -> None:
        self.generation = 0
        self.cleaned_offset = 0
        self.end_offset = 0
        self.rows: list[SegmentRow] = []

    def encode(self) -> bytes:
        offsets = f"{self.generation} {self.cleaned_offset} {self.end_offset}"
        return encode_lines(_FIRST_LINE, [offsets, *[row.encode() for row in self.rows]])

    def replaced(self, base_offsets: Iterable[int]) -> list[int]:
        """Return the base offsets of segments that compacted ones have replaced."""
        kept = {row.base_offset: None for row in self.rows}
        return [base for base in base_offsets if base < self.end_offset and base not in kept]

    def covered_rows(self, point: RecoveryPoint) -> list[SegmentRow]:
        """Return the log's segments, given those in the recovery point.

        The recovery point may be older than this file.  If both have a segment, the row of the
        recovery point knows more about its index files.
        """
        known = {row.base_offset: row for row in point.segments}
        rows: list[SegmentRow] = []
        for row in self.rows:
            other = known.get(row.base_offset)
            # Compare more than the size: a compaction once turned 247 bytes into other 247.
            rows.append(other if other is not None and _is_same(row, other) else row)
        later = [row for row in point.segments if row.base_offset >= self.end_offset]
        if not later:
            base = self.end_offset
            later = [SegmentRow([base, 0, NO_TIMESTAMP, base, UNKNOWN_TIMESTAMP, 0, 0])]
        rows += later
        while len(rows) > 1 and rows[1].base_offset <= point.log_start_offset:
            del rows[0]
        return rows


def _is_same(row: SegmentRow, other: SegmentRow) -> bool:
    """Return True if both rows describe the same batches."""
    return (
        row.size == other.size
        and row.max_timestamp == other.max_timestamp
        and row.max_timestamp_offset == other.max_timestamp_offset
        and row.modified_wall_ms == other.modified_wall_ms
    )


def decode_compaction(content: bytes) -> CompactionCheckpoint | None:
    """Decode the content of the file; None if it is damaged."""
    lines = decode_lines(_FIRST_LINE, content)
    if not lines:
        return None
    checkpoint = CompactionCheckpoint()
    numbers = [int(number) for number in lines[0].split(" ")]
    checkpoint.generation, checkpoint.cleaned_offset, checkpoint.end_offset = numbers
    checkpoint.rows = [decode_segment_row(line) for line in lines[1:]]
    return checkpoint


class FoundCompaction:
    """Files of compaction that a start found in a log's directory."""

    def __init__(self) -> None:
        self.checkpoint: CompactionCheckpoint | None = None
        # True if the file cannot be decoded: any of the older segments may have gaps.
        self.is_damaged = False
        # True if the file describes segments that were cut off since.
        self.is_void = False
        # True if names were changed, which a flush of the directory makes durable.
        self.has_changed = False

    def gaps_end_offset(self, last_base_offset: int) -> int:
        """Return the offset below which a segment may have gaps if it begins there.

        If the file is damaged, these are all segments except the last durable one: in that one and
        behind it a gap is the result of a crash.
        """
        if self.is_damaged:
            return last_base_offset
        return self.checkpoint.end_offset if self.checkpoint is not None else 0


def read_compaction(disk: Disk, listing: Listing, void_generation: int) -> FoundCompaction:
    """Read the checkpoint; it is void if its generation is at most `void_generation`.

    `StorageError` if it cannot be read at present.
    """
    found = FoundCompaction()
    if listing.has(COMPACTION_FILE):
        file = disk.open(f"{listing.directory}/{COMPACTION_FILE}")
        checkpoint = decode_compaction(file.read(0, file.size))
        file.close()
        found.is_damaged = checkpoint is None
        found.is_void = checkpoint is not None and checkpoint.generation <= void_generation
        found.checkpoint = None if found.is_void else checkpoint
    return found


def finish_swap(disk: Disk, listing: Listing, void_generation: int = 0) -> FoundCompaction:
    """Complete a swap that counts, and remove files that belong to no swap; before the first turn.

    `StorageError` if the checkpoint cannot be read at present: nothing was changed, and another
    start may succeed.
    """
    found = read_compaction(disk, listing, void_generation)
    checkpoint = found.checkpoint
    if found.is_void:
        disk.remove(f"{listing.directory}/{COMPACTION_FILE}")
        found.has_changed = True
    left_over = [
        name for name in listing.names if name.endswith((CLEANED_SUFFIX, TEMPORARY_SUFFIX))
    ]
    renamed: list[str] = []
    if checkpoint is not None:
        suffix = cleaned_name("", checkpoint.generation)
        renamed = [name for name in left_over if name.endswith(suffix)]
        if renamed:
            # After a kill -9 the checkpoint's name may not be durable; the old segments must not be
            # given up before it is.
            disk.flush([], [listing.directory])
        for name in renamed:
            path = f"{listing.directory}/{name}"
            disk.rename(path, path[: -len(suffix)])
            found.has_changed = True
    for name in left_over:
        is_ours = name.endswith(CLEANED_SUFFIX) or name == COMPACTION_FILE + TEMPORARY_SUFFIX
        if not is_ours or name in renamed:
            continue
        path = f"{listing.directory}/{name}"
        may_count = name[:1].isdigit() or not name.endswith(CLEANED_SUFFIX)
        if found.is_damaged and may_count:
            # The file may be the only copy of a segment that the damaged checkpoint named.
            logger.warning("%s is kept as %s%s", path, name, KEPT_SUFFIX)
            disk.rename(path, path + KEPT_SUFFIX)
        else:
            disk.remove(path)
        found.has_changed = True
    if checkpoint is not None and _remove_replaced(disk, listing, checkpoint):
        found.has_changed = True
    if found.has_changed:
        listing.read(disk)
    return found


def _remove_replaced(disk: Disk, listing: Listing, checkpoint: CompactionCheckpoint) -> bool:
    """Remove files of segments that compacted ones have replaced; return True if there were any."""
    replaced = checkpoint.replaced(dict.fromkeys([*listing.base_offsets, *listing.index_offsets]))
    for base_offset in replaced:
        path = segment_path(listing.directory, base_offset)
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            disk.remove(path + suffix)
    return len(replaced) > 0
