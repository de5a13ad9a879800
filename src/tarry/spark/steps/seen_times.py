"""Event times at which an event was seen: which later ones are doubles of it.

The times are kept as spans, `[low, high, low, high, ...]` in microseconds: each time with what lies
`within` of it on both sides, joined where they touch, in order.  A time in a span is a double's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tarry.spark.steps.buckets.tree import LeafKind

# Spans of one event.
Spans = list[int]


def is_seen(spans: Sequence[int], time: int) -> bool:
    """Tell whether a time lies in a span."""
    return any(low <= time <= high for low, high in zip(spans[::2], spans[1::2], strict=True))


def with_time(spans: Sequence[int], time: int, within: int) -> list[int]:
    """Return the spans with those of one more time."""
    new_low, new_high = time - within, time + within
    before: list[int] = []
    after: list[int] = []
    for low, high in zip(spans[::2], spans[1::2], strict=True):
        if high < new_low:
            before += (low, high)
        elif low > new_high:
            after += (low, high)
        else:
            new_low, new_high = min(low, new_low), max(high, new_high)
    return [*before, new_low, new_high, *after]


def without_old(spans: Sequence[int], time: int) -> list[int]:
    """Return the spans that reach to a time or beyond it."""
    kept: list[int] = []
    for low, high in zip(spans[::2], spans[1::2], strict=True):
        if high >= time:
            kept += (low, high)
    return kept


def seen_leaves(within_us: int) -> LeafKind[Spans]:
    """Return the kind of leaves: they want a visit some time after their first span has ended.

    So a span is forgotten a quarter of `within` too late at most, and a visit finds many of them.
    """

    def due_of(seen: dict[bytes, Spans]) -> int:
        return min(spans[1] for spans in seen.values()) + within_us // 4

    return LeafKind(Spans, due_of)


def forget(seen: dict[bytes, Spans], *, watermark_us: int) -> None:
    """Leave out spans that ended before the watermark."""
    for digest in [one for one, spans in seen.items() if spans[1] < watermark_us]:
        spans = without_old(seen.pop(digest), watermark_us)
        if spans:
            seen[digest] = spans
