"""Records from columns in Arrow's layout: rows are encoded straight into batches.

No object is made for a record.  A column of bytes is its data, the places where rows end (64-bit,
little-endian, as in Arrow's `large_binary`) and a bit for each row, 0 if it is null.  Every place
is compared with the data before it is read.

Hot: bench/arrow.py measures what a record costs.
"""

from __future__ import annotations

import zlib
from typing import Final

from librt.strings import (
    BytesWriter,
    read_i32_le,
    read_i64_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i32, i64, u8

from tarry.records.builder import BatchBuilder
from tarry.wire.varint import varint_size, write_varint

# Largest size of a record before its key: length 5, attributes 1, time 10, offset delta 5.
HEAD_BYTES_MAX: Final = 21

# Value in the column of partitions that lets the key decide.
BY_KEY: Final = -1

NULL: Final = -1

# Size up to which bytes are copied by words, because a slice is an object.
_WORDS_BYTES_MAX: Final = 64

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF


class BytesColumn:
    """Column of bytes or nulls; `ends` count from `base`, the place of the first byte of `data`."""

    def __init__(
        self, data: bytes, ends: bytes, base: i64, validity: bytes | None, bit: i64
    ) -> None:
        self.data = data
        self._ends = ends
        self._base: i64 = base
        self._validity = validity
        # Position of the first row's bit in `validity`.
        self._bit: i64 = bit

    def start(self, row: i64) -> i64:
        """Return where a row begins in `data`."""
        return read_i64_le(self._ends, row * 8) - self._base

    def size(self, row: i64) -> i64:
        """Return the size of a row in bytes; NULL if it is null."""
        validity = self._validity
        if validity is not None:
            place: i64 = self._bit + row
            byte: i64 = validity[place >> 3]
            if ((byte >> (place & 7)) & 1) == 0:
                return NULL
        start: i64 = self.start(row)
        end: i64 = self.start(row + 1)
        if start < 0 or end < start or end > len(self.data):
            raise ValueError(f"row {row} of a column lies at {start} to {end} of its bytes")
        return end - start


class RowHeaders:
    """Headers of rows; `ends` has 64 bits a row: where its headers end, after the first begin."""

    def __init__(self, ends: bytes, keys: BytesColumn, values: BytesColumn) -> None:
        self._ends = ends
        self._keys = keys
        self._values = values

    def encode(self, row: i64) -> bytes:
        """Encode the headers of a row, with their count."""
        first: i64 = read_i64_le(self._ends, row * 8)
        end: i64 = read_i64_le(self._ends, (row + 1) * 8)
        writer = BytesWriter()
        if end <= first:
            writer.append(0)
            return writer.getvalue()
        write_varint(writer, end - first)
        while first < end:
            size: i64 = self._keys.size(first)
            if size < 0:
                raise ValueError(f"row {row}: a header's key is null")
            _write_sized(writer, self._keys, first, size)
            _write_sized(writer, self._values, first, self._values.size(first))
            first += 1
        return writer.getvalue()


class RecordRows:
    """Rows that become records; `timestamps` has 64 bits for each, `partitions` 32."""

    def __init__(
        self,
        row_count: i64,
        keys: BytesColumn | None,
        values: BytesColumn | None,
        headers: RowHeaders | None,
        timestamps: bytes,
        partitions: bytes | None,
    ) -> None:
        if len(timestamps) < row_count * 8:
            raise ValueError(f"{len(timestamps)} bytes of times for {row_count} rows")
        if partitions is not None and len(partitions) < row_count * 4:
            raise ValueError(f"{len(partitions)} bytes of partitions for {row_count} rows")
        self.row_count: i64 = row_count
        self.keys = keys
        self.values = values
        self.headers = headers
        self.timestamps = timestamps
        self.partitions = partitions

    def body_bytes(self, row: i64) -> i64:
        """Return the size of a row's record without its head, in bytes."""
        size: i64 = 1
        keys, values, headers = self.keys, self.values, self.headers
        size += _bytes_with_size(NULL if keys is None else keys.size(row))
        size += _bytes_with_size(NULL if values is None else values.size(row))
        if headers is not None:
            size += len(headers.encode(row)) - 1
        return size

    def largest(self) -> tuple[i64, i64]:
        """Return the row with the largest record, and the largest size that record can have."""
        found: i64 = 0
        largest: i64 = 0
        row: i64 = 0
        while row < self.row_count:
            size: i64 = self.body_bytes(row)
            if size > largest:
                found = row
                largest = size
            row += 1
        return found, largest + HEAD_BYTES_MAX

    def split(self, partition_count: i64, is_crc32: bool) -> list[bytes]:
        """Return the rows of each partition as 32-bit numbers, and as last element those without a
        partition."""
        writers = [BytesWriter() for _ in range(partition_count + 1)]
        row: i64 = 0
        while row < self.row_count:
            partition: i64 = BY_KEY
            if self.partitions is not None:
                partition = i64(read_i32_le(self.partitions, row * 4))
            if partition < 0:
                partition = self._partition_by_key(row, partition_count, is_crc32)
            elif partition >= partition_count:
                raise ValueError(f"row {row}: there is no partition {partition}")
            write_i32_le(writers[partition], i32(row))
            row += 1
        return [writer.getvalue() for writer in writers]

    def _partition_by_key(self, row: i64, partition_count: i64, is_crc32: bool) -> i64:
        keys = self.keys
        if keys is None:
            return partition_count
        size: i64 = keys.size(row)
        if size < 0 or (size == 0 and is_crc32):
            # librdkafka treats an empty key as none.
            return partition_count
        start: i64 = keys.start(row)
        if is_crc32:
            return i64(zlib.crc32(keys.data[start : start + size])) % partition_count
        return (murmur2_at(keys.data, start, size) & 0x7FFF_FFFF) % partition_count


def murmur2_at(data: bytes, start: i64, size: i64) -> i64:
    """Compute Kafka's murmur2 of `size` bytes as an unsigned 32-bit number."""
    value: i64 = _SEED ^ size
    end: i64 = start + size
    while end - start >= 4:
        word: i64 = ((i64(read_i32_le(data, start)) & _MASK) * _MULTIPLIER) & _MASK
        word = ((word ^ (word >> 24)) * _MULTIPLIER) & _MASK
        value = ((value * _MULTIPLIER) & _MASK) ^ word
        start += 4
    if start < end:
        rest: i64 = data[start]
        if end - start > 1:
            byte: i64 = data[start + 1]
            rest |= byte << 8
        if end - start > 2:
            byte = data[start + 2]
            rest |= byte << 16
        value = ((value ^ rest) * _MULTIPLIER) & _MASK
    value = ((value ^ (value >> 13)) * _MULTIPLIER) & _MASK
    return value ^ (value >> 15)


def append_rows(
    builder: BatchBuilder, rows: RecordRows, places: bytes, first: i64, size_max: i64
) -> i64:
    """Append rows to a batch up to `size_max` bytes, the first one in any case; `places` has the
    numbers of the rows, read from its index `first` on.  Return how many were appended."""
    place: i64 = first
    count: i64 = len(places) // 4
    keys, values, headers = rows.keys, rows.values, rows.headers
    while place < count:
        row: i64 = i64(read_i32_le(places, place * 4))
        key_size: i64 = NULL if keys is None else keys.size(row)
        value_size: i64 = NULL if values is None else values.size(row)
        body: i64 = _bytes_with_size(key_size) + _bytes_with_size(value_size)
        header_bytes: bytes | None = None
        if headers is None:
            body += 1
        else:
            header_bytes = headers.encode(row)
            body += len(header_bytes)
        if builder.count > 0 and builder.size + HEAD_BYTES_MAX + body > size_max:
            break
        writer = builder.begin_record(read_i64_le(rows.timestamps, row * 8), body)
        _write_sized(writer, keys, row, key_size)
        _write_sized(writer, values, row, value_size)
        if header_bytes is None:
            writer.append(0)
        else:
            writer.write(header_bytes)
        place += 1
    return place - first


def _bytes_with_size(size: i64) -> i64:
    """Return the size of a field together with its length."""
    if size < 0:
        return 1
    return varint_size(size) + size


def _write_sized(writer: BytesWriter, column: BytesColumn | None, row: i64, size: i64) -> None:
    """Write the bytes of a row after their length; `size` was checked before."""
    if size < 0 or column is None:
        writer.append(1)
        return
    if size < 64:
        writer.append(u8(size << 1))
    else:
        write_varint(writer, size)
    data = column.data
    start: i64 = column.start(row)
    end: i64 = start + size
    if size > _WORDS_BYTES_MAX:
        writer.write(data[start:end])
        return
    while end - start >= 8:
        write_i64_le(writer, read_i64_le(data, start))
        start += 8
    while start < end:
        writer.append(u8(data[start]))
        start += 1
