"""Hierarchical timing wheel: add, cancel and reschedule in O(1), however many are pending.

A level has `wheel_size` buckets of one tick each; the tick of the next level is the whole
interval of this one.  An entry lies on the lowest level whose interval reaches its deadline,
and falls down the levels as time comes near.  Invariants: the ranges of the buckets of a level
never overlap, a bucket holds no entry that was due before its expiration, and a bucket is in
the queue at most once.  Deadlines round up to the tick, so no entry is ever early.  With the queue
of buckets the cost of a jump depends on the buckets and entries met, not on the ticks passed.

The owner of the wheel runs the entries that `advance` returns; the wheel itself calls no code.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, SupportsIndex

from tarry.timer.bucket import Bucket, Chunk, in_order
from tarry.timer.entry import TimerEntry, ms_of, round_up, why_not_added, why_not_moved

# An element of the queue is one int: a bucket's expiration, and in the lower bits its level.  64
# levels of at least two buckets reach farther than any 64-bit time.
LEVEL_BITS: Final = 6
LEVELS_MAX: Final = 64
LEVEL_MASK: Final = 63

# Moves of one part of an `advance` without a limit: a million entries take a fifth less time in
# parts than in one go (bench/timer.py).
PART_MOVES: Final = 1024

# Parts of a due tick longer than 1 ms: its entries are divided into at most so many, to sort them
# by their exact deadlines step by step.
PARTS_MAX: Final = 1000

# Buckets emptied by cancelling that one call removes from the queue.
EMPTY_BUCKETS_MAX: Final = 256


class _Level:
    """Level of the hierarchy: its time, which is a multiple of its tick, and its buckets."""

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
        self.buckets: list[Bucket] = [Bucket(owner, tick_ms) for _ in range(wheel_size)]


class TimingWheel:
    """Hierarchical timing wheel: `advance` returns each entry once it is due.

    `now_ms` is any clock in ints of milliseconds; when it goes back it is not followed.
    Deadlines round up to a multiple of `tick_ms`; a level has `wheel_size` buckets.  After
    Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, with Kafka's queue of
    buckets.  Not thread-safe; `SystemTimer` is.
    """

    __slots__ = (
        "_levels",
        "_lowest",
        "_part",
        "_parts",
        "_pending",
        "_queue",
        "_tick_ms",
        "_wheel_size",
        "now_ms",
    )

    def __init__(
        self, now_ms: SupportsIndex, tick_ms: SupportsIndex = 1, wheel_size: SupportsIndex = 20
    ) -> None:
        now_ms = ms_of(now_ms)
        tick_ms = ms_of(tick_ms)
        wheel_size = ms_of(wheel_size)
        if tick_ms < 1:
            raise ValueError(f"a tick of {tick_ms} ms; it must be at least 1")
        if wheel_size < 2:
            raise ValueError(f"a wheel of {wheel_size} buckets; it must have at least 2")
        # Time that the owner reported last; `current_ms` is the time up to which entries were
        # returned.
        self.now_ms = now_ms
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._lowest = _Level(self, 0, tick_ms, wheel_size, now_ms)
        self._levels: list[_Level] = [self._lowest]
        self._queue: list[int] = []
        self._pending = 0
        # Parts of the due tick by exact deadlines, and the first of them that is not empty.
        self._parts: list[Bucket] = []
        self._part = 0

    def __len__(self) -> int:
        return self._pending

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.current_ms} ms, {len(self)} pending>"

    @property
    def current_ms(self) -> int:
        """Time of the wheel, a multiple of the tick; with a limit that of the last entry given."""
        return self._lowest.start_ms

    def set_time(self, now_ms: int) -> None:
        """Report the time before an `advance`, for waits that begin and end until then."""
        self.now_ms = max(self.now_ms, now_ms)

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry; return False if it is due already, and the caller runs it now.

        ValueError if it is pending already, here or in another timer.
        """
        if entry._holder is not None:
            raise why_not_added(entry, self)
        due_ms = round_up(entry.deadline_ms, self._tick_ms)
        if due_ms <= self._lowest.start_ms:
            return False
        self._link(entry, due_ms)
        self._pending += 1
        return True

    def add_all(self, entries: list[TimerEntry]) -> list[TimerEntry]:
        """Take the entries; return those that are due already, which the caller runs now.

        ValueError if one of them is pending already or is twice in the list; none is added then.
        """
        # Repeats the loop of `add_each`: compiled code calls `add` slowly through a protocol.
        due: list[TimerEntry] = []
        count = 0
        try:
            for entry in entries:
                if not self.add(entry):
                    due.append(entry)
                count += 1
        except ValueError:
            for entry in entries[:count]:
                self.cancel(entry)
            raise
        return due

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; return False if not pending.  ValueError: another timer has it."""
        holder = entry._holder
        if holder is None:
            return False
        if holder.owner is not self:
            raise why_not_moved()
        entries = holder.entries
        index = entry._place - holder.taken
        if not 0 <= index < len(entries) or entries[index] is not entry:
            pass  # `advance` has just taken it, and will skip it
        elif index == len(entries) - 1:
            entries.pop()
        else:
            entries[index] = None
            holes = holder.holes + 1
            holder.holes = holes
            if holes * 4 > len(entries) * 3:
                assert isinstance(holder, Chunk)
                holder.sweep()
        entry._holder = None
        self._pending -= 1
        return True

    def reschedule(self, entry: TimerEntry, deadline_ms: SupportsIndex) -> bool:
        """Move the deadline of an entry, pending or not; return False if due, as with `add`.

        ValueError if another timer has it, or if the deadline is beyond all levels; nothing changes
        then.
        """
        if not isinstance(deadline_ms, int):
            deadline_ms = ms_of(deadline_ms)
        holder = entry._holder
        if holder is None:
            entry.deadline_ms = deadline_ms
            return self.add(entry)
        if holder.owner is not self:
            raise why_not_moved()
        assert isinstance(holder, Chunk)
        bucket = holder.bucket
        first_ms = bucket.expiration_ms
        due_ms = round_up(deadline_ms, self._tick_ms)
        stays = first_ms <= due_ms < first_ms + bucket.tick_ms
        if stays and first_ms > self._lowest.start_ms:
            entry.deadline_ms = deadline_ms  # the common case of a heartbeat
            return True
        self._reach(due_ms)  # raises before the entry has left its place
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: SupportsIndex, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by `now_ms`, in order of deadline.

        With a limit at most so many entries are moved; a fall to a lower level counts too.  If some
        are left, `next_due_ms() <= now_ms` holds, and the next calls return them.
        """
        now_ms = ms_of(now_ms)
        self.set_time(now_ms)
        if limit is not None:
            return self._advance_part(now_ms, limit)
        due = self._advance_part(now_ms, PART_MOVES)
        while True:
            bucket = self._first_bucket()
            if bucket is None or bucket.expiration_ms > now_ms:
                return due
            due.extend(self._advance_part(now_ms, PART_MOVES))

    def next_due_ms(self) -> int | None:
        """Return when `advance` has work next, even if entries only fall a level; None if no entry
        is pending.
        """
        bucket = self._first_bucket()
        return None if bucket is None else bucket.expiration_ms

    def _advance_part(self, now_ms: int, moves: int) -> list[TimerEntry]:
        """Take out entries that are due by now, with at most `moves` moves."""
        due: list[TimerEntry] = []
        while True:
            bucket = self._first_bucket()
            if bucket is None or bucket.expiration_ms > now_ms:
                self._move_to(now_ms)
                break
            if moves <= 0:
                break
            if bucket.is_empty():
                moves -= EMPTY_BUCKETS_MAX
                continue
            self._move_to(bucket.expiration_ms)
            chunk = bucket.first_chunk()
            taken = chunk.take(moves)
            is_due = bucket.tick_ms == 1 or not bucket.is_queued
            is_lowest = bucket.tick_ms == self._tick_ms
            if is_lowest and not is_due and self._part == len(self._parts) and bucket.is_empty():
                taken = in_order(taken)
                is_due = True
            for entry in taken:
                if entry is None or entry._holder is not chunk:
                    continue
                moves -= 1
                if is_due:
                    entry._holder = None
                    due.append(entry)
                elif is_lowest:
                    self._divide(entry)
                else:
                    self._link(entry, round_up(entry.deadline_ms, self._tick_ms))
        self._pending -= len(due)
        return due

    def _link(self, entry: TimerEntry, due_ms: int) -> None:
        """Put the entry into its bucket, and the bucket into the queue if it is not there yet."""
        level = self._lowest
        while due_ms >= level.end_ms:
            overflow = level.overflow
            level = self._make_overflow(level) if overflow is None else overflow
        tick_ms = level.tick_ms
        bucket = level.buckets[due_ms // tick_ms % self._wheel_size]
        if not bucket.is_queued:
            bucket.is_queued = True
            # No product, for the reason given at `round_up`.
            bucket.expiration_ms = due_ms - due_ms % tick_ms
            # A higher level comes first at equal times, so that its entries fall into a bucket of a
            # lower one before that bucket is emptied.
            heappush(self._queue, bucket.expiration_ms << LEVEL_BITS | LEVEL_MASK - level.number)
        bucket.append(entry)

    def _divide(self, entry: TimerEntry) -> None:
        """Put an entry of the due tick into its part of the tick, by its exact deadline."""
        tick_ms = self._tick_ms
        parts = self._parts
        if not parts:
            parts = [Bucket(self, 1) for _ in range(min(tick_ms, PARTS_MAX))]
            self._parts = parts
            self._part = len(parts)
        since_ms = entry.deadline_ms - self._lowest.start_ms + tick_ms - 1
        number = max(0, min(since_ms * len(parts) // tick_ms, len(parts) - 1))
        part = parts[number]
        part.expiration_ms = self._lowest.start_ms
        part.is_sorted = False
        part.append(entry)
        self._part = min(self._part, number)

    def _reach(self, due_ms: int) -> None:
        """Make the levels that this deadline needs."""
        while due_ms >= self._levels[-1].end_ms:
            self._make_overflow(self._levels[-1])

    def _make_overflow(self, level: _Level) -> _Level:
        number = level.number + 1
        if number >= LEVELS_MAX:
            raise ValueError("the deadline is farther away than the wheel's levels reach")
        overflow = _Level(self, number, level.interval_ms, self._wheel_size, level.start_ms)
        if level.overflow is not None:
            return level.overflow  # a finalizer came between, and has made it
        level.overflow = overflow
        self._levels.append(overflow)
        return overflow

    def _first_bucket(self) -> Bucket | None:
        """Return the bucket that expires first; remove buckets emptied by `cancel` from the queue.

        If there are more than EMPTY_BUCKETS_MAX of these, the answer is an empty bucket.
        """
        part = self._first_part()
        queue = self._queue
        popped = 0
        while queue:
            place = queue[0]
            expiration_ms = place >> LEVEL_BITS
            if part is not None and expiration_ms > part.expiration_ms:
                return part
            level = self._levels[LEVEL_MASK - (place & LEVEL_MASK)]
            bucket = level.buckets[expiration_ms // level.tick_ms % self._wheel_size]
            assert bucket.expiration_ms == expiration_ms
            if popped == EMPTY_BUCKETS_MAX or not bucket.is_empty():
                return bucket
            heappop(queue)
            bucket.clear()
            popped += 1
        return part

    def _first_part(self) -> Bucket | None:
        """Return the first part of the divided tick that is not empty, in exact order."""
        parts = self._parts
        while self._part < len(parts):
            part = parts[self._part]
            if not part.is_empty():
                if self._tick_ms > PARTS_MAX and not part.is_sorted:
                    part.sort()
                return part
            part.clear()
            self._part += 1
        return None

    def _move_to(self, now_ms: int) -> None:
        """Move the time of every level on; if one does not move, those above do not either."""
        level: _Level | None = self._lowest
        while level is not None:
            start_ms = now_ms - now_ms % level.tick_ms
            if start_ms <= level.start_ms:
                return
            level.start_ms = start_ms
            level.end_ms = start_ms + level.interval_ms
            level = level.overflow
