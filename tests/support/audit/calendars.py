"""Calendars of brokers that were stepped: by how much each was ahead, and when.

A broker's calendar is the machine's and a shift.  A step is written by the test at a time that is
known to lie between two readings of the machine's clock; in between either shift may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

FOREVER_MS = 2**62


class Calendars:
    """Shift of each broker's calendar over the day."""

    def __init__(self, broker_ids: Iterable[int]) -> None:
        # By broker: from when to when a shift may hold, in order.
        self._spans: dict[int, list[tuple[int, int, int]]] = {
            broker_id: [(0, FOREVER_MS, 0)] for broker_id in broker_ids
        }

    @property
    def broker_ids(self) -> list[int]:
        return sorted(self._spans)

    def step(self, broker_id: int, before_ms: int, after_ms: int, shift_ms: int) -> None:
        """Note that a shift was written after one reading of the clock and before another."""
        spans = self._spans[broker_id]
        begin_ms, _, old_ms = spans[-1]
        spans[-1] = (begin_ms, after_ms, old_ms)
        spans.append((before_ms, FOREVER_MS, shift_ms))

    def shift_of(self, broker_id: int) -> int:
        """The shift that was written last."""
        return self._spans[broker_id][-1][2]

    def _within(
        self, broker_ids: Iterable[int], from_ms: int, until_ms: int
    ) -> Iterator[tuple[int, int, int]]:
        for broker_id in broker_ids:
            for begin_ms, end_ms, shift_ms in self._spans[broker_id]:
                if begin_ms <= until_ms and end_ms >= from_ms:
                    yield max(begin_ms, from_ms), min(end_ms, until_ms), shift_ms

    def highest(self, broker_ids: Iterable[int], from_ms: int, until_ms: int) -> int:
        """The latest time that a calendar of these brokers showed between two real times."""
        return max(
            end_ms + shift_ms
            for _, end_ms, shift_ms in self._within(broker_ids, from_ms, max(from_ms, until_ms))
        )

    def lowest(self, broker_ids: Iterable[int], from_ms: int, until_ms: int) -> int:
        """The earliest time that a calendar of these brokers showed between two real times."""
        return min(
            begin_ms + shift_ms
            for begin_ms, _, shift_ms in self._within(broker_ids, from_ms, max(from_ms, until_ms))
        )

    def first_at(self, broker_ids: Iterable[int], due_ms: int, from_ms: int) -> int:
        """The first real time from one on at which a calendar may have shown a time or a later
        one."""
        found = FOREVER_MS
        for begin_ms, end_ms, shift_ms in self._within(broker_ids, from_ms, FOREVER_MS):
            at_ms = max(begin_ms, due_ms - shift_ms)
            if at_ms <= end_ms:
                found = min(found, at_ms)
        return found

    def is_true_during(self, from_ms: int, until_ms: int) -> bool:
        """Whether no calendar was shifted between two real times."""
        return all(shift == 0 for _, _, shift in self._within(self._spans, from_ms, until_ms))
