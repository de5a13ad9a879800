"""Numbering: a finished batch gets other producer fields.

A batch that was written to a file has no producer yet; a scheduled one gets another identity when
it is released.  The CRC covers id, epoch and sequence, so it is computed again.  The records stay
unchanged, compressed or not.  Hot.
"""

from __future__ import annotations

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from tarry.base.errors import CorruptData
from tarry.records.batch import ATTRIBUTES, CRC, PRODUCER_ID, RECORD_COUNT, decode_batch_header
from tarry.wire.crc32c import crc32c


def numbered(batch: bytes, producer_id: i64, producer_epoch: i64, base_sequence: i64) -> bytes:
    """Return the batch with these producer fields."""
    if decode_batch_header(batch, 0).size != len(batch):
        raise CorruptData(f"{len(batch)} bytes are not one record batch")
    covered = BytesWriter()
    covered.write(batch[ATTRIBUTES:PRODUCER_ID])
    write_i64_be(covered, producer_id)
    write_i16_be(covered, i16(producer_epoch))
    write_i32_be(covered, i32(base_sequence))
    fields = covered.getvalue()
    rest = memoryview(batch)[RECORD_COUNT:]
    crc: int = crc32c(rest, crc32c(fields))
    return b"".join([batch[:CRC], crc.to_bytes(4, "big"), fields, rest])
