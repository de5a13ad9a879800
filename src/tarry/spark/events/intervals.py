"""Intervals: time is cut into equal ones, aligned to the calendar of UTC."""

from __future__ import annotations

from typing import Final

# Lengths that people read with ease: 10 s to a week.
LENGTHS_MS: Final = (
    10_000,
    30_000,
    60_000,
    300_000,
    900_000,
    1_800_000,
    3_600_000,
    10_800_000,
    21_600_000,
    86_400_000,
    604_800_000,
)

# As many points fit side by side in a plot.
INTERVALS_MAX: Final = 150


def interval_for(first_ms: int, last_ms: int) -> int:
    """Return the shortest length of which few enough cover a span of time."""
    span_ms = last_ms - first_ms
    for length_ms in LENGTHS_MS:
        if span_ms <= length_ms * INTERVALS_MAX:
            return length_ms
    return LENGTHS_MS[-1]


def begin_of(at_ms: int, length_ms: int) -> int:
    """Return the begin of the interval that a time lies in."""
    return at_ms // length_ms * length_ms
