"""Numbering: a finished batch gets the producer fields that it is sent with.

A batch that was written to a file has no producer yet.  Id, epoch and sequence lie inside what the
CRC covers, so the CRC is made anew; the records stay as they are, compressed or not.
"""

from __future__ import annotations

import struct
from typing import Final

from tarry.base.errors import CorruptData
from tarry.records.batch import ATTRIBUTES, CRC, PRODUCER_ID, RECORD_COUNT, decode_batch_header
from tarry.wire.crc32c import crc32c

# Producer id, producer epoch, base sequence.
_FIELDS: Final = struct.Struct(">qhi")


def numbered(batch: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return the batch as this producer sends it."""
    if decode_batch_header(batch, 0).size != len(batch):
        raise CorruptData(f"{len(batch)} bytes are not one record batch")
    before = batch[ATTRIBUTES:PRODUCER_ID]
    fields = _FIELDS.pack(producer_id, producer_epoch, base_sequence)
    rest = memoryview(batch)[RECORD_COUNT:]
    crc = crc32c(rest, crc32c(fields, crc32c(before)))
    return b"".join([batch[:CRC], crc.to_bytes(4, "big"), before, fields, rest])
