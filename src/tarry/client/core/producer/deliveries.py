"""Deliveries: `on_delivery` callbacks with the receipts of finished records.

The core collects them in the order in which batches end.  A face takes them one by one, and calls
them outside its lock.  A flush ends when every call has returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tarry.client.core.producer.batch import Delivery, ProducerBatch, RecordReceipt

NOBODY: Final = -1


class Deliveries:
    """Callbacks that are due, and the thread that calls them."""

    def __init__(self) -> None:
        self._due: deque[Delivery] = deque()
        # True while a callback is running.
        self._is_calling = False
        # The thread that runs the callbacks, one after the other.
        self._caller = NOBODY

    @property
    def are_due(self) -> bool:
        return bool(self._due)

    @property
    def are_over(self) -> bool:
        """True if every callback that was due has returned."""
        return not self._due and not self._is_calling

    def expect(self, on_delivery: Callable[[Any], object], receipt: RecordReceipt) -> None:
        """Register a call of `on_delivery` with the receipt when the record is done or has
        failed."""
        self._place((on_delivery, receipt))

    def on_batch_end(self, batch: ProducerBatch) -> None:
        """Queue the callbacks of this batch; if it was split, they wait for its pieces."""
        expected = batch.expected
        batch.expected = None
        if expected is not None:
            for delivery in expected:
                self._place(delivery)

    def _place(self, delivery: Delivery) -> None:
        batch = delivery[1].batch
        if batch.is_done:
            self._due.append(delivery)
        elif batch.expected is None:
            batch.expected = [delivery]
        else:
            batch.expected.append(delivery)

    def may_call(self, thread: int) -> bool:
        """Return true if this thread may run the callbacks: at most one thread runs them, until
        none is due."""
        return not self._is_calling or self._caller == thread

    def take_for(self, thread: int) -> Delivery | None:
        """Take the next callback for a thread that `may_call`."""
        self._caller = thread
        return self.take()

    def take(self) -> Delivery | None:
        """Take the next callback; None if there is none, which also ends the one before."""
        if not self._due:
            self._is_calling = False
            return None
        self._is_calling = True
        return self._due.popleft()
