"""Columns of records in Arrow's layout: batches are walked straight into buffers.

No object is made for a record.  Keys and values become views of 16 bytes (Arrow's `binary_view`):
up to 12 bytes lie in the view itself; for longer ones the view names buffer and place, so nothing
is copied.  Fixed-width columns are little-endian, like Arrow's.

Hot: bench/arrow.py measures what a record costs.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, u8

from tarry.base.errors import CorruptData
from tarry.records.open_batch import OpenBatch
from tarry.records.walk import RecordFields
from tarry.wire.reader import MalformedData
from tarry.wire.varint import read_varint

# Bits of the columns that may be chosen.
OFFSETS: Final = 0x01
TIMESTAMPS: Final = 0x02
TIMESTAMP_TYPES: Final = 0x04
KEYS: Final = 0x08
VALUES: Final = 0x10
HEADERS: Final = 0x20
LEADER_EPOCHS: Final = 0x40

# Kafka's types of timestamps.
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

# Longest value that lies in its view, and length of the prefix of a longer one.
_INLINE_BYTES_MAX: Final = 12
_PREFIX_BYTES: Final = 4

# Mask that is shifted to the right, because compiled code has 32 bits for `1 << bits`.
_ALL_BITS: Final = 0x7FFF_FFFF_FFFF_FFFF


class ViewColumn:
    """Column of views: `views` has 16 bytes a row, `validity` a bit a row."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.null_count: i64 = 0
        self._views = BytesWriter()
        self._validity = BytesWriter()
        # Validity bits of the last rows, which do not fill a byte yet.
        self._bits: i64 = 0

    def add(self, data: bytes, start: i64, size: i64, source: i64) -> None:
        """Add a row: `size` bytes from `start` on; null if `size` is below 0."""
        views = self._views
        count: i64 = self.count
        bits: i64 = self._bits
        if size > _INLINE_BYTES_MAX:
            write_i64_le(views, size | (i64(read_i32_le(data, start)) << 32))
            write_i64_le(views, source | (start << 32))
            bits |= 1 << (count & 7)
        elif size >= 0:
            self._add_short(data, start, size)
            bits |= 1 << (count & 7)
        else:
            write_i64_le(views, 0)
            write_i64_le(views, 0)
            self.null_count += 1
        count += 1
        if (count & 7) == 0:
            self._validity.append(u8(bits))
            bits = 0
        self._bits = bits
        self.count = count

    def _add_short(self, data: bytes, start: i64, size: i64) -> None:
        """Add bytes that lie in the view itself, behind their length."""
        first: i64 = 0
        second: i64 = 0
        if start + _INLINE_BYTES_MAX <= len(data):
            first = i64(read_i32_le(data, start)) & 0xFFFF_FFFF
            if size <= _PREFIX_BYTES:
                first &= _ALL_BITS >> (63 - size * 8)
            else:
                second = read_i64_le(data, start + _PREFIX_BYTES)
                if size < _INLINE_BYTES_MAX:
                    second &= _ALL_BITS >> (63 - (size - _PREFIX_BYTES) * 8)
        else:
            # At the end of a buffer the bytes are read one by one.
            place: i64 = 0
            while place < size:
                byte: i64 = data[start + place]
                if place < _PREFIX_BYTES:
                    first |= byte << (place * 8)
                elif place < _INLINE_BYTES_MAX - 1:
                    second |= byte << ((place - _PREFIX_BYTES) * 8)
                else:
                    # The last byte has the word's sign bit, which a shift must not pass.
                    second |= (byte - 256 if byte >= 128 else byte) << 56
                place += 1
        # The upper half of the word is signed.
        if first >= 0x8000_0000:
            first -= 0x1_0000_0000
        write_i64_le(self._views, size | (first << 32))
        write_i64_le(self._views, second)

    def views(self) -> bytes:
        return self._views.getvalue()

    def validity(self) -> bytes | None:
        """Return a bit for each row, 1 if it is not null; None if no row is null."""
        if self.null_count == 0:
            return None
        whole = self._validity.getvalue()
        if (self.count & 7) == 0:
            return whole
        return whole + int(self._bits).to_bytes(1, "little")


