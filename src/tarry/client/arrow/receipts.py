"""Receipts of tables: one for each batch that took rows, and one for the whole table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from tarry.client.core.arguments import timeout_ms_of
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.face.clock import monotonic_ms
from tarry.link.errors import ClientError, TimedOut

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore
    from tarry.client.core.producer.row_intake import SentRows
    from tarry.client.sync.driver import Driver


class BatchReceipt:
    """Receipt for rows that one batch took; looks at the batch when asked.

    The rows are in the order of the table.  All of them have a due time or an id, or none has; in a
    topic that delays by timestamps all are due at the same time."""

    def __init__(self, rows: SentRows) -> None:
        self._rows = rows

    @property
    def topic(self) -> str:
        """Topic of the rows."""
        return self._rows.batch.topic

    @property
    def partition(self) -> int:
        """Partition of the rows."""
        return self._rows.batch.partition

    @property
    def row_count(self) -> int:
        """Number of rows of the table that are in this batch."""
        return self._rows.row_count

    @property
    def is_done(self) -> bool:
        """True if the broker has the rows, in the log or parked, or they have failed."""
        return self._rows.is_done

    @property
    def offset(self) -> int:
        """Offset of the first row; -1 while it is not known, with acks=0, and if the row was
        parked: it gets its offset when it is due."""
        return self._rows.offset

    @property
    def is_parked(self) -> bool:
        """True if the broker has the rows and keeps some of them until they are due."""
        return any(batch.is_parked for batch, _, _ in self._rows.parts())

    @property
    def s_offset(self) -> int:
        """Number that names the first row in its partition while it is parked; -1 if it was not."""
        return self._rows.s_offset

    @property
    def error(self) -> ClientError | None:
        """First reason why rows failed, None if none did; asking counts as having seen it."""
        return self._rows.error

    def __repr__(self) -> str:
        state = f"from offset {self.offset} on" if self.is_done else "waits"
        if self.is_parked:
            state = "parked"
        return f"<BatchReceipt {self.topic} [{self.partition}] {self.row_count} rows, {state}>"


class TableReceipt:
    """Receipt for all rows of a table; `batches` has one for each batch that took rows of it.

    Batches of rows without a due time and an id come first, then those of the others.  Offsets tell
    the order of the rows of a partition only among the first: a parked row has no offset (-1) until
    it is due, and then it comes behind what is there already."""

    def __init__(self, driver: Driver[ProducerCore], sent: list[SentRows]) -> None:
        self.batches = [BatchReceipt(rows) for rows in sent]
        self._driver = driver
        self._sent = sent

    @property
    def row_count(self) -> int:
        """Number of rows of the table."""
        return sum(rows.row_count for rows in self._sent)

    @property
    def is_done(self) -> bool:
        """True if the broker has every row, in the log or parked, or it has failed."""
        return all(rows.is_done for rows in self._sent)

    def result(self, timeout: float | None = None) -> Self:
        """Return this receipt when all rows are in the log, or parked until they are due.  Raises
        the first error why one is not, or TimedOut.

        `timeout` is in seconds; without one it is `delivery.timeout.ms`.
        """
        core = self._driver.core
        limit_ms = timeout_ms_of(timeout, core.producer_settings.delivery_timeout_ms)
        deadline_ms = monotonic_ms() + limit_ms
        for rows in self._sent:
            while (place := rows.open_place()) >= 0:
                left_ms = deadline_ms - monotonic_ms()
                if left_ms < 0:
                    raise TimedOut(f"not all rows were acknowledged within {limit_ms / 1000:g} s")
                receipt = RecordReceipt(rows.batch, place, 0)
                try:
                    self._driver.perform(partial(core.begin_wait, receipt), None, left_ms)
                except ClientError:
                    if not receipt.is_done:
                        raise
        with self._driver.lock:
            errors = [rows.error for rows in self._sent]
        for error in errors:
            if error is not None:
                raise error.with_traceback(None)
        return self

    def __repr__(self) -> str:
        state = "done" if self.is_done else "waits"
        return f"<TableReceipt {self.row_count} rows in {len(self.batches)} batches, {state}>"
