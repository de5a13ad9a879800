"""Order of what waits: by due time and then s-offset, with its records and bytes summed up.

The entries lie in chunks, each in order and each behind the one before.  To add, to take away and
to find a place cost a search among the chunks and one within a chunk, however much waits.  A chunk
knows its sums, so that a range is counted by chunks, and only the two at its ends are gone through.
Hot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

# Due time, s-offset, records and bytes.  The first two are an entry's place.
DueEntry = tuple[int, int, int, int]

# A longer chunk is split in two.
CHUNK_ENTRIES_MAX: Final = 1_000
# At or below every number of records and bytes, also damaged ones.
_LEAST: Final = -(2**63)


class DueSums:
    """Sums over a range of entries; `chunk_count` is how many chunks that took."""

    def __init__(self) -> None:
        self.chunk_count = 0
        self.entry_count = 0
        self.record_count = 0
        self.size = 0

    def add(self, entries: list[DueEntry]) -> None:
        """Count these entries."""
        self.entry_count += len(entries)
        for entry in entries:
            self.record_count += entry[2]
            self.size += entry[3]


class _Chunk:
    """Entries in their order, with the sums over them."""

    def __init__(self, entries: list[DueEntry]) -> None:
        self.entries = entries
        self.record_count = 0
        self.size = 0
        for entry in entries:
            self.record_count += entry[2]
            self.size += entry[3]


class DueOrder:
    """Entries of one schedule."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        # A place for each chunk, at or before its first entry and behind the chunk before.
        self._bounds: list[tuple[int, int]] = []

    def add(self, due_ms: int, s_offset: int, record_count: int, size: int) -> None:
        """Add an entry, whose place nothing else has."""
        entry = (due_ms, s_offset, record_count, size)
        if not self._chunks or self._chunks[-1].entries[-1] < entry:
            self._add_last(entry)
            return
        place = (due_ms, s_offset)
        index = self._chunk_of(place)
        self._bounds[index] = min(self._bounds[index], place)
        chunk = self._chunks[index]
        insort(chunk.entries, entry)
        chunk.record_count += record_count
        chunk.size += size
        if len(chunk.entries) > CHUNK_ENTRIES_MAX:
            self._split(index)

    def _add_last(self, entry: DueEntry) -> None:
        """Add an entry behind all others, as each is where all wait equally long."""
        if not self._chunks or len(self._chunks[-1].entries) >= CHUNK_ENTRIES_MAX:
            self._chunks.append(_Chunk([entry]))
            self._bounds.append((entry[0], entry[1]))
            return
        chunk = self._chunks[-1]
        chunk.entries.append(entry)
        chunk.record_count += entry[2]
        chunk.size += entry[3]

    def remove(self, due_ms: int, s_offset: int) -> None:
        """Take away the entry at this place, which is there."""
        place = (due_ms, s_offset)
        index = self._chunk_of(place)
        chunk = self._chunks[index]
        entry = chunk.entries.pop(_first_from(chunk.entries, place))
        assert entry[1] == s_offset
        chunk.record_count -= entry[2]
        chunk.size -= entry[3]
        if not chunk.entries:
            del self._chunks[index]
            del self._bounds[index]

    def first(self) -> DueEntry | None:
        """Return the first entry, or None."""
        return self._chunks[0].entries[0] if self._chunks else None

    def last(self) -> DueEntry | None:
        """Return the last entry, or None."""
        return self._chunks[-1].entries[-1] if self._chunks else None

    def from_place(self, due_ms: int, s_offset: int, count_max: int) -> list[DueEntry]:
        """Return the entries from this place on, so many at most.

        Fewer say nothing: only an empty list means that there are no more.
        """
        if not self._chunks:
            return []
        place = (due_ms, s_offset)
        index = self._chunk_of(place)
        entries = self._chunks[index].entries
        begin = _first_from(entries, place)
        if begin == len(entries):
            if index + 1 == len(self._chunks):
                return []
            entries = self._chunks[index + 1].entries
            begin = 0
        return entries[begin : begin + count_max]

    def sums(self, from_ms: int, until_ms: int) -> DueSums:
        """Sum up what is due from one time on and before another."""
        sums = DueSums()
        if not self._chunks or from_ms >= until_ms:
            return sums
        begin, end = (from_ms, -1), (until_ms, -1)
        index = self._chunk_of(begin)
        while index < len(self._chunks) and self._bounds[index] < end:
            chunk = self._chunks[index]
            index += 1
            sums.chunk_count += 1
            entries = chunk.entries
            if entries[0] > begin and entries[-1] < end:
                sums.entry_count += len(entries)
                sums.record_count += chunk.record_count
                sums.size += chunk.size
            else:
                sums.add(entries[_first_from(entries, begin) : _first_from(entries, end)])
        return sums

    def _chunk_of(self, place: tuple[int, int]) -> int:
        """Return the number of the chunk in which this place lies."""
        return max(bisect_right(self._bounds, place) - 1, 0)

    def _split(self, index: int) -> None:
        entries = self._chunks[index].entries
        middle = len(entries) // 2
        behind = entries[middle:]
        self._chunks[index : index + 1] = [_Chunk(entries[:middle]), _Chunk(behind)]
        self._bounds.insert(index + 1, (behind[0][0], behind[0][1]))


def _first_from(entries: list[DueEntry], place: tuple[int, int]) -> int:
    """Return where the entries at or behind a place begin."""
    return bisect_left(entries, (place[0], place[1], _LEAST, _LEAST))