class ColumnBuffers:
    """Buffers of the chosen columns, row by row; other columns are not built."""

    def __init__(self, chosen: i64) -> None:
        self.chosen: i64 = chosen
        self.row_count: i64 = 0
        # Bytes of the records walked over so far.
        self.content_bytes: i64 = 0
        self.keys = ViewColumn()
        self.values = ViewColumn()
        self.header_keys = ViewColumn()
        self.header_values = ViewColumn()
        # Buffers that the views name by their index in this list.
        self.sources: list[bytes] = []
        self._source: i64 = -1
        self._offsets = BytesWriter()
        self._timestamps = BytesWriter()
        self._timestamp_types = BytesWriter()
        self._leader_epochs = BytesWriter()
        self._header_ends = BytesWriter()
        self._fields = RecordFields()
        if (chosen & HEADERS) != 0:
            write_i32_le(self._header_ends, 0)

    def take(self, batch: OpenBatch, offset_min: i64, offset_end: i64, rows_max: i64) -> i64:
        """Add the rows of a batch from `offset_min` to before `offset_end`, at most `rows_max`;
        return how many were added.

        A damaged record ends the rows; if there are none before it, its error is raised.
        """
        if batch.is_done:
            return 0
        self._name_source(batch.data)
        rows_before: i64 = self.row_count
        position: i64 = batch.position
        rows_end: i64 = rows_before + rows_max
        try:
            self._walk(batch, offset_min, offset_end, rows_end)
        except MalformedData as error:
            if self.row_count == rows_before:
                raise CorruptData(f"offset {batch.next_offset} or behind it: {error}") from None
        self.content_bytes += batch.position - position
        rows: i64 = self.row_count - rows_before
        if batch.has_append_time and (self.chosen & TIMESTAMPS) != 0:
            _repeat_time(self._timestamps, batch.timestamp, rows)
        if (self.chosen & TIMESTAMP_TYPES) != 0:
            kind: i64 = LOG_APPEND_TIME if batch.has_append_time else CREATE_TIME
            _repeat(self._timestamp_types, kind, rows)
        if (self.chosen & LEADER_EPOCHS) != 0:
            _repeat(self._leader_epochs, batch.leader_epoch, rows)
        return rows

    def _name_source(self, data: bytes) -> None:
        """Make these bytes the buffer that new views name."""
        if self._source >= 0 and self.sources[self._source] is data:
            return
        self._source = len(self.sources)
        self.sources.append(data)

    def _walk(self, batch: OpenBatch, offset_min: i64, offset_end: i64, rows_end: i64) -> None:
        data, fields = batch.data, self._fields
        keys, values, offsets, times = self.keys, self.values, self._offsets, self._timestamps
        chosen: i64 = self.chosen
        if batch.has_append_time:
            # All rows have the batch's time, and not the times in the records.
            chosen &= ~TIMESTAMPS
        source: i64 = self._source
        base_time: i64 = batch.timestamp
        rows: i64 = self.row_count
        while rows < rows_end and batch.records_left > 0:
            offset: i64 = batch.read_next(fields)
            if offset >= offset_end:
                # The range ends inside the batch.
                batch.leave(offset_end)
                return
            if offset < offset_min:
                continue
            rows += 1
            self.row_count = rows
            if (chosen & OFFSETS) != 0:
                write_i64_le(offsets, offset)
            if (chosen & TIMESTAMPS) != 0:
                write_i64_le(times, base_time + fields.timestamp_delta)
            if (chosen & KEYS) != 0:
                keys.add(data, fields.key, fields.key_size, source)
            if (chosen & VALUES) != 0:
                values.add(data, fields.value, fields.value_size, source)
            if (chosen & HEADERS) != 0:
                if fields.header_count > 0:
                    self._add_headers(data, fields.headers, batch.position)
                write_i32_le(self._header_ends, i32(self.header_keys.count))

    def _add_headers(self, data: bytes, position: i64, end: i64) -> None:
        """Add headers whose lengths were checked."""
        source: i64 = self._source
        while position < end:
            size, position = read_varint(data, position, end)
            self._add_header_key(data, position, size)
            position += size
            size, position = read_varint(data, position, end)
            self.header_values.add(data, position, size, source)
            if size > 0:
                position += size

    def _add_header_key(self, data: bytes, start: i64, size: i64) -> None:
        """Add the key of a header, with invalid UTF-8 replaced, as in record objects."""
        place: i64 = start
        end: i64 = start + size
        while place < end:
            byte: i64 = data[place]
            if byte >= 0x80:
                break
            place += 1
        if place < end:
            key = data[start:end]
            sound = key.decode("utf-8", "replace").encode("utf-8")
            if sound != key:
                self.sources.append(sound)
                self.header_keys.add(sound, 0, len(sound), len(self.sources) - 1)
                return
        self.header_keys.add(data, start, size, self._source)

    def offsets(self) -> bytes:
        return self._offsets.getvalue()

    def timestamps(self) -> bytes:
        return self._timestamps.getvalue()

    def timestamp_types(self) -> bytes:
        return self._timestamp_types.getvalue()

    def leader_epochs(self) -> bytes:
        return self._leader_epochs.getvalue()

    def header_ends(self) -> bytes:
        """Return the end of each row's headers, after a 0: the offsets of an Arrow list."""
        return self._header_ends.getvalue()


def _repeat(writer: BytesWriter, value: i64, count: i64) -> None:
    narrow = i32(value)
    while count > 0:
        write_i32_le(writer, narrow)
        count -= 1


def _repeat_time(writer: BytesWriter, timestamp: i64, count: i64) -> None:
    while count > 0:
        write_i64_le(writer, timestamp)
        count -= 1
