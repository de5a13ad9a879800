"""Log of a partition with transactions, and what a copy of it may give.

A copy is the log up to an offset.  A broker judges transactions by its copy: a transaction is open
while the copy lacks its marker.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.records.batch import CRC, LAST_OFFSET_DELTA, NO_PRODUCER_ID
from tarry.records.builder import BatchBuilder
from tarry.wire.crc32c import crc32c

FIRST_EPOCH: Final = 1

_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_MARKER_VALUE: Final = b"\0\0\0\0\0\0"


class LoggedBatch(NamedTuple):
    """Batch with its records; `end_offset` is the offset behind the last one."""

    offset: int
    end_offset: int
    data: bytes
    # Values of the records; none for a marker.
    values: list[bytes]
    transaction: LoggedTransaction | None


class LoggedTransaction:
    """Transaction of one producer, open while there is no marker."""

    def __init__(self, producer_id: int, first_offset: int) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.marker_offset = -1
        self.is_aborted = False

    def is_open_before(self, end_offset: int) -> bool:
        """Return true if a copy with this end has the transaction's begin, and not its marker."""
        is_ended = 0 <= self.marker_offset < end_offset
        return self.first_offset < end_offset and not is_ended


def _lengthened(data: bytes, last_offset_delta: int) -> bytes:
    """Return a batch whose last offset is another one than that of its last record."""
    covered = data[CRC + 4 : LAST_OFFSET_DELTA] + last_offset_delta.to_bytes(4, "big")
    covered += data[LAST_OFFSET_DELTA + 4 :]
    return data[:CRC] + int(crc32c(covered)).to_bytes(4, "big") + covered


def _end_of(transaction: LoggedTransaction) -> int:
    return transaction.marker_offset


class TransactionLog:
    """Log that its leader appends to."""

    def __init__(self) -> None:
        self.batches: list[LoggedBatch] = []
        self.end_offset = 0
        self.leader_epoch = FIRST_EPOCH
        self.transactions: list[LoggedTransaction] = []
        # Open transactions, by producer id.
        self.open: dict[int, LoggedTransaction] = {}

    # --- The leader writes.

    def write(
        self,
        values: list[bytes],
        codec: int,
        producer_id: int = NO_PRODUCER_ID,
        *,
        compacted: int = 0,
    ) -> None:
        """Append a batch; one with a producer belongs to its transaction, or begins it.

        Its last `compacted` records are gone, as after a compaction: their offsets stay its own.
        """
        values = values[: len(values) - compacted]
        builder = BatchBuilder()
        for value in values:
            builder.append(0, None, value, None)
        transaction = None
        if producer_id != NO_PRODUCER_ID:
            transaction = self.open.get(producer_id)
            if transaction is None:
                transaction = LoggedTransaction(producer_id, self.end_offset)
                self.transactions.append(transaction)
                self.open[producer_id] = transaction
        attributes = 0 if transaction is None else _TRANSACTIONAL
        self._append(builder, values, transaction, codec=codec, attributes=attributes)
        if compacted:
            last = self.batches.pop()
            self.end_offset += compacted
            data = _lengthened(last.data, self.end_offset - last.offset - 1)
            self.batches.append(last._replace(end_offset=self.end_offset, data=data))

    def end(self, producer_id: int, *, is_aborted: bool) -> None:
        """End the open transaction of a producer with a marker."""
        transaction = self.open.pop(producer_id)
        transaction.marker_offset = self.end_offset
        transaction.is_aborted = is_aborted
        builder = BatchBuilder()
        builder.append(0, b"\0\0\0\0" if is_aborted else b"\0\0\0\1", _MARKER_VALUE, None)
        self._append(builder, [], transaction, codec=0, attributes=_TRANSACTIONAL | _CONTROL)

    def _append(
        self,
        builder: BatchBuilder,
        values: list[bytes],
        transaction: LoggedTransaction | None,
        *,
        codec: int,
        attributes: int,
    ) -> None:
        offset = self.end_offset
        builder.leader_epoch = self.leader_epoch
        self.end_offset += int(builder.count)
        data = builder.build(
            codec,
            offset,
            producer_id=NO_PRODUCER_ID if transaction is None else transaction.producer_id,
            producer_epoch=-1 if transaction is None else 0,
            attributes=attributes,
        )
        self.batches.append(LoggedBatch(offset, self.end_offset, data, values, transaction))

    # --- What a copy gives.

    def stable_end(self, end_offset: int) -> int:
        """Return the last stable offset of a copy that ends there."""
        return min(
            (one.first_offset for one in self.transactions if one.is_open_before(end_offset)),
            default=end_offset,
        )

    def read(self, offset: int, end_offset: int, bytes_max: int) -> tuple[bytes, int]:
        """Return whole batches from the one that has `offset` on, the first whatever its size, and
        the offset behind them."""
        found = b""
        upper = offset
        for batch in self.batches:
            if offset < batch.end_offset <= end_offset:
                if found and len(found) + len(batch.data) > bytes_max:
                    break
                found += batch.data
                upper = batch.end_offset
        return found, upper

    def aborted(self, offset: int, upper: int, end_offset: int) -> list[LoggedTransaction]:
        """Return the aborted transactions of a copy that ends at `end_offset`, if they reach into
        the offsets from `offset` up to `upper`; in the order of their markers, as Kafka does."""
        found = [
            one
            for one in self.transactions
            if one.is_aborted
            and offset <= one.marker_offset < end_offset
            and one.first_offset < upper
        ]
        return sorted(found, key=_end_of)

    def visible(self, *, is_committed: bool) -> list[tuple[int, bytes]]:
        """Return offset and value of every record that a reader of this isolation gets."""
        end_offset = self.stable_end(self.end_offset) if is_committed else self.end_offset
        found: list[tuple[int, bytes]] = []
        for batch in self.batches:
            transaction = batch.transaction
            is_left_out = transaction is not None and transaction.is_aborted and is_committed
            if batch.end_offset <= end_offset and not is_left_out:
                found += enumerate(batch.values, batch.offset)
        return found

    def transaction_at(self, offset: int) -> LoggedTransaction | None:
        """Return the transaction that a record belongs to."""
        for batch in self.batches:
            if batch.offset <= offset < batch.end_offset:
                return batch.transaction
        return None
