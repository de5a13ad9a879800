"""Positions of a segment's newest batches, in memory, so that reads at the tail need no disk.

Invariant: offsets and positions both strictly increase.  Hot: every append adds an entry, every
fetch at the tail looks up two.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

# Batches whose positions stay in memory: enough for readers that keep up, 10 KB a log.
NEWEST_BATCHES: Final = 128

UNKNOWN_POSITION: Final = -1


# The lists of a segment without new batches: all such segments share this one; never changed.
_NONE: Final[list[int]] = []


@mypyc_attr(acyclic=True)
class NewestBatches:
    """Base offsets and positions of the newest batches."""

    def __init__(self) -> None:
        self._offsets = _NONE
        self._positions = _NONE

    def add(self, base_offset: i64, position: i64) -> None:
        if not self._offsets:
            self._offsets = []
            self._positions = []
        self._offsets.append(base_offset)
        self._positions.append(position)

    def position_of(self, offset: i64) -> i64:
        """Return the position of the batch that contains `offset`; UNKNOWN_POSITION if too old."""
        entry = _last_entry(self._offsets, offset)
        return i64(self._positions[entry]) if entry >= 0 else UNKNOWN_POSITION

    def boundary_before(self, position_max: i64) -> i64:
        """Return the last position <= `position_max` where a batch begins, or UNKNOWN_POSITION."""
        entry = _last_entry(self._positions, position_max)
        return i64(self._positions[entry]) if entry >= 0 else UNKNOWN_POSITION

    def forget_older(self) -> None:
        """Drop the oldest entries once there are more than twice NEWEST_BATCHES."""
        surplus: i64 = len(self._offsets) - NEWEST_BATCHES
        if surplus > NEWEST_BATCHES:
            del self._offsets[:surplus]
            del self._positions[:surplus]

    def cut(self, position: i64) -> None:
        """Drop the batches that begin at or behind `position`."""
        while self._positions and self._positions[-1] >= position:
            self._offsets.pop()
            self._positions.pop()

    def clear(self) -> None:
        self._offsets = _NONE
        self._positions = _NONE


def _last_entry(values: list[int], value_max: i64) -> i64:
    """Return the last entry of increasing `values` that is <= `value_max`, or -1."""
    low: i64 = 0
    high: i64 = len(values)
    while low < high:
        middle: i64 = (low + high) >> 1
        if values[middle] <= value_max:
            low = middle + 1
        else:
            high = middle
    return low - 1
