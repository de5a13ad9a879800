"""Binary heap under the contract of the timing wheel: to compare with, and its oracle.

`java.util.Timer`, `ScheduledThreadPoolExecutor` and asyncio wait this way.  An add and an expiry
cost O(log n).  Cancelling is lazy, because an element in the middle of a heap cannot be removed
cheaply.  The heap holds keys, not entries.  A key is the deadline and, in its lower bits, a number
that counts the adds, so ties come in the order of adding.  A cancelled entry is dropped at once;
its key stays until it reaches the top, or until more than half of all keys are stale and a
cleaning, paid for by as many cancels, drops them.  Invariant: every entry has one key.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, SupportsIndex

from tarry.timer.entry import Holder, TimerEntry, ms_of, round_up, why_not_added, why_not_moved
from tarry.timer.pure import add_each

# Bits of the number below the deadline in a key; no program adds 2^64 times.
NUMBER_BITS: Final = 64
NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1

# Stale keys that are never cleaned away, as in asyncio: a heap of a few is not worth the look.
STALE_KEYS_MIN: Final = 100

# Number of moves that means no limit: more than memory has entries.
MOVES_UNLIMITED: Final = 1 << 60


class HeapTimer:
    """Binary heap under the contract of `TimingWheel`, which see; to compare with.

    `now_ms` is any clock in ints of milliseconds; when it goes back it is not followed.
    Deadlines round up to a multiple of `tick_ms` (at least 1, else ValueError).  Cancelling is
    lazy, as in asyncio's loop and `ScheduledThreadPoolExecutor`.  Not thread-safe; under
    `SystemTimer` it may be used by threads.
    """

    __slots__ = ("_adds", "_current_ms", "_entries", "_heap", "_holder", "_tick_ms")

    def __init__(self, now_ms: SupportsIndex, tick_ms: SupportsIndex = 1) -> None:
        now_ms = ms_of(now_ms)
        tick_ms = ms_of(tick_ms)
        if tick_ms < 1:
            raise ValueError(f"a tick of {tick_ms} ms; it must be at least 1")
        self._tick_ms = tick_ms
        self._current_ms = now_ms - now_ms % tick_ms
        self._holder = Holder(self)
        self._heap: list[int] = []
        self._entries: dict[int, TimerEntry] = {}
        self._adds = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.current_ms} ms, {len(self)} pending>"

    @property
    def current_ms(self) -> int:
        """Time of the timer, a multiple of the tick; with a limit that of the last entry given."""
        return self._current_ms

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry; return False if it is due already, and the caller runs it now.

        ValueError if it is pending already, here or in another timer.
        """
        if entry._holder is not None:
            raise why_not_added(entry, self)
        deadline_ms = entry.deadline_ms
        if deadline_ms <= self._current_ms:  # a multiple of the tick: rounding changes nothing
            return False
        number = self._adds
        heappush(self._heap, deadline_ms << NUMBER_BITS | number)
        self._entries[number] = entry
        self._adds = number + 1
        entry._holder = self._holder
        entry._place = number
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
        if holder is not self._holder:
            raise why_not_moved()
        del self._entries[entry._place]
        entry._holder = None
        stale = len(self._heap) - len(self._entries)
        if stale > STALE_KEYS_MIN and stale * 2 > len(self._heap):
            self._clean()
        return True

    def reschedule(self, entry: TimerEntry, deadline_ms: SupportsIndex) -> bool:
        """Move the deadline of an entry, pending or not; return False if it is due, as with `add`.

        Among ties a moved entry is the last.
        """
        deadline_ms = ms_of(deadline_ms)
        self.cancel(entry)
        entry.deadline_ms = deadline_ms
        return self.add(entry)

    def advance(self, now_ms: SupportsIndex, limit: int | None = None) -> list[TimerEntry]:
        """Take out the entries that are due by `now_ms`, by exact deadline, then by adding.

        At most `limit` entries are returned; cleaning is not counted.  If some are left,
        `next_due_ms() <= now_ms` holds, and the next calls return them.
        """
        now_ms = ms_of(now_ms)
        until_ms = now_ms - now_ms % self._tick_ms
        moves = MOVES_UNLIMITED if limit is None else limit
        due: list[TimerEntry] = []
        while True:
            key = self._first_key()
            if key is None or key >> NUMBER_BITS > until_ms:
                self._current_ms = max(self._current_ms, until_ms)
                return due
            if moves <= 0:
                return due
            heappop(self._heap)
            entry = self._entries.pop(key & NUMBER_MASK)
            entry._holder = None
            self._current_ms = round_up(key >> NUMBER_BITS, self._tick_ms)
            due.append(entry)
            moves -= 1

    def next_due_ms(self) -> int | None:
        """Return when the first entry is due, rounded up to the tick; None if none is pending."""
        key = self._first_key()
        return None if key is None else round_up(key >> NUMBER_BITS, self._tick_ms)

    def _first_key(self) -> int | None:
        """Return the key of the entry that is due first; drop stale keys above it."""
        heap = self._heap
        while heap:
            key = heap[0]
            if key & NUMBER_MASK in self._entries:
                return key
            heappop(heap)
        return None

    def _clean(self) -> None:
        """Drop the stale keys; the order stays, because no two keys are equal."""
        while True:
            heap = self._heap
            length = len(heap)
            kept = [key for key in heap if key & NUMBER_MASK in self._entries]
            # A copy has the space of the entries left, the original that of all there ever were.
            entries = dict(self._entries)
            # A finalizer may have cancelled or added meanwhile.
            if len(heap) == length and self._heap is heap and len(entries) == len(self._entries):
                break
        heapify(kept)
        self._heap = kept
        self._entries = entries
