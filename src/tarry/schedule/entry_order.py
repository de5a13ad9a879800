"""Order of entries of one width, by their bytes, packed into chunks.

The entries of a chunk are in order, and lie behind all entries of the chunk before.  To add, remove
or find an entry costs one search among the chunks and one within a chunk.  A removed entry leaves
no memory in use.  An entry takes its own bytes of memory and little more.  Hot.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.errors import CorruptData

# Most entries of a chunk.  An entry that falls into a full chunk splits it in two; an entry behind
# all others begins a new chunk.
CHUNK_ENTRIES_MAX: Final = 1_000


class EntryChunk:
    """Entries in their order, with their record count and size where the order sums these up."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.record_count = 0
        self.size = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class EntryOrder:
    """Entries of `width` bytes, no two of them the same."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._chunks: list[EntryChunk] = []
        # Lower bound of each chunk: at or before its first entry, behind the chunk before.
        self._bounds: list[bytes] = []

    def add(self, entry: bytes) -> None:
        """Add an entry."""
        chunks = self._chunks
        if not chunks or self._last_of(chunks[-1]) < entry:
            self._add_last(entry)
            return
        index = self._chunk_of(entry)
        self._bounds[index] = min(self._bounds[index], entry)
        chunk = chunks[index]
        at = self._first_from(chunk, entry) * self._width
        chunk.data[at:at] = entry
        self._count_in(chunk, entry)
        if len(chunk.data) > CHUNK_ENTRIES_MAX * self._width:
            self._split(index)

    def _add_last(self, entry: bytes) -> None:
        """Add an entry behind all others: the usual case where all records wait equally long."""
        chunks = self._chunks
        if not chunks or len(chunks[-1].data) >= CHUNK_ENTRIES_MAX * self._width:
            chunks.append(EntryChunk(bytearray()))
            self._bounds.append(entry)
        chunk = chunks[-1]
        chunk.data += entry
        self._count_in(chunk, entry)

    def remove(self, key: bytes) -> bytes:
        """Remove and return the first entry at or behind a key.  There must be one."""
        index = self._chunk_with(key)
        chunk = self._chunks[index]
        at = self._first_from(chunk, key) * self._width
        entry = bytes(chunk.data[at : at + self._width])
        self._remove(index, at, entry)
        return entry

    def remove_first(self) -> None:
        """Remove the first entry.  There must be one."""
        self._remove(0, 0, self.first())

    def _remove(self, index: int, at: int, entry: bytes) -> None:
        chunk = self._chunks[index]
        del chunk.data[at : at + self._width]
        self._count_out(chunk, entry)
        if not chunk.data:
            del self._chunks[index]
            del self._bounds[index]

    def first(self) -> bytes:
        """Return the first entry; b"" if there is none."""
        return bytes(self._chunks[0].data[: self._width]) if self._chunks else b""

    def last(self) -> bytes:
        """Return the last entry; b"" if there is none."""
        return self._last_of(self._chunks[-1]) if self._chunks else b""

    def find(self, key: bytes) -> bytes:
        """Return the first entry that begins with the bytes of `key`; b"" if there is none."""
        found = self.from_key(key, 1)
        return found[0] if found and found[0].startswith(key) else b""

    def from_key(self, key: bytes, count_max: int) -> list[bytes]:
        """Return entries at or behind a key, `count_max` at most.

        A shorter list may not be all: only an empty list means that there are no more.
        """
        index = self._chunk_with(key)
        if index == len(self._chunks):
            return []
        width = self._width
        chunk = self._chunks[index]
        begin = self._first_from(chunk, key) * width
        data = bytes(chunk.data[begin : begin + count_max * width])
        return [data[at : at + width] for at in range(0, len(data), width)]

    def block_from(self, key: bytes) -> bytes:
        """Return the next entries at or behind a key, those of one chunk; b"" if there are none."""
        index = self._chunk_with(key)
        if index == len(self._chunks):
            return b""
        chunk = self._chunks[index]
        return bytes(chunk.data[self._first_from(chunk, key) * self._width :])

    def add_block(self, data: bytes) -> None:
        """Add packed entries behind all others; `CorruptData` if they do not lie behind them."""
        chunk = EntryChunk(bytearray(data))
        self._add_chunk(data, chunk)
        self._sum_up(chunk)

    def _add_chunk(self, data: bytes, chunk: EntryChunk) -> None:
        width = self._width
        if not data or len(data) % width or len(data) > CHUNK_ENTRIES_MAX * width:
            raise CorruptData(f"a block of {len(data)} bytes of entries")
        first = data[:width]
        if self._chunks and self._last_of(self._chunks[-1]) >= first:
            raise CorruptData("a block of entries lies before the one before it")
        self._chunks.append(chunk)
        self._bounds.append(first)

    def count(self) -> int:
        """Count the entries, chunk by chunk."""
        return sum([len(chunk.data) for chunk in self._chunks]) // self._width

    # -- chunks

    def _count_in(self, chunk: EntryChunk, entry: bytes) -> None:
        """Add an entry to the sums of its chunk; this order has no sums, a subclass may."""

    def _count_out(self, chunk: EntryChunk, entry: bytes) -> None:
        """Subtract an entry from the sums of its chunk, in a subclass that has sums."""

    def _sum_up(self, chunk: EntryChunk) -> None:
        """Compute the sums of a new chunk, in a subclass that has sums."""

    def _last_of(self, chunk: EntryChunk) -> bytes:
        return bytes(chunk.data[-self._width :])

    def _chunk_of(self, key: bytes) -> int:
        """Return the number of the chunk in which this key lies."""
        return max(bisect_right(self._bounds, key) - 1, 0)

    def _chunk_with(self, key: bytes) -> int:
        """Return the number of the chunk with the first entry at or behind a key; the number of
        chunks if there is none."""
        index = self._chunk_of(key)
        if index < len(self._chunks) and self._last_of(self._chunks[index]) < key:
            index += 1
        return index

    def _first_from(self, chunk: EntryChunk, key: bytes) -> int:
        """Return how many entries of a chunk lie before a key."""
        data = chunk.data
        width: i64 = self._width
        size: i64 = min(len(key), self._width)
        low: i64 = 0
        high: i64 = len(data) // width
        while low < high:
            middle = (low + high) >> 1
            at = middle * width
            # A key that is shorter than an entry lies before all entries that begin with it.
            if data[at : at + size] < key:
                low = middle + 1
            else:
                high = middle
        return int(low)

    def _split(self, index: int) -> None:
        data = self._chunks[index].data
        middle = len(data) // self._width // 2 * self._width
        # Copy both halves: a bytearray that is cut in place keeps its memory.
        parts = [EntryChunk(data[:middle]), EntryChunk(data[middle:])]
        for part in parts:
            self._sum_up(part)
        self._chunks[index : index + 1] = parts
        self._bounds.insert(index + 1, bytes(parts[1].data[: self._width]))
