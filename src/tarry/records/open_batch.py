"""OpenBatch: a fetched batch, checked and decompressed, read record by record.

A batch may come from any broker.  Its CRC is checked, every length and count is compared with the
bytes that are there, offsets must ascend within the range of the batch's header, and content is
decompressed to at most `size_max` bytes.  Every flaw of a batch is `CorruptData`.

Hot: every record that a client reads passes here, as an object (`record`) or as a row (`columns`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    checked_header,
)
from tarry.records.walk import RECORD_BYTES_MIN, RecordFields, read_record
from tarry.wire.compression import decompress
from tarry.wire.reader import MalformedData

# Largest buffer: places in an Arrow buffer are signed 32-bit numbers.
_SOURCE_BYTES_MAX: Final = 0x7FFF_FFFF
_OFFSET_MAX: Final = 2**63 - 1


class OpenBatch:
    """Batch whose records are being read; `next_offset` is behind the last record read."""

    def __init__(self, data: bytes, position: i64) -> None:
        header = checked_header(data, position)
        base_offset: i64 = header.base_offset
        last_delta: i64 = header.last_offset_delta
        if base_offset < 0 or last_delta < 0 or base_offset > _OFFSET_MAX - 1 - last_delta:
            raise CorruptData(f"a batch at offset {base_offset} with {last_delta} behind it")
        self.header = header
        self.data = data
        self.position: i64 = position + HEADER_SIZE
        self.end: i64 = position + header.size
        self.base_offset: i64 = base_offset
        self.last_delta: i64 = last_delta
        self.next_offset: i64 = base_offset
        self.leader_epoch: i64 = header.leader_epoch
        self.has_append_time = header.is_log_append_time
        base: i64 = header.base_timestamp
        # The time of a record is `timestamp` plus its delta, which must lie between these two.
        self.timestamp: i64 = base
        self.delta_min: i64 = TIMESTAMP_MIN
        self.delta_max: i64 = TIMESTAMP_MAX
        if self.has_append_time:
            self.timestamp = header.max_timestamp
        elif base < 0:
            self.delta_min = TIMESTAMP_MIN - base
        else:
            self.delta_max = TIMESTAMP_MAX - base
        self.previous_delta: i64 = -1
        self.records_left: i64 = 0

    def unfold(self, size_max: i64) -> None:
        """Begin with the records; decompress them first if they are compressed."""
        codec: i64 = self.header.attributes & CODEC_MASK
        if codec != 0:
            content = memoryview(self.data)[self.position : self.end]
            self.data = decompress(codec, content, size_max)
            self.position = 0
            self.end = len(self.data)
        size: i64 = self.end - self.position
        count: i64 = self.header.record_count
        if count < 0 or count > size // RECORD_BYTES_MIN:
            raise CorruptData(f"{count} records in {size} bytes")
        if len(self.data) > _SOURCE_BYTES_MAX:
            raise CorruptData(f"a buffer of {len(self.data)} bytes")
        if count == 0:
            if size > 0:
                raise CorruptData(f"{size} bytes and no record at offset {self.base_offset}")
            self.leave(self.base_offset + self.last_delta + 1)
        self.records_left = count

    @property
    def is_done(self) -> bool:
        """True if no record is left."""
        return self.records_left == 0

    def read_next(self, fields: RecordFields) -> i64:
        """Read the next record and step behind it; return its offset.  A flaw in it raises
        `MalformedData`, and the batch stays where it is."""
        end: i64 = self.end
        previous: i64 = self.previous_delta
        left: i64 = self.records_left - 1
        behind: i64 = read_record(self.data, self.position, end, fields)
        delta: i64 = fields.offset_delta
        if delta <= previous or delta > self.last_delta:
            raise MalformedData(f"the offset delta {delta} follows {previous}")
        if left == 0 and behind != end:
            raise MalformedData(f"{end - behind} bytes follow the last record")
        time_delta: i64 = fields.timestamp_delta
        if time_delta < self.delta_min or time_delta > self.delta_max:
            raise MalformedData(f"a time {time_delta} from the batch's does not fit 64 bits")
        offset: i64 = self.base_offset + delta
        self.position = behind
        self.previous_delta = delta
        self.records_left = left
        # The last record may be followed by offsets whose records compaction took.
        self.next_offset = self.base_offset + (self.last_delta if left == 0 else delta) + 1
        return offset

    def leave(self, next_offset: i64) -> None:
        """Skip the rest of the batch."""
        self.records_left = 0
        self.next_offset = next_offset
