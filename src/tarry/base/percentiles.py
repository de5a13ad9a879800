"""Percentiles of waits that were counted in buckets: between which bounds they lie.

A bucket (`wait_buckets`) says no more than its bounds, so a percentile is two numbers.  Waits are
whole milliseconds, and up to 5 ms each bucket holds one value or none: there a percentile is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True)
class Percentile:
    """Smallest wait that a share of the operations did not exceed, and it lies between these."""

    at_least_ms: int
    at_most_ms: int


def bounds_ms(number: int) -> tuple[int, int]:
    """Return the shortest and the longest wait that bucket `number` counts."""
    if number <= 0:
        return 0, 0
    return _begin_ms(number), _begin_ms(number + 1) - 1


def _begin_ms(number: int) -> int:
    """Return the least whole ms of 2 ** ((number - 1) / 2) or more."""
    doubled = number - 1
    return 1 << doubled // 2 if doubled % 2 == 0 else isqrt(1 << doubled) + 1


def percentile(buckets: Mapping[int, int], percent: float, longest_ms: int) -> Percentile:
    """Return the wait that so many percent of the operations did not exceed (99: of 100 operations
    the second longest), by the counts of buckets; `longest_ms` is the longest wait of all.

    Tenths of a percent count: 99.9.
    """
    total = sum(buckets.values())
    if total == 0:
        return Percentile(0, 0)
    # In whole numbers: a float would be one too high now and then.
    per_mille = round(percent * 10)
    rank = max(1, (per_mille * total + 999) // 1_000)
    if rank >= total:
        return Percentile(longest_ms, longest_ms)
    passed = 0
    for number in sorted(buckets):
        passed += buckets[number]
        if passed >= rank:
            at_least_ms, at_most_ms = bounds_ms(number)
            return Percentile(min(at_least_ms, longest_ms), min(at_most_ms, longest_ms))
    raise AssertionError("a rank lies within the total")
