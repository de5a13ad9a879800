"""Batches that could not be written and must come again before later ones of their producers.

A producer that is known has a last sequence, which refuses what comes too early.  A producer whose
very first batch could not be written has none: what must come first is kept here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.records.batch import BatchHeader

# A client that has not sent a batch again for so long has given up: clients do by default after
# `delivery.timeout.ms` of two minutes.
GIVEN_UP_MS: Final = 120_000


class AwaitedBatches:
    """First batches of producers whose append failed."""

    def __init__(self) -> None:
        # Producer id -> epoch, base sequence, and the time of the last `expire` before.
        self._awaited: dict[int, tuple[int, int, int]] = {}
        # Time of the last `expire`.
        self._looked_ms = 0

    def sequence(self, header: BatchHeader) -> i64:
        """Return the sequence that must come first in the epoch of this batch; -1 if there is
        none.
        """
        awaited = self._awaited.get(header.producer_id)
        if awaited is None or awaited[0] != header.producer_epoch:
            return -1
        return awaited[1]

    def note(self, producer_id: i64, epoch: i64, base_sequence: i64) -> None:
        """Note that an append failed; a retry that fails shows that the client has not given up."""
        self._awaited[producer_id] = (epoch, base_sequence, self._looked_ms)

    def drop(self, producer_id: i64) -> None:
        """Forget what is awaited of a producer: a batch of it was taken."""
        self._awaited.pop(producer_id, None)

    def expire(self, now_ms: i64) -> None:
        """Forget what was not sent again between two calls, and for `GIVEN_UP_MS`."""
        for producer_id, awaited in list(self._awaited.items()):
            if awaited[2] < self._looked_ms and now_ms - awaited[2] >= GIVEN_UP_MS:
                del self._awaited[producer_id]
        self._looked_ms = int(now_ms)

    def clear(self) -> None:
        self._awaited.clear()
