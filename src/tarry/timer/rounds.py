"""Wheel with rounds under the contract of the hierarchical wheel: to compare with.

Netty's `HashedWheelTimer` waits this way.  An entry lies in bucket `tick % wheel_size` however far
its deadline is, and waits there for as many rounds of the wheel as are between.  Adding and
cancelling are O(1) as with levels.  But emptying a bucket looks at every entry in it, also at those
of later rounds, so many entries far away make every round expensive.  The rounds are not counted
down: they follow from the deadline.  Each bucket has a tick before which none of its entries is
due, so a jump skips rounds, and its cost depends on the entries, not on the ticks passed.

Invariants: no bucket's `first_tick` is later than its earliest entry; the entries of a tick that a
limit left over lie in `_due` alone, and are returned before any others.
"""

from __future__ import annotations

from typing import Final, SupportsIndex

from tarry.timer.entry import (
    Holder,
    TimerEntry,
    deadline_of,
    ms_of,
    why_not_added,
    why_not_moved,
)
from tarry.timer.pure import add_each

# Number of moves that means no limit: more than memory has entries.
MOVES_UNLIMITED: Final = 1 << 60


class _Bucket(Holder):
    """Entries of every `wheel_size`-th tick in the order in which they came.

    An entry that leaves leaves a hole; holes are swept out once they are three quarters, as in the
    wheel.  Only the last entry may leave without one, so `taken` stays 0.
    """

    __slots__ = ("first_tick",)

    def __init__(self, owner: object) -> None:
        super().__init__(owner)
        self.first_tick = 0

    def is_empty(self) -> bool:
        return len(self.entries) == self.holes

    def hold(self, entries: list[TimerEntry]) -> None:
        """Hold these entries, in this order, and no holes."""
        self.entries = [*entries]
        self.holes = 0
        for place, entry in enumerate(entries):
            entry._holder = self
            entry._place = place

    def maybe_sweep(self) -> None:
        if self.holes * 4 > len(self.entries) * 3:
            self.hold([entry for entry in self.entries if entry is not None])


