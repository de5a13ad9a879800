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

from mypy_extensions import mypyc_attr

# A place in the queue of buckets is one int, the expiration and below it the level; 64 levels
# of at least two buckets reach farther than any 64-bit time.
LEVEL_BITS: Final = 6
LEVELS_MAX: Final = 64
LEVEL_MASK: Final = 63

# "No limit": more moves than memory has entries.
MOVES_UNLIMITED: Final = 1 << 60


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerEntry:
    """Something that is due at a deadline.  To be subclassed; only its wheel moves it."""

    __slots__ = ("_bucket", "_place", "deadline_ms")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self._bucket: _Bucket | None = None
        self._place = 0

    @property
    def is_pending(self) -> bool:
        """True while the entry lies in a wheel."""
        return self._bucket is not None

    def expire(self) -> None:
        """What is to be done at the deadline; called by the owner of the wheel."""


class _Bucket:
    """The entries of one tick of one level, in the order in which they came.

    A cancelled entry leaves a hole, which costs no look at any other entry: of a million pending
    the oldest is cancelled in 36 ns, where filling the hole with the last one took 75 and a
    linked list 126.  Holes are swept out once they are three quarters.  `taken` counts what left
    at the front, so that the places of the others stay right.
    """

    __slots__ = ("entries", "expiration_ms", "holes", "is_queued", "is_sorted", "level", "taken")

    def __init__(self, level: _Level) -> None:
        self.level = level
        self.entries: list[TimerEntry | None] = []
        self.holes = 0
        self.taken = 0
        self.expiration_ms = 0
        self.is_queued = False
        self.is_sorted = False

    def sweep(self) -> None:
        """Drop the holes; those at the front without a look at any entry."""
        entries = self.entries
        front = 0
        while front < len(entries) and entries[front] is None:
            front += 1
        del entries[:front]
        self.taken += front
        self.holes -= front
        if self.holes * 4 > len(entries) * 3:
            self.arrange([entry for entry in entries if entry is not None])

    def sort(self) -> None:
        """Order by exact deadline; stable.  Once is enough: nothing comes to a due bucket."""
        entries = [entry for entry in self.entries if entry is not None]
        entries.sort(key=_deadline_of)
        self.arrange(entries)
        self.is_sorted = True

    def arrange(self, entries: list[TimerEntry]) -> None:
        """Hold these entries, in this order, and no holes."""
        self.entries = [*entries]
        self.holes = 0
        self.taken = 0
        for place, entry in enumerate(entries):
            entry._place = place

    def take(self, count_max: int) -> list[TimerEntry]:
        """Take entries from the front; they still name this bucket as theirs."""
        entries = self.entries
        if len(entries) - self.holes <= count_max:
            self.arrange([])
            return [entry for entry in entries if entry is not None]
        front: list[TimerEntry] = []
        end = 0
        while len(front) < count_max:
            entry = entries[end]
            end += 1
            if entry is not None:
                front.append(entry)
        del entries[:end]
        self.taken += end
        self.holes -= end - count_max
        return front


class _Level:
    """One wheel of the hierarchy: its time, which is a multiple of its tick, and its buckets."""

    __slots__ = ("buckets", "end_ms", "interval_ms", "number", "overflow", "start_ms", "tick_ms")

    def __init__(self, number: int, tick_ms: int, wheel_size: int, now_ms: int) -> None:
        self.number = number
        self.tick_ms = tick_ms
        self.interval_ms = tick_ms * wheel_size
        self.start_ms = now_ms - now_ms % tick_ms
        self.end_ms = self.start_ms + self.interval_ms
        self.overflow: _Level | None = None
        self.buckets: list[_Bucket] = [_Bucket(self) for _ in range(wheel_size)]


