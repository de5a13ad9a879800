"""Resumption behind damage: where a segment's batches continue, for code that reads all of them.

A damaged batch is skipped by its length if that leads to the header of another one.  If the length
is wrong too, the next sound batch is searched for byte by byte.  If none is near, the entries of
the offset index are tried.  A batch counts as sound if its CRC holds and its offset lies in the
segment, behind the batches that were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tarry.base.doors import LogFile
from tarry.log.batch_walk import UNKNOWN_OFFSET, BatchWalk
from tarry.records.batch import HEADER_SIZE, LENGTH, LENGTH_OVERHEAD, MAGIC, MAGIC_V2

# Bytes that one search looks at: a batch is 1 MiB at most unless a topic allows more.
SEARCHED_BYTES_MAX: Final = 4 << 20
# Bytes of candidate batches whose CRC one search computes.
CHECKED_BYTES_MAX: Final = 16 << 20
# Entries of the offset index that one search tries.
ENTRIES_MAX: Final = 16

_MAGIC_BYTE: Final = bytes([MAGIC_V2])


def resume_behind(walk: BatchWalk, offsets: range, entries: Sequence[int]) -> BatchWalk | None:
    """Return a walk that continues behind the flaw of `walk`; None if no sound batch is found.

    `offsets` is the range that base offsets of this segment lie in.  `entries` are the positions
    in its offset index.
    """
    search = _BatchSearch(walk, offsets)
    position = search.behind_length()
    if position < 0:
        if not walk.has_gaps:
            # A candidate may be the value of a record: require an offset behind the flaw.  With
            # gaps this does not hold, because a damaged offset may have moved `flaw_offset`.
            search.offsets = range(max(offsets.start, int(walk.flaw_offset) + 1), offsets.stop)
        position = search.nearest()
    if position < 0:
        behind = [each for each in entries if each > walk.flaw_position]
        position = next((each for each in behind[:ENTRIES_MAX] if search.is_sound(each)), -1)
    if position < 0:
        return None
    offset = int.from_bytes(walk.file.read(position, 8), "big")
    resumed = BatchWalk(walk.file, position, walk.end, offset)
    resumed.checks_crc = True
    resumed.has_gaps = walk.has_gaps
    return resumed


class _BatchSearch:
    """Search for a sound batch behind a flaw."""

    def __init__(self, walk: BatchWalk, offsets: range) -> None:
        self.file: LogFile = walk.file
        self.begin = int(walk.flaw_position)
        self.end = int(walk.end)
        self.offsets = offsets

    def is_sound(self, position: int) -> bool:
        """Return True if a sound batch begins at `position`."""
        walk = BatchWalk(self.file, position, self.end, UNKNOWN_OFFSET)
        walk.checks_crc = True
        walk.block_bytes = HEADER_SIZE
        return walk.step() and int(walk.batch_offset) in self.offsets

    def behind_length(self) -> int:
        """Return where the damaged batch ends by its own length; -1 if no batch header is there.

        The batch behind it may be damaged as well.
        """
        if self.end - self.begin < HEADER_SIZE:
            return -1
        size = _size_at(self.file.read(self.begin, HEADER_SIZE), 0)
        position = self.begin + size
        if size < HEADER_SIZE or position >= self.end:
            return -1
        walk = BatchWalk(self.file, position, self.end, UNKNOWN_OFFSET)
        walk.block_bytes = HEADER_SIZE
        return position if walk.step() and int(walk.batch_offset) in self.offsets else -1

    def nearest(self) -> int:
        """Return the position of the first sound batch among the bytes searched; -1 if there is
        none.
        """
        data = self.file.read(self.begin, min(SEARCHED_BYTES_MAX, self.end - self.begin))
        checked = 0
        magic = data.find(_MAGIC_BYTE, MAGIC + 1)
        while magic >= 0 and checked < CHECKED_BYTES_MAX:
            at = magic - MAGIC
            size = _size_at(data, at)
            position = self.begin + at
            offset = int.from_bytes(data[at : at + 8], "big")
            if HEADER_SIZE <= size <= self.end - position and offset in self.offsets:
                checked += size
                if self.is_sound(position):
                    return position
            magic = data.find(_MAGIC_BYTE, magic + 1)
        return -1


def _size_at(data: bytes, at: int) -> int:
    return int.from_bytes(data[at + LENGTH : at + LENGTH + 4], "big", signed=True) + LENGTH_OVERHEAD
