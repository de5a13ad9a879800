"""Aborted transactions: which batches of a fetch a committed reader leaves out.

A broker names, beside the bytes, the transactions that were aborted in them: a producer and the
first offset of its transaction.  From there on the batches of that producer are left out, up to
the marker that ends the transaction.  A transaction that began before the fetch is named with
its own first offset, so each answer explains itself.

Hot: each fetched batch passes here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.records.batch import BatchHeader
from tarry.records.record import open_records
from tarry.wire.reader import MalformedData

# The types of control records; a reader of records minds no other.
ABORT_MARKER: Final = 0
# A control batch whose record was compacted away.
NO_MARKER: Final = -1

# A marker's key is a version and a type, its value a few bytes more.
MARKER_BYTES_MAX: Final = 4096
MARKER_KEY_BYTES: Final = 4


class AbortedTransactions:
    """Aborted transactions of one answer about one partition; its batches pass in their order."""

    def __init__(self, transactions: list[tuple[int, int]]) -> None:
        # Producer id and first offset, the last one first.
        self._waiting = sorted(transactions, key=_first_offset, reverse=True)
        # The producers whose transaction is open and will be aborted; an ordered set.
        self._open: dict[int, None] = {}

    def leaves_out(self, data: bytes, position: i64, header: BatchHeader) -> bool:
        """Return whether users do not get the records of the batch at `position`; true for each
        control batch.  Its CRC must hold."""
        waiting = self._waiting
        last_offset = int(header.last_offset)
        while waiting and waiting[-1][1] <= last_offset:
            self._open[waiting.pop()[0]] = None
        if header.is_control:
            producer_id = int(header.producer_id)
            if producer_id in self._open and marker_type(data, position, header) == ABORT_MARKER:
                del self._open[producer_id]
            return True
        return header.is_transactional and int(header.producer_id) in self._open


def _first_offset(transaction: tuple[int, int]) -> int:
    return transaction[1]


def marker_type(data: bytes, position: i64, header: BatchHeader) -> int:
    """Return the type of the record in a control batch; NO_MARKER if the batch has no record."""
    if header.record_count == 0:
        return NO_MARKER
    try:
        cursor = open_records(data, position, header, MARKER_BYTES_MAX)
        cursor.enter_record(cursor.end)
        cursor.varlong()
        cursor.varint()
        size = cursor.size_of("key of a control record")
        if size >= MARKER_KEY_BYTES:
            cursor.position += 2
            return int(cursor.i16())
        raise CorruptData(f"offset {header.base_offset}: a control record's key has {size} bytes")
    except MalformedData as error:
        raise CorruptData(f"offset {header.base_offset}: {error}") from None
