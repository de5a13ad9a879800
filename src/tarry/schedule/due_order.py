"""Order of waiting entries by due time and then s-offset, with sums of their records and bytes.

Each chunk keeps its sums, so a range is summed up by chunks.  Only in the chunks at both ends of
the range are the entries read one by one.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.schedule.entries import (
    ENTRY_SIZE,
    due_ms_of,
    place_key,
    record_count_of,
    s_offset_of,
    size_of,
)
from tarry.schedule.entry_order import EntryChunk, EntryOrder


class DueSums:
    """Sums over a range of entries; `chunk_count` is the number of chunks that were looked at."""

    def __init__(self) -> None:
        self.chunk_count = 0
        self.entry_count = 0
        self.record_count = 0
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add these packed entries to the sums."""
        at: i64 = 0
        end: i64 = len(data)
        while at < end:
            entry = data[at : at + ENTRY_SIZE]
            self.entry_count += 1
            self.record_count += record_count_of(entry)
            self.size += size_of(entry)
            at += ENTRY_SIZE


class DueOrder(EntryOrder):
    """Entries of one schedule, as `entries` packs them."""

    def __init__(self) -> None:
        super().__init__(ENTRY_SIZE)

    def remove_at(self, due_ms: int, s_offset: int) -> bytes:
        """Remove and return the entry at this place.  There must be one."""
        entry = self.remove(place_key(due_ms, s_offset))
        assert s_offset_of(entry) == s_offset
        assert due_ms_of(entry) == due_ms
        return entry

    def has_at(self, due_ms: int, s_offset: int) -> bool:
        """Return whether there is an entry at this place."""
        found = self.from_key(place_key(due_ms, s_offset), 1)
        return bool(found) and s_offset_of(found[0]) == s_offset and due_ms_of(found[0]) == due_ms

    def find_at(self, due_ms: int, s_offset: int) -> bytes:
        """Return the entry at this place.  There must be one."""
        entry = self.from_key(place_key(due_ms, s_offset), 1)[0]
        assert s_offset_of(entry) == s_offset
        return entry

    def add_summed(self, data: bytes, record_count: int, size: int) -> None:
        """Add packed entries as `add_block` does; the caller knows their sums, which cost much."""
        self._add_chunk(data, EntryChunk(bytearray(data)))
        chunk = self._chunks[-1]
        chunk.record_count = record_count
        chunk.size = size

    def sums(self, from_ms: int, until_ms: int) -> DueSums:
        """Sum up the entries that are due from `from_ms` to before `until_ms`."""
        sums = DueSums()
        if not self._chunks or from_ms >= until_ms:
            return sums
        begin, end = place_key(from_ms, 0), place_key(until_ms, 0)
        index = self._chunk_of(begin)
        while index < len(self._chunks) and self._bounds[index] < end:
            chunk = self._chunks[index]
            index += 1
            sums.chunk_count += 1
            if chunk.data[:ENTRY_SIZE] >= begin and self._last_of(chunk) < end:
                sums.entry_count += len(chunk.data) // ENTRY_SIZE
                sums.record_count += chunk.record_count
                sums.size += chunk.size
            else:
                first = self._first_from(chunk, begin) * ENTRY_SIZE
                last = self._first_from(chunk, end) * ENTRY_SIZE
                sums.add(bytes(chunk.data[first:last]))
        return sums

    def _count_in(self, chunk: EntryChunk, entry: bytes) -> None:
        chunk.record_count += record_count_of(entry)
        chunk.size += size_of(entry)

    def _count_out(self, chunk: EntryChunk, entry: bytes) -> None:
        chunk.record_count -= record_count_of(entry)
        chunk.size -= size_of(entry)

    def _sum_up(self, chunk: EntryChunk) -> None:
        sums = DueSums()
        sums.add(bytes(chunk.data))
        chunk.record_count = sums.record_count
        chunk.size = sums.size