class RoundsTimer:
    """Wheel with rounds under the contract of `TimingWheel`, which see; to compare with.

    `now_ms` is any clock in ints of milliseconds; when it goes back it is not followed.
    Deadlines round up to a multiple of `tick_ms` (at least 1, else ValueError); the wheel has
    `wheel_size` buckets (at least 2).  After Netty's `HashedWheelTimer`, 512 buckets as there.
    Not thread-safe; under `SystemTimer` it may be used by threads.
    """

    __slots__ = ("_buckets", "_current_tick", "_due", "_pending", "_tick_ms", "_wheel_size")

    def __init__(
        self, now_ms: SupportsIndex, tick_ms: SupportsIndex = 1, wheel_size: SupportsIndex = 512
    ) -> None:
        now_ms = ms_of(now_ms)
        tick_ms = ms_of(tick_ms)
        wheel_size = ms_of(wheel_size)
        if tick_ms < 1:
            raise ValueError(f"a tick of {tick_ms} ms; it must be at least 1")
        if wheel_size < 2:
            raise ValueError(f"a wheel of {wheel_size} buckets; it must have at least 2")
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._current_tick = now_ms // tick_ms
        self._buckets: list[_Bucket] = [_Bucket(self) for _ in range(wheel_size)]
        # Due entries that a limit left over, the next one last.
        self._due = _Bucket(self)
        self._pending = 0

    def __len__(self) -> int:
        return self._pending

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.current_ms} ms, {len(self)} pending>"

    @property
    def current_ms(self) -> int:
        """Time of the timer, a multiple of the tick; with a limit that of the last entry given."""
        return self._ms_of(self._current_tick)

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry; return False if it is due already, and the caller runs it now.

        ValueError if it is pending already, here or in another timer.
        """
        if entry._holder is not None:
            raise why_not_added(entry, self)
        tick = self._tick_of(entry.deadline_ms)
        if tick <= self._current_tick:
            return False
        bucket = self._buckets[tick % self._wheel_size]
        if bucket.is_empty():
            bucket.hold([])
            bucket.first_tick = tick
        elif tick < bucket.first_tick:
            bucket.first_tick = tick
        entries = bucket.entries
        entry._holder = bucket
        entry._place = len(entries)
        entries.append(entry)
        self._pending += 1
        return True

    def add_all(self, entries: list[TimerEntry]) -> list[TimerEntry]:
        """Take the entries; return those that are due already, which the caller runs now.

        ValueError if one of them is pending already or is twice in the list; none is added then.
        """
        return add_each(self, entries)

    def cancel(self, entry: TimerEntry) -> bool:
        """Take the entry out; return False if not pending.  ValueError: another timer has it."""
        holder = entry._holder
        if holder is None:
            return False
        if holder.owner is not self:
            raise why_not_moved()
        entries = holder.entries
        place = entry._place
        if place == len(entries) - 1:
            entries.pop()
        else:
            entries[place] = None
            holder.holes += 1
            assert isinstance(holder, _Bucket)
            holder.maybe_sweep()
        entry._holder = None
        self._pending -= 1
        return True

    def reschedule(self, entry: TimerEntry, deadline_ms: SupportsIndex) -> bool:
        """Move the deadline of an entry, pending or not; return False if due, as with `add`.

        Among ties a moved entry is the last.
        """
        deadline_ms = ms_of(deadline_ms)
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: SupportsIndex, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by `now_ms`, by exact deadline, then by adding.

        At most `limit` entries are returned; looks at entries of a later round are not counted.  If
        some are left, `next_due_ms() <= now_ms` holds, and the next calls return them.
        """
        now_ms = ms_of(now_ms)
        now_tick = now_ms // self._tick_ms
        moves = MOVES_UNLIMITED if limit is None else limit
        due: list[TimerEntry] = []
        if now_tick < self._current_tick:
            return due
        while True:
            if self._due.is_empty():
                bucket = self._first_bucket(now_tick)
                if bucket is None:
                    self._current_tick = now_tick
                    return due
                if moves <= 0:
                    return due
                self._gather(bucket)
            elif moves <= 0:
                return due
            else:
                entry = self._due.entries.pop()
                if entry is None:
                    self._due.holes -= 1
                    continue
                entry._holder = None
                self._pending -= 1
                due.append(entry)
                moves -= 1

    def next_due_ms(self) -> int | None:
        """Return when `advance` has work next, even if it only looks at entries; None if no entry
        is pending.
        """
        if not self._due.is_empty():
            return self._ms_of(self._current_tick)
        bucket = self._first_bucket(None)
        return None if bucket is None else self._ms_of(bucket.first_tick)

    def _ms_of(self, tick: int) -> int:
        # In compiled code the product of large ints is slow, and Ctrl-C in the middle of it is
        # fatal.
        return tick if self._tick_ms == 1 else tick * self._tick_ms

    def _tick_of(self, deadline_ms: int) -> int:
        """Return the first tick that is not before the deadline."""
        return -(-deadline_ms // self._tick_ms)

    def _first_bucket(self, last_tick: int | None) -> _Bucket | None:
        """Return the bucket that may have the first due entry; None if none up to this tick.

        The search goes round once at most.  It ends early at a bucket with entries of this round,
        because the buckets before it have entries of later rounds only.
        """
        if self._pending == 0:
            return None
        first: _Bucket | None = None
        tick = self._current_tick
        for _ in range(self._wheel_size):
            tick += 1
            if last_tick is not None and tick > last_tick:
                return None
            bucket = self._buckets[tick % self._wheel_size]
            if bucket.is_empty():
                continue
            if bucket.first_tick <= tick:
                return bucket
            if first is None or bucket.first_tick < first.first_tick:
                first = bucket
        if first is None or (last_tick is not None and first.first_tick > last_tick):
            return None
        return first

    def _gather(self, bucket: _Bucket) -> None:
        """Move the time to the bucket's first tick, and the entries due then to `_due`."""
        tick = max(self._current_tick, bucket.first_tick)
        self._current_tick = tick
        until_ms = self._ms_of(tick)
        first_ms = until_ms  # of the entries that stay, all of them later than this
        due: list[TimerEntry] = []
        entries = bucket.entries
        for place, entry in enumerate(entries):
            if entry is None:
                continue
            deadline_ms = entry.deadline_ms
            if deadline_ms <= until_ms:
                due.append(entry)
                entries[place] = None
            elif first_ms == until_ms or deadline_ms < first_ms:
                first_ms = deadline_ms
        bucket.holes += len(due)
        bucket.maybe_sweep()
        bucket.first_tick = self._tick_of(first_ms)
        if self._tick_ms > 1:
            due.sort(key=deadline_of)
        due.reverse()
        self._due.hold(due)
