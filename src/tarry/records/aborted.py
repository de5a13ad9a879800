"""Aborted transactions: the batches of a fetch that a committed reader skips.

Beside the bytes, a broker names the transactions that were aborted in them: a producer and the
first offset of its transaction.  The batches of that producer are skipped from there on, up to the
marker that ends the transaction.  A transaction that began before the fetch is named with its own
first offset, so each answer is complete in itself.

Hot: each fetched batch passes here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.records.batch import BatchHeader
from tarry.records.record import open_records
from tarry.wire.reader import MalformedData

# Type of control records of an aborted transaction; readers of records ignore all other types.
ABORT_MARKER: Final = 0
# Type of a control batch whose record was compacted away.
NO_MARKER: Final = -1

# Largest size of a marker, whose key is a version and a type, and whose value has a few bytes.
MARKER_BYTES_MAX: Final = 4096
MARKER_KEY_BYTES: Final = 4


class AbortedTransactions:
    """Aborted transactions of one answer for one partition; its batches must come in order."""

    def __init__(self, transactions: list[tuple[int, int]]) -> None:
        # Transactions still to come, as producer id and first offset, the next one last.
        self._waiting = sorted(transactions, key=_first_offset, reverse=True)
        # Producers with an open transaction that will be aborted; an ordered set.
        self._open: dict[int, None] = {}

    def leaves_out(self, data: bytes, position: i64, header: BatchHeader) -> bool:
        """Return True if users do not get the records of the batch at `position`, as of each
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
