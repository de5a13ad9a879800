"""S-offsets of what waits, in their order.

They lie in chunks, each in order and behind the one before, so that any of them is found and taken
away at the cost of a search, and nothing stays of those that have left.  Hot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

# A chunk that is full is split in two, or left as it is where the next offset comes behind it.
CHUNK_OFFSETS_MAX: Final = 1_000


class OffsetOrder:
    """S-offsets of one schedule."""

    def __init__(self) -> None:
        self._chunks: list[list[int]] = []
        # For each chunk an offset at or before its first one and behind the chunk before.
        self._bounds: list[int] = []

    def add(self, s_offset: int) -> None:
        """Add an s-offset that is not here."""
        chunks, bounds = self._chunks, self._bounds
        if not chunks or chunks[-1][-1] < s_offset:
            if not chunks or len(chunks[-1]) >= CHUNK_OFFSETS_MAX:
                chunks.append([])
                bounds.append(s_offset)
            chunks[-1].append(s_offset)
            return
        index = self._chunk_of(s_offset)
        bounds[index] = min(bounds[index], s_offset)
        chunk = chunks[index]
        insort(chunk, s_offset)
        if len(chunk) > CHUNK_OFFSETS_MAX:
            middle = len(chunk) // 2
            behind = chunk[middle:]
            del chunk[middle:]
            chunks.insert(index + 1, behind)
            bounds.insert(index + 1, behind[0])

    def remove(self, s_offset: int) -> None:
        """Take away an s-offset that is here."""
        index = self._chunk_of(s_offset)
        chunk = self._chunks[index]
        found = chunk.pop(bisect_left(chunk, s_offset))
        assert found == s_offset
        if not chunk:
            del self._chunks[index]
            del self._bounds[index]

    def first(self) -> int | None:
        """Return the least, or None."""
        return self._chunks[0][0] if self._chunks else None

    def between(self, first: int, until: int) -> list[int]:
        """Return those from one s-offset on and before another."""
        found: list[int] = []
        index = self._chunk_of(first)
        while index < len(self._chunks) and self._bounds[index] < until:
            chunk = self._chunks[index]
            found += chunk[bisect_left(chunk, first) : bisect_left(chunk, until)]
            index += 1
        return found

    def _chunk_of(self, s_offset: int) -> int:
        """Return the number of the chunk in which this s-offset lies."""
        return max(bisect_right(self._bounds, s_offset) - 1, 0)
