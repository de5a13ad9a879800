"""Hierarchical timing wheel: add, cancel and reschedule in O(1), however much is pending.

A level has `wheel_size` buckets of one tick each; the tick of the next level is the whole
interval of this one.  An entry lies on the lowest level whose interval reaches its deadline,
and falls down the levels as time comes near.  Invariants: the ranges of the buckets of a level
never overlap, a bucket holds nothing that was due before its expiration, and a bucket is in
the queue at most once.  Deadlines round up to the tick, so nothing is ever early.  The queue
of buckets makes a jump cost by the buckets and entries met, not by the ticks passed.

Who owns the wheel runs the entries that `advance` returns; the wheel itself calls nobody.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from tarry.timer.entry import Holder, TimerEntry, check_ms, why_not_added, why_not_moved

# A place in the queue of buckets is one int, the expiration and below it the level; 64 levels
# of at least two buckets reach farther than any 64-bit time.
LEVEL_BITS: Final = 6
LEVELS_MAX: Final = 64
LEVEL_MASK: Final = 63

# "No limit": more moves than memory has entries.
MOVES_UNLIMITED: Final = 1 << 60

# What one sweep of holes or one step of `advance` may have to look at; 4 to 8 KiB of list.
CHUNK_ENTRIES_MAX: Final = 1024

# Chunks of a bucket below which nobody looks for emptied ones.
CHUNKS_MIN: Final = 16


class _Chunk(Holder):
    """A stretch of a bucket: its entries in the order in which they came.

    A cancelled entry leaves a hole, which costs no look at any other entry: of a million pending
    the oldest is cancelled in 36 ns, where filling the hole with the last one took 75 and a
    linked list 126.  Holes are swept out once they are three quarters.  A bucket is made of
    chunks so that neither sweeping nor taking the first few of ten million touches the rest.
    """

    __slots__ = ("bucket",)

    def __init__(self, owner: object, bucket: _Bucket) -> None:
        super().__init__(owner)
        self.bucket = bucket

    def is_empty(self) -> bool:
        return len(self.entries) == self.holes

    def sweep(self) -> None:
        """Drop the holes; those at the front, the most of time-outs, without a look at the rest."""
        entries = self.entries
        front = 0
        while front < len(entries) and entries[front] is None:
            front += 1
        del entries[:front]
        self.taken += front
        self.holes -= front
        if self.holes * 4 > len(entries) * 3:
            self.hold(self.live())

    def hold(self, entries: list[TimerEntry]) -> None:
        """Hold these entries, in this order, and no holes."""
        self.entries = [*entries]
        self.holes = 0
        self.taken = 0
        for place, entry in enumerate(entries):
            entry._holder = self
            entry._place = place

    def live(self) -> list[TimerEntry]:
        """What is not a hole, in order."""
        return [entry for entry in self.entries if entry is not None]

    def take(self, count_max: int) -> list[TimerEntry | None]:
        """Take entries from the front, holes among them; they still name this chunk as theirs."""
        entries = self.entries
        if len(entries) - self.holes <= count_max:
            self.hold([])
            return entries
        count = 0
        end = 0
        while count < count_max:
            if entries[end] is not None:
                count += 1
            end += 1
        first = entries[:end]
        del entries[:end]
        self.taken += end
        self.holes -= end - count
        return first


class _Bucket:
    """The entries of one tick of one level: full chunks, and the tail that new ones go to."""

    __slots__ = ("chunks", "chunks_max", "expiration_ms", "is_queued", "is_sorted", "level", "tail")

    def __init__(self, owner: object, level: _Level) -> None:
        self.level = level
        self.tail = _Chunk(owner, self)
        self.chunks: list[_Chunk] = []
        self.chunks_max = CHUNKS_MIN
        self.expiration_ms = 0
        self.is_queued = False
        self.is_sorted = False

    def pending(self) -> list[TimerEntry]:
        """A copy of what lies here, in order."""
        entries: list[TimerEntry] = []
        for chunk in self.chunks:
            entries.extend(chunk.live())
        entries.extend(self.tail.live())
        return entries

    def grow(self) -> _Chunk:
        """Begin a new tail.  Chunks that cancelling emptied go when the others have doubled."""
        chunks = self.chunks
        if len(chunks) >= self.chunks_max:
            chunks = [chunk for chunk in chunks if not chunk.is_empty()]
            self.chunks = chunks
            self.chunks_max = max(CHUNKS_MIN, 2 * len(chunks))
        chunks.append(self.tail)
        self.tail = _Chunk(self.tail.owner, self)
        return self.tail

    def is_empty(self) -> bool:
        """Whether nothing is left; drops the chunks at the front that cancelling emptied."""
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

    def clear(self) -> None:
        """Make an empty bucket ready for its next turn, without the holes and the space."""
        self.tail.hold([])
        self.chunks_max = CHUNKS_MIN
        self.is_queued = False
        self.is_sorted = False

    def sort(self) -> None:
        """Order by exact deadline; stable.  Once is enough: nothing comes to a due bucket."""
        entries = self.pending()
        entries.sort(key=_deadline_of)
        self.chunks = []
        self.tail.hold(entries[:CHUNK_ENTRIES_MAX])
        for start in range(CHUNK_ENTRIES_MAX, len(entries), CHUNK_ENTRIES_MAX):
            self.grow().hold(entries[start : start + CHUNK_ENTRIES_MAX])
        self.is_sorted = True

    def first_chunk(self) -> _Chunk:
        """Where the oldest entry lies, if the bucket is not empty."""
        chunks = self.chunks
        return chunks[0] if chunks else self.tail


class _Level:
    """One wheel of the hierarchy: its time, which is a multiple of its tick, and its buckets."""

    __slots__ = ("buckets", "end_ms", "interval_ms", "number", "overflow", "start_ms", "tick_ms")

    def __init__(
        self, owner: object, number: int, tick_ms: int, wheel_size: int, now_ms: int
    ) -> None:
        self.number = number
        self.tick_ms = tick_ms
        self.interval_ms = tick_ms * wheel_size
        self.start_ms = now_ms - now_ms % tick_ms
        self.end_ms = self.start_ms + self.interval_ms
        self.overflow: _Level | None = None
        self.buckets: list[_Bucket] = [_Bucket(owner, self) for _ in range(wheel_size)]


class TimingWheel:
    """Hierarchical timing wheel: what is added comes back from `advance` once it is due.

    `now_ms` is any clock in ints of milliseconds; when it goes back it is not followed.
    Deadlines round up to a multiple of `tick_ms`; a level has `wheel_size` buckets.  After
    Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, with Kafka's queue of
    buckets.  Not thread-safe; `SystemTimer` is.
    """

    __slots__ = ("_levels", "_lowest", "_pending", "_queue", "_tick_ms", "_wheel_size")

    def __init__(self, now_ms: int, tick_ms: int = 1, wheel_size: int = 20) -> None:
        for number in (now_ms, tick_ms, wheel_size):
            check_ms(number)
        if tick_ms < 1:
            raise ValueError(f"a tick of {tick_ms} ms; it must be at least 1")
        if wheel_size < 2:
            raise ValueError(f"a wheel of {wheel_size} buckets; it must have at least 2")
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._lowest = _Level(self, 0, tick_ms, wheel_size, now_ms)
        self._levels: list[_Level] = [self._lowest]
        self._queue: list[int] = []
        self._pending = 0

    def __len__(self) -> int:
        return self._pending

    @property
    def current_ms(self) -> int:
        """The wheel's time, a multiple of the tick; with a limit that of the last entry given."""
        return self._lowest.start_ms

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry in; False: it is due already and the caller runs it now.

        ValueError: it is pending already, here or in another timer.
        """
        if entry._holder is not None:
            raise why_not_added(entry, self)
        due_ms = self._round_up(entry.deadline_ms)
        if due_ms <= self._lowest.start_ms:
            return False
        self._link(entry, due_ms)
        self._pending += 1
        return True

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; False: it was not pending.  ValueError: another timer has it."""
        holder = entry._holder
        if holder is None:
            return False
        if holder.owner is not self:
            raise why_not_moved()
        entries = holder.entries
        index = entry._place - holder.taken
        if index == len(entries) - 1:
            entries.pop()
        else:
            entries[index] = None
            holes = holder.holes + 1
            holder.holes = holes
            if holes * 4 > len(entries) * 3:
                assert isinstance(holder, _Chunk)
                holder.sweep()
        entry._holder = None
        self._pending -= 1
        return True

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        """Move the deadline of an entry, pending or not; False: it is due, as with `add`.

        ValueError: another timer has it, or the deadline is beyond all levels; it stays then.
        """
        if not isinstance(deadline_ms, int):
            check_ms(deadline_ms)
        holder = entry._holder
        if holder is None:
            entry.deadline_ms = deadline_ms
            return self.add(entry)
        if holder.owner is not self:
            raise why_not_moved()
        assert isinstance(holder, _Chunk)
        bucket = holder.bucket
        first_ms = bucket.expiration_ms
        due_ms = self._round_up(deadline_ms)
        stays = first_ms <= due_ms < first_ms + bucket.level.tick_ms
        if stays and first_ms > self._lowest.start_ms:
            entry.deadline_ms = deadline_ms  # the common case of a heartbeat
            return True
        self._reach(due_ms)  # refuses before the entry has left its place
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        """The entries that are due by now, in order of deadline.

        With a limit at most so many entries are moved, a fall to a lower level counted; what is
        left keeps `next_due_ms() <= now_ms` and comes with the next calls.
        """
        check_ms(now_ms)
        due: list[TimerEntry] = []
        moves = MOVES_UNLIMITED if limit is None else limit
        while True:
            bucket = self._first_bucket()
            if bucket is None or bucket.expiration_ms > now_ms:
                self._move_to(now_ms)
                break
            if moves <= 0:
                break
            self._move_to(bucket.expiration_ms)
            is_due = bucket.level.number == 0
            if is_due and self._tick_ms > 1 and not bucket.is_sorted:
                bucket.sort()
            for entry in bucket.first_chunk().take(moves):
                if entry is None:
                    continue
                moves -= 1
                if is_due:
                    entry._holder = None
                    due.append(entry)
                else:
                    self._link(entry, self._round_up(entry.deadline_ms))
        self._pending -= len(due)
        return due

    def next_due_ms(self) -> int | None:
        """When `advance` has something to do next, be it only a fall; None: nothing is pending."""
        bucket = self._first_bucket()
        return None if bucket is None else bucket.expiration_ms

    def _round_up(self, deadline_ms: int) -> int:
        tick_ms = self._tick_ms
        if tick_ms == 1:
            return deadline_ms
        return -(-deadline_ms // tick_ms) * tick_ms

    def _link(self, entry: TimerEntry, due_ms: int) -> None:
        """Put the entry into its bucket; the bucket into the queue if it is not there yet."""
        level = self._lowest
        while due_ms >= level.end_ms:
            overflow = level.overflow
            level = self._make_overflow(level) if overflow is None else overflow
        tick_ms = level.tick_ms
        tick = due_ms // tick_ms
        bucket = level.buckets[tick % self._wheel_size]
        if not bucket.is_queued:
            bucket.is_queued = True
            bucket.expiration_ms = tick * tick_ms
            # The higher level comes first, so that what falls to a bucket that expires at the
            # same time is there before that one is emptied.
            heappush(self._queue, bucket.expiration_ms << LEVEL_BITS | LEVEL_MASK - level.number)
        chunk = bucket.tail
        entries = chunk.entries
        count = len(entries)
        if count >= CHUNK_ENTRIES_MAX:
            chunk = bucket.grow()
            entries = chunk.entries
            count = 0
        entry._holder = chunk
        entry._place = chunk.taken + count
        entries.append(entry)

    def _reach(self, due_ms: int) -> None:
        """Make the levels that a deadline needs."""
        while due_ms >= self._levels[-1].end_ms:
            self._make_overflow(self._levels[-1])

    def _make_overflow(self, level: _Level) -> _Level:
        number = level.number + 1
        if number >= LEVELS_MAX:
            raise ValueError("the deadline is farther away than the wheel's levels reach")
        overflow = _Level(self, number, level.interval_ms, self._wheel_size, level.start_ms)
        level.overflow = overflow
        self._levels.append(overflow)
        return overflow

    def _first_bucket(self) -> _Bucket | None:
        """The bucket that expires first; those emptied by `cancel` leave the queue on the way."""
        queue = self._queue
        while queue:
            place = queue[0]
            level = self._levels[LEVEL_MASK - (place & LEVEL_MASK)]
            expiration_ms = place >> LEVEL_BITS
            bucket = level.buckets[expiration_ms // level.tick_ms % self._wheel_size]
            assert bucket.expiration_ms == expiration_ms
            if not bucket.is_empty():
                return bucket
            heappop(queue)
            bucket.clear()
        return None

    def _move_to(self, now_ms: int) -> None:
        """Move the time of every level on; a level that stays keeps those above it in place."""
        level: _Level | None = self._lowest
        while level is not None:
            start_ms = now_ms - now_ms % level.tick_ms
            if start_ms <= level.start_ms:
                return
            level.start_ms = start_ms
            level.end_ms = start_ms + level.interval_ms
            level = level.overflow


def _deadline_of(entry: TimerEntry) -> int:
    return entry.deadline_ms
