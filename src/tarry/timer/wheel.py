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
from typing import Final, SupportsIndex

from tarry.timer.bucket import Bucket, Chunk, in_order
from tarry.timer.entry import TimerEntry, ms_of, round_up, why_not_added, why_not_moved

# A place in the queue of buckets is one int, the expiration and below it the level; 64 levels
# of at least two buckets reach farther than any 64-bit time.
LEVEL_BITS: Final = 6
LEVELS_MAX: Final = 64
LEVEL_MASK: Final = 63

# Moves of one part of an `advance` without a limit: a million entries come a fifth cheaper in
# parts than in one go (bench/timer.py).
PART_MOVES: Final = 1024

# A full tick longer than 1 ms is divided into as many parts at most when it is due, to bring its
# entries into the order of their exact deadlines step by step.
PARTS_MAX: Final = 1000

# Buckets emptied by cancelling that one call takes out of the queue.
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
    """Hierarchical timing wheel: what is added comes back from `advance` once it is due.

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
        # The time that the owner reported last; `current_ms` is how far entries were given out.
        self.now_ms = now_ms
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._lowest = _Level(self, 0, tick_ms, wheel_size, now_ms)
        self._levels: list[_Level] = [self._lowest]
        self._queue: list[int] = []
        self._pending = 0
        # The tick that is due, divided by exact deadlines, and its first part that is not empty.
        self._parts: list[Bucket] = []
        self._part = 0

    def __len__(self) -> int:
        return self._pending

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.current_ms} ms, {len(self)} pending>"

    @property
    def current_ms(self) -> int:
        """The wheel's time, a multiple of the tick; with a limit that of the last entry given."""
        return self._lowest.start_ms

    def set_time(self, now_ms: int) -> None:
        """Report the time before an `advance`, for waits that begin and end until then."""
        self.now_ms = max(self.now_ms, now_ms)

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry in; False: it is due already and the caller runs it now.

        ValueError: it is pending already, here or in another timer.
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
        """Take the entries in; return those that are due already, which the caller runs now.

        ValueError: one of them is pending already or stands twice in the list; none is added.
        """
        # The loop of `add_each` again: through a protocol, compiled code finds `add` by its name.
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
        """Take the entry out; False: it was not pending.  ValueError: another timer has it."""
        holder = entry._holder
        if holder is None:
            return False
        if holder.owner is not self:
            raise why_not_moved()
        entries = holder.entries
        index = entry._place - holder.taken
        if not 0 <= index < len(entries) or entries[index] is not entry:
            pass  # `advance` has it in its hand, and leaves it out then
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
        """Move the deadline of an entry, pending or not; False: it is due, as with `add`.

        ValueError: another timer has it, or the deadline is beyond all levels; it stays then.
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
        self._reach(due_ms)  # refuses before the entry has left its place
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: SupportsIndex, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by now, in order of deadline.

        With a limit at most so many entries are moved, a fall to a lower level counted; what is
        left keeps `next_due_ms() <= now_ms` and comes with the next calls.
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
        """Return when `advance` has something to do next, be it only a fall; None if nothing is
        pending.
        """
        bucket = self._first_bucket()
        return None if bucket is None else bucket.expiration_ms

    def _advance_part(self, now_ms: int, moves: int) -> list[TimerEntry]:
        """Take out what is due by now, with so many moves at most."""
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
        """Put the entry into its bucket; the bucket into the queue if it is not there yet."""
        level = self._lowest
        while due_ms >= level.end_ms:
            overflow = level.overflow
            level = self._make_overflow(level) if overflow is None else overflow
        tick_ms = level.tick_ms
        bucket = level.buckets[due_ms // tick_ms % self._wheel_size]
        if not bucket.is_queued:
            bucket.is_queued = True
            # No product, for the reason that stands with `round_up`.
            bucket.expiration_ms = due_ms - due_ms % tick_ms
            # The higher level comes first, so that what falls to a bucket that expires at the
            # same time is there before that one is emptied.
            heappush(self._queue, bucket.expiration_ms << LEVEL_BITS | LEVEL_MASK - level.number)
        bucket.append(entry)

    def _divide(self, entry: TimerEntry) -> None:
        """Put an entry of a tick that is due into its part of the tick, by its exact deadline."""
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
        """Make the levels that a deadline needs."""
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
        """Return the bucket that expires first; those emptied by `cancel` leave the queue on the
        way.

        Of very many of these some are left, and then an empty bucket is the answer.
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
        """Move the time of every level on; a level that stays keeps those above it in place."""
        level: _Level | None = self._lowest
        while level is not None:
            start_ms = now_ms - now_ms % level.tick_ms
            if start_ms <= level.start_ms:
                return
            level.start_ms = start_ms
            level.end_ms = start_ms + level.interval_ms
            level = level.overflow
