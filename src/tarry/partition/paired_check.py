"""Check of a producer's sequences over two logs: the records and the companion log.

A batch that either log has is a duplicate.  A batch that follows the largest sequence of both is in
order.  A crash, a full disk or a fail-over may keep sequence n + 1 in one log and lose n with the
tail of the other.  The client sends n again, so n is accepted where it fits: directly behind an
earlier batch, or before all known ones.  A client has five requests under way, so at most four
known batches may lie behind n.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.errors import NONE, OUT_OF_ORDER_SEQUENCE_NUMBER
from tarry.partition.producers import (
    BATCHES_KEPT,
    ProducedBatch,
    ProducerCheck,
    ProducerStates,
    duplicate_of,
)
from tarry.records.batch import SEQUENCE_HALF, SEQUENCE_MAX, BatchHeader


class PairedCheck:
    """Place of a batch's sequences among the known batches of its producer in two logs."""

    def __init__(self, header: BatchHeader) -> None:
        self.header = header
        # True if the second log has the original of the duplicate.
        self.is_in_second = False
        self._later: i64 = 0
        self._largest: i64 = -1
        # Distance from the end of the nearest earlier batch to this one; 1: directly behind it.
        self._distance: i64 = SEQUENCE_MAX
        self._overlaps = False

    def run(self, first: ProducerStates, second: ProducerStates) -> ProducerCheck:
        """Compare the batch with the states of both logs; change neither."""
        header = self.header
        in_first = first.batches_of(header.producer_id)
        in_second = second.batches_of(header.producer_id)
        if not in_first and not in_second:
            return _awaiting(header, first, second).check_unknown(header)
        newest = first
        if not in_first or (in_second and in_second[-1].epoch > in_first[-1].epoch):
            newest = second
        epoch = newest.batches_of(header.producer_id)[-1].epoch
        if header.producer_epoch != epoch:
            return newest.check(header)
        duplicate = self._look_at(in_first)
        if duplicate is None:
            duplicate = self._look_at(in_second)
            self.is_in_second = duplicate is not None
        if duplicate is not None:
            return duplicate
        if self._fits():
            return ProducerCheck(NONE, None)
        return ProducerCheck(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}: sequence {header.base_sequence} after {self._largest}",
        )

    def _look_at(self, batches: list[ProducedBatch]) -> ProducerCheck | None:
        header = self.header
        base: i64 = header.base_sequence
        last: i64 = header.last_sequence
        index: i64 = len(batches) - 1
        index_min = index - BATCHES_KEPT
        while index >= 0 and index > index_min:
            known = batches[index]
            if known.epoch != header.producer_epoch:
                break
            if known.base_sequence == base and known.last_sequence == last:
                return duplicate_of(known)
            ahead: i64 = (known.last_sequence - self._largest) & SEQUENCE_MAX
            if self._largest < 0 or ahead < SEQUENCE_HALF:
                self._largest = known.last_sequence
            distance: i64 = (base - known.last_sequence) & SEQUENCE_MAX
            if 0 < distance < SEQUENCE_HALF:
                self._distance = min(self._distance, distance)
            else:
                self._later += 1
                gap: i64 = (known.base_sequence - last) & SEQUENCE_MAX
                self._overlaps = self._overlaps or gap == 0 or gap >= SEQUENCE_HALF
            index -= 1
        return None

    def _fits(self) -> bool:
        if self._overlaps or self._later >= BATCHES_KEPT:
            return False
        return self._distance in (1, SEQUENCE_MAX)


def _awaiting(header: BatchHeader, first: ProducerStates, second: ProducerStates) -> ProducerStates:
    """Return the log whose lost batch must come again first; neither log knows the producer.

    If the appends to both failed in one turn, the batch with the earlier sequence comes first.
    """
    in_first: i64 = first.awaited_sequence(header)
    in_second: i64 = second.awaited_sequence(header)
    if in_first < 0:
        return second
    if in_second < 0 or ((in_second - in_first) & SEQUENCE_MAX) < SEQUENCE_HALF:
        return first
    return second
