"""Deliveries: receipts of records that are done, for users who asked to be called back.

The core gathers them in the order in which batches end; a face takes them one by one and calls,
outside its lock.  A flush is over when every call has returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tarry.client.core.producer.batch import Delivery, ProducerBatch, RecordReceipt

NOBODY: Final = -1


class Deliveries:
    """Calls to users that are due."""

    def __init__(self) -> None:
        self._due: deque[Delivery] = deque()
        # A call that was taken has not returned yet.
        self._is_calling = False
        # The thread that makes the calls, one after the other.
        self._caller = NOBODY

    @property
    def are_due(self) -> bool:
        return bool(self._due)

    @property
    def are_over(self) -> bool:
        """True if every call that was due has returned."""
        return not self._due and not self._is_calling

    def expect(self, on_delivery: Callable[[Any], object], receipt: RecordReceipt) -> None:
        """Have `on_delivery` called with the receipt, when its record is done or has failed."""
        self._place((on_delivery, receipt))

    def on_batch_end(self, batch: ProducerBatch) -> None:
        """Take the calls over that wait for this batch; if it was taken apart they wait on."""
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
        """Return whether this thread may make the calls: not while another one makes them, which
        takes whatever is due then."""
        return not self._is_calling or self._caller == thread

    def take_for(self, thread: int) -> Delivery | None:
        """Take the next call for a thread that `may_call`."""
        self._caller = thread
        return self.take()

    def take(self) -> Delivery | None:
        """Take the next call; None: there is none, and the one before has returned."""
        if not self._due:
            self._is_calling = False
            return None
        self._is_calling = True
        return self._due.popleft()
