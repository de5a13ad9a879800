"""Order of entries of one width, by their bytes, packed into chunks.

The entries lie in chunks, each in order and each behind the one before.  To add, to take away and
to find an entry cost a search among the chunks and one within a chunk, however many there are, and
nothing stays of those that have left.  An entry takes its own bytes of memory and little more.
Hot.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.errors import CorruptData

# A chunk that is full is split in two, or left as it is where the next entry comes behind it.
CHUNK_ENTRIES_MAX: Final = 1_000


class EntryChunk:
    """Entries in their order, with the sums over them that the order keeps."""

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
        # For each chunk bytes at or before its first entry and behind the chunk before.
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
        """Add an entry behind all others, as each is where all wait equally long."""
        chunks = self._chunks
        if not chunks or len(chunks[-1].data) >= CHUNK_ENTRIES_MAX * self._width:
            chunks.append(EntryChunk(bytearray()))
            self._bounds.append(entry)
        chunk = chunks[-1]
        chunk.data += entry
        self._count_in(chunk, entry)

    def remove(self, key: bytes) -> bytes:
        """Take away the first entry at or behind a key, which is there; return it."""
        index = self._chunk_with(key)
        chunk = self._chunks[index]
        at = self._first_from(chunk, key) * self._width
        entry = bytes(chunk.data[at : at + self._width])
        self._remove(index, at, entry)
        return entry

    def remove_first(self) -> None:
        """Take away the first entry, which is there."""
        self._remove(0, 0, self.first())

    def _remove(self, index: int, at: int, entry: bytes) -> None:
        chunk = self._chunks[index]
        del chunk.data[at : at + self._width]
        self._count_out(chunk, entry)
        if not chunk.data:
            del self._chunks[index]
            del self._bounds[index]

    def first(self) -> bytes:
        """Return the first entry, or b""."""
        return bytes(self._chunks[0].data[: self._width]) if self._chunks else b""

    def last(self) -> bytes:
        """Return the last entry, or b""."""
        return self._last_of(self._chunks[-1]) if self._chunks else b""

    def find(self, key: bytes) -> bytes:
        """Return the first entry that begins with these bytes, or b""."""
        found = self.from_key(key, 1)
        return found[0] if found and found[0].startswith(key) else b""

    def from_key(self, key: bytes, count_max: int) -> list[bytes]:
        """Return the entries at or behind a key, so many at most.

        Fewer say nothing: only an empty list means that there are no more.
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
        """Return entries at or behind a key, packed; b"" if there are no more."""
        index = self._chunk_with(key)
        if index == len(self._chunks):
            return b""
        chunk = self._chunks[index]
        return bytes(chunk.data[self._first_from(chunk, key) * self._width :])

    def add_block(self, data: bytes) -> None:
        """Add packed entries in their order, behind all others; `CorruptData` if they are not."""
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
        """Return how many entries there are; it goes through all chunks."""
        return sum([len(chunk.data) for chunk in self._chunks]) // self._width

    # -- chunks

    def _count_in(self, chunk: EntryChunk, entry: bytes) -> None:
        """Add an entry to the sums of its chunk."""

    def _count_out(self, chunk: EntryChunk, entry: bytes) -> None:
        """Take an entry out of the sums of its chunk."""

    def _sum_up(self, chunk: EntryChunk) -> None:
        """Make the sums of a new chunk."""

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
            # Shorter than an entry, a key lies before all that begin with it.
            if data[at : at + size] < key:
                low = middle + 1
            else:
                high = middle
        return int(low)

    def _split(self, index: int) -> None:
        data = self._chunks[index].data
        middle = len(data) // self._width // 2 * self._width
        # Copies: what is cut in place keeps the room that it had.
        parts = [EntryChunk(data[:middle]), EntryChunk(data[middle:])]
        for part in parts:
            self._sum_up(part)
        self._chunks[index : index + 1] = parts
        self._bounds.insert(index + 1, bytes(parts[1].data[: self._width]))
