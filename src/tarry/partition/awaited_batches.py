"""Batches that could not be written and must come again before later ones of their producers.

A producer that is known has a last sequence, which refuses what comes too early.  A producer whose
very first batch could not be written has none: what must come first is kept here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.limits import PRODUCER_IDS_PER_PARTITION_MAX
from tarry.records.batch import SEQUENCE_HALF, SEQUENCE_MAX, BatchHeader

# A client that has not sent a batch again for so long has given up: clients do by default after
# `delivery.timeout.ms` of two minutes.
GIVEN_UP_MS: Final = 120_000


class AwaitedBatches:
    """First batches of producers whose append failed: those that failed longest ago come first."""

    def __init__(self) -> None:
        # Producer id -> epoch, base sequence, and the time of the last `expire` before.
        self._awaited: dict[int, tuple[int, int, int]] = {}
        # Time of the last `expire`; -1 before the first one.
        self._looked_ms = -1

    def sequence(self, header: BatchHeader) -> i64:
        """Return the sequence that must come first in the epoch of this batch; -1 if there is
        none.
        """
        awaited = self._awaited.get(header.producer_id)
        if awaited is None or awaited[0] != header.producer_epoch:
            return -1
        return awaited[1]

    def must_wait(self, header: BatchHeader) -> bool:
        """Return whether a batch comes behind the one that must come first."""
        awaited = self.sequence(header)
        if awaited < 0:
            return False
        distance: i64 = (header.base_sequence - awaited) & SEQUENCE_MAX
        return 0 < distance < SEQUENCE_HALF

    def note(self, producer_id: i64, epoch: i64, base_sequence: i64) -> None:
        """Note that an append failed.  A retry that fails shows that the client has not given up.

        Of two batches of an epoch the earlier one must come first.  A batch of an older epoch is
        not awaited: its producer has been replaced.
        """
        known = self._awaited.pop(producer_id, None)
        if known is not None and known[0] >= epoch:
            distance: i64 = (base_sequence - known[1]) & SEQUENCE_MAX
            if known[0] > epoch or distance < SEQUENCE_HALF:
                epoch, base_sequence = known[0], known[1]
        elif len(self._awaited) >= PRODUCER_IDS_PER_PARTITION_MAX:
            # The client that has not tried for longest has probably given up.
            del self._awaited[next(iter(self._awaited))]
        self._awaited[producer_id] = (int(epoch), int(base_sequence), self._looked_ms)

    def drop(self, producer_id: i64) -> None:
        """Forget what is awaited of a producer: a batch of it was taken."""
        self._awaited.pop(producer_id, None)

    def expire(self, now_ms: i64) -> None:
        """Forget what was not sent again between two calls, and for `GIVEN_UP_MS`."""
        before = self._looked_ms
        self._looked_ms = int(now_ms)
        if before < 0:
            # Nothing is older than the first call.
            for producer_id, awaited in self._awaited.items():
                self._awaited[producer_id] = (awaited[0], awaited[1], self._looked_ms)
            return
        while self._awaited:
            producer_id = next(iter(self._awaited))
            noted_ms = self._awaited[producer_id][2]
            if noted_ms >= before or now_ms - noted_ms < GIVEN_UP_MS:
                return
            del self._awaited[producer_id]

    def clear(self) -> None:
        self._awaited.clear()
