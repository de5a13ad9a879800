"""Acknowledgement: operation that waits for one record."""

from __future__ import annotations

from collections.abc import Callable

from tarry.client.core.operation import Operation, Operations
from tarry.client.core.producer.batch import RecordReceipt
from tarry.link.errors import ClientError, TimedOut


class Acknowledgement(Operation[RecordReceipt]):
    """Operation that waits for one record; the record's batch notifies it when it ends or is
    split."""

    def __init__(
        self, operations: Operations, receipt: RecordReceipt, trouble: Callable[[int], str]
    ) -> None:
        """`trouble` returns the present problem of the producer at a time."""
        super().__init__(operations)
        self.receipt = receipt
        self._trouble = trouble

    def watch(self) -> None:
        """Register with the batch that the record is in now."""
        batch = self.receipt.batch
        if batch.waits is None:
            batch.waits = {}
        batch.waits[self] = None

    def look(self, now_ms: int) -> bool:
        return self.receipt.is_done

    def answer(self, now_ms: int) -> RecordReceipt:
        error = self.receipt.error
        if error is not None:
            raise error.with_traceback(None)
        return self.receipt

    def late_error(self, now_ms: int) -> ClientError:
        trouble = str(self.receipt.batch.last_error or self._trouble(now_ms))
        because = f": {trouble}" if trouble else ""
        return TimedOut(f"the record was not acknowledged within {self.timeout_ms} ms{because}")

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        waits = self.receipt.batch.waits
        if waits is not None:
            waits.pop(self, None)
