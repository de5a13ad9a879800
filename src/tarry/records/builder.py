"""Builder of record batches, for the client, for the broker's own logs, for tests.

Records are encoded as they are added, so that `size` tells a client when the batch is full.  Codec,
offsets and producer fields are chosen at the end, and a batch can be built more than once.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64

from tarry.records.batch import (
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
)
from tarry.wire.compression import ZSTD_LEVEL_HIGHEST, compress
from tarry.wire.crc32c import crc32c
from tarry.wire.varint import varint_size, write_varint, write_varlong

Headers = list[tuple[str, bytes | None]]

NO_PRODUCER_EPOCH: Final = -1
# Times from 0 to below this one always have a difference that fits 64 bits; almost all are such.
NEAR_TIMESTAMP_MAX: Final = 0x4000_0000_0000_0000

# Encoded headers of a record that has none: their count, 0.
NO_HEADERS: Final = b"\x00"


class BatchBuilder:
    """Builder of one batch of format v2.  The first record's time is the batch's base time."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.base_timestamp: i64 = NO_TIMESTAMP
        self.max_timestamp: i64 = NO_TIMESTAMP
        # Leader epoch, which a broker assigns; only a program that acts as a broker sets it.
        self.leader_epoch: i64 = -1
        self._records = BytesWriter()

    @property
    def size(self) -> i64:
        """Size of the batch in bytes before compression."""
        return HEADER_SIZE + len(self._records)

    def append(
        self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Headers | None = None
    ) -> None:
        """Add a record behind the others.  If that is impossible, raise and leave the builder
        unchanged."""
        delta: i64 = self._delta_of(timestamp)
        header_bytes = NO_HEADERS if headers is None else _encode_headers(headers)
        size_before: i64 = len(self._records)
        try:
            self._write(delta, key, value, header_bytes)
        except BaseException:
            self._records.truncate(size_before)
            raise
        self._count_record(timestamp)

    def begin_record(self, timestamp: i64, body_size: i64) -> BytesWriter:
        """Add a record up to its key; the caller must write the rest, `body_size` bytes, into the
        returned writer."""
        delta: i64 = self._delta_of(timestamp)
        records = self._records
        write_varint(records, 1 + varint_size(delta) + varint_size(self.count) + body_size)
        records.append(0)
        write_varlong(records, delta)
        write_varint(records, self.count)
        self._count_record(timestamp)
        return records

    def _delta_of(self, timestamp: i64) -> i64:
        """Return the difference to the batch's base time; ValueError if it does not fit 64
        bits."""
        base: i64 = timestamp if self.count == 0 else self.base_timestamp
        if 0 <= base <= timestamp < NEAR_TIMESTAMP_MAX:
            return timestamp - base
        if base < 0 and timestamp > TIMESTAMP_MAX + base:
            raise ValueError(f"the time {timestamp} is too far from the batch's first, {base}")
        if base > 0 and timestamp < TIMESTAMP_MIN + base:
            raise ValueError(f"the time {timestamp} is too far from the batch's first, {base}")
        if timestamp > TIMESTAMP_MAX or timestamp < TIMESTAMP_MIN:
            raise ValueError(f"the time {timestamp} does not fit 64 bits")
        return timestamp - base

    def _count_record(self, timestamp: i64) -> None:
        if self.count == 0:
            self.base_timestamp = timestamp
            self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1

    def _write(
        self, timestamp_delta: i64, key: bytes | None, value: bytes | None, header_bytes: bytes
    ) -> None:
        records = self._records
        write_varint(
            records,
            1
            + varint_size(timestamp_delta)
            + varint_size(self.count)
            + _size_of(key)
            + _size_of(value)
            + len(header_bytes),
        )
        records.append(0)
        write_varlong(records, timestamp_delta)
        write_varint(records, self.count)
        write_bytes(records, key)
        write_bytes(records, value)
        records.write(header_bytes)

    def build(
        self,
        codec: i64 = 0,
        base_offset: i64 = 0,
        *,
        producer_id: i64 = NO_PRODUCER_ID,
        producer_epoch: i64 = NO_PRODUCER_EPOCH,
        base_sequence: i64 = NO_SEQUENCE,
        attributes: i64 = 0,
        level: int | None = None,
    ) -> bytes:
        """Build the batch of all records so far; `attributes` are added to the codec's, `level` is
        the codec's level, None for its default."""
        content = self._records.getvalue()
        if codec != 0:
            content = compress(codec, content, level, ZSTD_LEVEL_HIGHEST)
        covered = BytesWriter()
        write_i16_be(covered, i16(attributes | codec))
        write_i32_be(covered, i32(self.count - 1))
        write_i64_be(covered, self.base_timestamp)
        write_i64_be(covered, self.max_timestamp)
        write_i64_be(covered, producer_id)
        write_i16_be(covered, i16(producer_epoch))
        write_i32_be(covered, i32(base_sequence))
        write_i32_be(covered, i32(self.count))
        fields = covered.getvalue()
        size: i64 = HEADER_SIZE + len(content)
        head = BytesWriter()
        write_i64_be(head, base_offset)
        write_i32_be(head, i32(size - LENGTH_OVERHEAD))
        write_i32_be(head, i32(self.leader_epoch))
        head.append(MAGIC_V2)
        crc: int = crc32c(content, crc32c(fields))
        return b"".join([head.getvalue(), crc.to_bytes(4, "big"), fields, content])


def _size_of(value: bytes | None) -> i64:
    if value is None:
        return 1
    size: i64 = len(value)
    return varint_size(size) + size


def write_bytes(writer: BytesWriter, value: bytes | None) -> None:
    """Write a key, a value, or the name or value of a header, after its size."""
    if value is None:
        write_varint(writer, -1)
        return
    write_varint(writer, len(value))
    writer.write(value)


def _encode_headers(headers: Headers) -> bytes:
    writer = BytesWriter()
    write_varint(writer, len(headers))
    for name, value in headers:
        write_bytes(writer, name.encode("utf-8"))
        write_bytes(writer, value)
    return writer.getvalue()
