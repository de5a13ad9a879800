"""Rebuild of a stored batch without some of its records, as compaction does it.

Base offset, last offset, leader epoch and all producer fields stay, so that readers continue
behind the gap and a restart still finds the producer's last sequence.  Hot.
"""

from __future__ import annotations

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from tarry.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    BatchHeader,
)
from tarry.wire.crc32c import crc32c


class RebuiltBatch:
    """Parts of a rebuilt batch; `content` follows the header, compressed by its codec."""

    def __init__(self, header: BatchHeader) -> None:
        self.header = header
        self.attributes: i64 = header.attributes
        self.base_timestamp: i64 = header.base_timestamp
        self.max_timestamp: i64 = header.max_timestamp
        self.record_count: i64 = 0
        self.content = b""

    def set_delete_horizon(self, horizon_ms: i64) -> None:
        """Set the time from which on its tombstones may go, in place of the base time (KIP-534)."""
        self.attributes |= DELETE_HORIZON_BIT
        self.base_timestamp = horizon_ms

    def encode(self) -> bytes:
        """Encode the whole batch."""
        header = self.header
        covered = BytesWriter()
        write_i16_be(covered, i16(self.attributes))
        write_i32_be(covered, i32(header.last_offset_delta))
        write_i64_be(covered, self.base_timestamp)
        write_i64_be(covered, self.max_timestamp)
        write_i64_be(covered, header.producer_id)
        write_i16_be(covered, i16(header.producer_epoch))
        write_i32_be(covered, i32(header.base_sequence))
        write_i32_be(covered, i32(self.record_count))
        fields = covered.getvalue()
        size: i64 = HEADER_SIZE + len(self.content)
        head = BytesWriter()
        write_i64_be(head, header.base_offset)
        write_i32_be(head, i32(size - LENGTH_OVERHEAD))
        write_i32_be(head, i32(header.leader_epoch))
        head.append(MAGIC_V2)
        crc: int = crc32c(self.content, crc32c(fields))
        return b"".join([head.getvalue(), crc.to_bytes(4, "big"), fields, self.content])


def empty_batch(header: BatchHeader, base_timestamp: i64 = NO_TIMESTAMP) -> bytes:
    """Return the batch without records and without a time, so that searches by time skip it; what
    it keeps as base timestamp they do not see."""
    rebuilt = RebuiltBatch(header)
    rebuilt.attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    rebuilt.base_timestamp = base_timestamp
    rebuilt.max_timestamp = NO_TIMESTAMP
    return rebuilt.encode()


def has_delete_horizon(header: BatchHeader) -> bool:
    """Return True if the batch has the time from which on its tombstones may go."""
    return (header.attributes & DELETE_HORIZON_BIT) != 0
