"""Views of a timing wheel: copies of its content, for pictures and tests.

`look_at` copies levels, buckets and the queue of buckets.  The wheel does not change, and the
copy does not follow it.  It costs a step for every bucket and entry, so it is not for every turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import LEVEL_BITS, LEVEL_MASK, TimingWheel


@dataclass(frozen=True)
class BucketView:
    """A bucket at one moment, in slot `slot` of level `level`.

    It is for deadlines from `first_ms` to `last_ms`, both included.  `advance` meets it at
    `expiration_ms`.  `entries` are in the order in which they came.  `is_queued` says whether the
    bucket is in the queue; a bucket that cancelling emptied stays there until `advance` meets it.
    """

    level: int
    slot: int
    expiration_ms: int
    first_ms: int
    last_ms: int
    entries: tuple[TimerEntry, ...]
    is_queued: bool


@dataclass(frozen=True)
class LevelView:
    """A level at one moment: `buckets` by slot, `tick_ms` each.

    Its time stands at `start_ms`, a multiple of the tick; `end_ms` is the first time that is out
    of its reach.
    """

    number: int
    tick_ms: int
    start_ms: int
    end_ms: int
    buckets: tuple[BucketView, ...]

    @property
    def current_slot(self) -> int:
        """Slot of the level's present time."""
        return self.start_ms // self.tick_ms % len(self.buckets)


@dataclass(frozen=True)
class WheelView:
    """View of a wheel at one moment: its levels and its queue.

    `levels` are from the lowest up, `queue` is in the order in which its buckets expire.
    """

    current_ms: int
    tick_ms: int
    wheel_size: int
    levels: tuple[LevelView, ...]
    queue: tuple[BucketView, ...]

    def __len__(self) -> int:
        """Count the pending entries."""
        return sum(len(bucket.entries) for level in self.levels for bucket in level.buckets)

    def bucket_of(self, entry: TimerEntry) -> BucketView | None:
        """Return the bucket of the entry; None if the entry is not pending."""
        for level in self.levels:
            for bucket in level.buckets:
                if any(one is entry for one in bucket.entries):
                    return bucket
        return None


def pending_in(wheel: TimingWheel) -> list[TimerEntry]:
    """Return the pending entries, those of a bucket in their order; much cheaper than a view."""
    entries = [entry for part in wheel._parts for entry in part.pending()]
    for level in wheel._levels:
        for bucket in level.buckets:
            entries += bucket.pending()
    return entries


def look_at(wheel: TimingWheel) -> WheelView:
    """Copy the levels, buckets and queue of the wheel at this moment."""
    size = wheel._wheel_size
    # A limit may have left entries of a due tick in parts; the view shows them in their bucket.
    divided = tuple(entry for part in wheel._parts for entry in part.pending())
    levels: list[LevelView] = []
    for level in wheel._levels:
        first_tick = level.start_ms // level.tick_ms
        buckets: list[BucketView] = []
        for slot, bucket in enumerate(level.buckets):
            # An empty bucket gets the time of the next entries that would be put into it.
            ahead_ms = (first_tick + (slot - first_tick) % size) * level.tick_ms
            is_divided = bool(divided) and not levels and slot == first_tick % size
            is_queued = bucket.is_queued or is_divided
            expiration_ms = bucket.expiration_ms if bucket.is_queued else ahead_ms
            buckets.append(
                BucketView(
                    level=level.number,
                    slot=slot,
                    expiration_ms=expiration_ms,
                    # Deadlines round up: those of a tick before the expiration belong to it.
                    first_ms=expiration_ms - wheel._tick_ms + 1,
                    last_ms=expiration_ms + level.tick_ms - wheel._tick_ms,
                    entries=(*(divided if is_divided else ()), *bucket.pending()),
                    is_queued=is_queued,
                )
            )
        levels.append(
            LevelView(level.number, level.tick_ms, level.start_ms, level.end_ms, tuple(buckets))
        )
    lowest = levels[0]
    due = lowest.buckets[lowest.start_ms // lowest.tick_ms % size]
    queue = [due] if divided and not wheel._lowest.buckets[due.slot].is_queued else []
    for place in sorted(wheel._queue):
        view = levels[LEVEL_MASK - (place & LEVEL_MASK)]
        queue.append(view.buckets[(place >> LEVEL_BITS) // view.tick_ms % size])
    return WheelView(wheel.current_ms, wheel._tick_ms, size, tuple(levels), tuple(queue))