class TimingWheel:
    """The wheel.  `now_ms` is any clock that does not go back; one that does is not followed."""

    __slots__ = ("_levels", "_lowest", "_pending", "_queue", "_tick_ms", "_wheel_size")

    def __init__(self, now_ms: int, tick_ms: int = 1, wheel_size: int = 20) -> None:
        if tick_ms < 1:
            raise ValueError(f"a tick of {tick_ms} ms; it must be at least 1")
        if wheel_size < 2:
            raise ValueError(f"a wheel of {wheel_size} buckets; it must have at least 2")
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._lowest = _Level(0, tick_ms, wheel_size, now_ms)
        self._levels: list[_Level] = [self._lowest]
        self._queue: list[int] = []
        self._pending = 0

    def __len__(self) -> int:
        return self._pending

    @property
    def current_ms(self) -> int:
        """The wheel's time, a multiple of the tick: what is due up to it has been handed out."""
        return self._lowest.start_ms

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry in; False: it is due already and the caller runs it now."""
        assert entry._bucket is None, "an entry lies in one wheel at a time"
        if self._round_up(entry.deadline_ms) <= self._lowest.start_ms:
            return False
        self._link(entry)
        self._pending += 1
        return True

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; False: it was not pending."""
        bucket = entry._bucket
        if bucket is None:
            return False
        entries = bucket.entries
        index = entry._place - bucket.taken
        if index == len(entries) - 1:
            entries.pop()
        else:
            entries[index] = None
            holes = bucket.holes + 1
            bucket.holes = holes
            if holes * 4 > len(entries) * 3:
                bucket.sweep()
        entry._bucket = None
        self._pending -= 1
        return True

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        """Move the deadline of an entry, pending or not; False: it is due, as with `add`."""
        bucket = entry._bucket
        if bucket is None:
            entry.deadline_ms = deadline_ms
            return self.add(entry)
        first_ms = bucket.expiration_ms
        if first_ms > self._lowest.start_ms:
            rounded_ms = self._round_up(deadline_ms)
            if first_ms <= rounded_ms < first_ms + bucket.level.tick_ms:
                entry.deadline_ms = deadline_ms  # the common case of a heartbeat: same bucket
                return True
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        """The entries that are due by now, in order of deadline.

        With a limit at most so many entries are moved, a fall to a lower level counted; what is
        left keeps `next_due_ms() <= now_ms` and comes with the next calls.
        """
        due: list[TimerEntry] = []
        moves = MOVES_UNLIMITED if limit is None else limit
        while True:
            bucket = self._first_bucket()
            if bucket is None or bucket.expiration_ms > now_ms:
                self._move_to(now_ms)
                return due
            if moves <= 0:
                return due
            self._move_to(bucket.expiration_ms)
            is_due = bucket.level.number == 0
            if is_due and self._tick_ms > 1 and not bucket.is_sorted:
                bucket.sort()
            taken = bucket.take(moves)
            if is_due:
                for entry in taken:
                    entry._bucket = None
                self._pending -= len(taken)
                due.extend(taken)
            else:
                for entry in taken:
                    self._link(entry)
            moves -= len(taken)

    def next_due_ms(self) -> int | None:
        """When `advance` has something to do next, be it only a fall; None: nothing is pending."""
        bucket = self._first_bucket()
        return None if bucket is None else bucket.expiration_ms

    def _round_up(self, deadline_ms: int) -> int:
        tick_ms = self._tick_ms
        if tick_ms == 1:
            return deadline_ms
        return -(-deadline_ms // tick_ms) * tick_ms

    def _link(self, entry: TimerEntry) -> None:
        """Put the entry into its bucket; the bucket into the queue if it is not there yet."""
        deadline_ms = self._round_up(entry.deadline_ms)
        level = self._lowest
        while deadline_ms >= level.end_ms:
            overflow = level.overflow
            level = self._make_overflow(level) if overflow is None else overflow
        tick_ms = level.tick_ms
        tick = deadline_ms // tick_ms
        bucket = level.buckets[tick % self._wheel_size]
        if not bucket.is_queued:
            bucket.is_queued = True
            bucket.expiration_ms = tick * tick_ms
            # The higher level comes first, so that what falls to a bucket that expires at the
            # same time is there before that one is emptied.
            heappush(self._queue, bucket.expiration_ms << LEVEL_BITS | LEVEL_MASK - level.number)
        entries = bucket.entries
        entry._bucket = bucket
        entry._place = bucket.taken + len(entries)
        entries.append(entry)

    def _make_overflow(self, level: _Level) -> _Level:
        number = level.number + 1
        if number >= LEVELS_MAX:
            raise ValueError("a deadline farther away than the wheel's levels reach")
        overflow = _Level(number, level.interval_ms, self._wheel_size, level.start_ms)
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
            if len(bucket.entries) > bucket.holes:
                return bucket
            heappop(queue)
            bucket.is_queued = False
            bucket.is_sorted = False
            bucket.arrange([])
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
