"""Outcomes of waits: one machine for each key, that reads its events in order of event time.

A start begins a wait unless one is open.  The first until at or after it, at most `within` later,
completes it; if there is none, it expires.  An until without an open wait is nobody's.  Events are
read when the watermark has passed them, so the order in which they came makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from tarry.spark.steps.buckets.tree import BucketTree, LeafKind

COMPLETED: Final = "completed"
EXPIRED: Final = "expired"

# An event as one number that orders events: its time in microseconds times four, plus what it is.
# At one time a start comes before an until.
STARTS: Final = 1
ENDS: Final = 2
KINDS: Final = 4


class WaitOutcome(NamedTuple):
    """End of a wait; times in microseconds."""

    outcome: str
    began: int
    ended: int


class OpenWait(NamedTuple):
    """State of a key: the begin of an open wait (None: none), events not yet read."""

    began: int | None
    events: tuple[int, ...]

    def next_time(self, within: int) -> int | None:
        """Return the time at which the watermark may change it; None: never."""
        times = [self.events[0] // KINDS] if self.events else []
        if self.began is not None:
            times.append(self.began + within)
        return min(times, default=None)


class KeyedWait(NamedTuple):
    """State of a key, with the key itself: leaves know digests only."""

    key: str
    wait: OpenWait


def event_code(time: int, *, starts: bool, ends: bool) -> int:
    """Return an event as a number."""
    return time * KINDS + (STARTS if starts else 0) + (ENDS if ends else 0)


def settle(
    known: OpenWait, came: Iterable[int], watermark: int, within: int
) -> tuple[OpenWait, list[WaitOutcome]]:
    """Read what the watermark has passed; return what is left, and the waits that ended."""
    events = sorted([*known.events, *came])
    began = known.began
    outcomes: list[WaitOutcome] = []
    read = 0
    for code in events:
        time, kind = divmod(code, KINDS)
        if time > watermark:
            break
        read += 1
        if began is not None and time > began + within:
            outcomes.append(WaitOutcome(EXPIRED, began, began + within))
            began = None
        if began is None and kind & STARTS:
            began = time
        if began is not None and kind & ENDS:
            outcomes.append(WaitOutcome(COMPLETED, began, time))
            began = None
    if began is not None and watermark >= began + within:
        outcomes.append(WaitOutcome(EXPIRED, began, began + within))
        began = None
    left: Sequence[int] = events[read:]
    return OpenWait(began, tuple(left)), outcomes


def wait_leaves(within_us: int) -> LeafKind[KeyedWait]:
    """Return the kind of leaves: they want a visit when the watermark may change one of them."""

    def due_of(waits: dict[bytes, KeyedWait]) -> int:
        # A key without a time is not kept.
        times = (known.next_time(within_us) for _, known in waits.values())
        return min(time for time in times if time is not None)

    return LeafKind(KeyedWait, due_of)


def settle_events(
    tree: BucketTree[KeyedWait], codes: dict[str, list[int]], watermark_us: int, within_us: int
) -> list[tuple[str, WaitOutcome]]:
    """Read events of keys; return the waits that ended."""
    keys = list(codes)
    ended: list[tuple[str, WaitOutcome]] = []

    def read(waits: dict[bytes, KeyedWait], near: list[int]) -> None:
        for place in near:
            key = keys[place]
            ended.extend(
                _settle_key(waits, digests[place], key, codes[key], watermark_us, within_us)
            )

    digests = [sha256(key.encode()).digest()[:16] for key in keys]
    tree.change(digests, read)
    return ended


def settle_due(
    tree: BucketTree[KeyedWait], watermark_us: int, within_us: int
) -> list[tuple[str, WaitOutcome]]:
    """Read on where the watermark has passed something; return the waits that ended."""
    ended: list[tuple[str, WaitOutcome]] = []

    def read(waits: dict[bytes, KeyedWait]) -> None:
        for digest, (key, known) in list(waits.items()):
            time = known.next_time(within_us)
            if time is not None and time <= watermark_us:
                ended.extend(_settle_key(waits, digest, key, [], watermark_us, within_us))

    tree.change_due(watermark_us, read)
    return ended


def _settle_key(
    waits: dict[bytes, KeyedWait],
    digest: bytes,
    key: str,
    came: list[int],
    watermark_us: int,
    within_us: int,
) -> list[tuple[str, WaitOutcome]]:
    known = waits[digest].wait if digest in waits else OpenWait(None, ())
    left, outcomes = settle(known, came, watermark_us, within_us)
    if left.next_time(within_us) is None:
        waits.pop(digest, None)
    else:
        waits[digest] = KeyedWait(key, left)
    return [(key, one) for one in outcomes]
