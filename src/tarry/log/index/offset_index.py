"""Offset index: from an offset to a position near it in the segment.

Sparse: one entry about every `index.interval.bytes`.  An entry is the last offset of a batch,
relative to the segment's base offset, and the position where that batch begins: Kafka's `.index`.
Invariant: offsets and positions both strictly increase.  Finding the exact batch is the segment's
work.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.log.index.sparse_index import SparseIndex

WORDS: Final = 2


@mypyc_attr(acyclic=True)
class OffsetIndex(SparseIndex):
    """Entries (relative last offset, position)."""

    def __init__(self, base_offset: i64) -> None:
        super().__init__(base_offset, WORDS)

    def append(self, last_offset: i64, position: i64) -> None:
        """Append an entry; leave it out if the last entry has this offset or a later one.

        Then a fault of the disk has changed the last entry.  A search that meets such an entry has
        the index rebuilt.
        """
        if self.count > 0 and last_offset <= self.offset_at(self.count - 1):
            return
        self.begin_entry()
        self.data.append(last_offset - self.base_offset)
        self.data.append(position)
        self.count += 1

    def offset_at(self, entry: i64) -> i64:
        relative: i64 = self.data[entry * WORDS]
        return self.base_offset + relative

    def position_at(self, entry: i64) -> i64:
        position: i64 = self.data[entry * WORDS + 1]
        return position

    def entry_of_offset(self, offset: i64) -> i64:
        """Return the last entry whose offset is <= `offset`, or -1."""
        return self.entry_at_most(0, offset - self.base_offset)

    def entry_of_position(self, position: i64) -> i64:
        """Return the last entry whose position is <= `position`, or -1."""
        return self.entry_at_most(1, position)

    def is_plausible(self, size: i64) -> bool:
        """Return True if every entry keeps the invariants and lies in a segment of `size` bytes."""
        offset: i64 = -1
        position: i64 = -1
        for entry in range(self.count):
            relative: i64 = self.data[entry * WORDS]
            if relative <= offset or self.position_at(entry) <= position:
                return False
            offset = relative
            position = self.position_at(entry)
        return position < size
