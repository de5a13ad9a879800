"""Columns of records, in the layout of Arrow: batches are walked straight into buffers.

No object is made for a record.  Keys and values become views of 16 bytes (Arrow's `binary_view`):
up to 12 bytes lie in the view itself, longer ones are named by buffer and place, so that nothing is
copied.  Fixed-width columns are little-endian, as Arrow's are.

A batch may come from any broker.  Its CRC is checked, every length and count is compared with the
bytes that are there, offsets must ascend within what the batch's header claims, and content unfolds
to `size_max` bytes at most.  Every flaw is `CorruptData`.

Hot: see bench/arrow.py for what a record costs.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_le,
    read_i32_le,
    read_i64_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i32, i64, u8

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC_V2,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    decode_batch_header,
    has_valid_crc,
)
from tarry.records.walk import HEADER_BYTES_MIN, NULL_SIZE_BYTE, RECORD_BYTES_MIN
from tarry.wire.compression import decompress
from tarry.wire.reader import MalformedData
from tarry.wire.varint import read_varint, read_varlong

# The columns that may be chosen.
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

# What lies in a view itself, and the part of it that is beside the length.
_INLINE_BYTES_MAX: Final = 12
_PREFIX_BYTES: Final = 4

# Shifted to the right, a mask: compiled code has 32 bits for `1 << bits`.
_ALL_BITS: Final = 0x7FFF_FFFF_FFFF_FFFF

# Places in a buffer are signed 32-bit numbers.
_SOURCE_BYTES_MAX: Final = 0x7FFF_FFFF
_OFFSET_MAX: Final = 2**63 - 1


class OpenBatch:
    """Batch whose records are being walked; `next_offset` follows what was walked so far."""

    def __init__(self, data: bytes, position: i64) -> None:
        header = decode_batch_header(data, position)
        if header.magic != MAGIC_V2:
            raise CorruptData(f"record batches have magic 2, this one has {header.magic}")
        if header.size > len(data) - position:
            raise CorruptData(f"batch of {header.size} bytes, {len(data) - position} are there")
        if not has_valid_crc(data, position, header):
            raise CorruptData(f"batch at offset {header.base_offset} does not match its CRC")
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
        # Times of records are `timestamp` and a delta between these two.
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
        """Begin with the records, unfolded if they are compressed."""
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
        """True if no record is left to be walked."""
        return self.records_left == 0

    def step(self, position: i64, delta: i64, records_left: i64) -> None:
        """Step behind a record."""
        self.position = position
        self.previous_delta = delta
        self.records_left = records_left

    def leave(self, next_offset: i64) -> None:
        """Leave the rest of the batch out."""
        self.records_left = 0
        self.next_offset = next_offset


class _Fields:
    """Places of one record's fields; a size of -1 stands for null."""

    def __init__(self) -> None:
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key: i64 = 0
        self.key_size: i64 = -1
        self.value: i64 = 0
        self.value_size: i64 = -1
        self.headers: i64 = 0
        self.header_count: i64 = 0


class ViewColumn:
    """Column of views: `views` has 16 bytes a row, `validity` a bit a row."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.null_count: i64 = 0
        self._views = BytesWriter()
        self._validity = BytesWriter()
        # The bits of the rows that do not fill a byte yet.
        self._bits: i64 = 0

    def add(self, data: bytes, start: i64, size: i64, source: i64) -> None:
        """Add a row: `size` bytes from `start` on; less than 0 for null."""
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
        """Add bytes that lie in the view itself, behind their number."""
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
            # The last bytes of a buffer are read one by one.
            place: i64 = 0
            while place < size:
                byte: i64 = data[start + place]
                if place < _PREFIX_BYTES:
                    first |= byte << (place * 8)
                elif place < _INLINE_BYTES_MAX - 1:
                    second |= byte << ((place - _PREFIX_BYTES) * 8)
                else:
                    # The sign bit of the word: no shift may go beyond it.
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
        """Return the bits of the rows that are there; None if all are."""
        if self.null_count == 0:
            return None
        whole = self._validity.getvalue()
        if (self.count & 7) == 0:
            return whole
        return whole + int(self._bits).to_bytes(1, "little")


class ColumnBuffers:
    """Buffers of the chosen columns, row by row; what is not chosen is not built."""

    def __init__(self, chosen: i64) -> None:
        self.chosen: i64 = chosen
        self.row_count: i64 = 0
        # Bytes of the records that were walked.
        self.content_bytes: i64 = 0
        self.keys = ViewColumn()
        self.values = ViewColumn()
        self.header_keys = ViewColumn()
        self.header_values = ViewColumn()
        # What the views name by its place in this list.
        self.sources: list[bytes] = []
        self._source: i64 = -1
        self._offsets = BytesWriter()
        self._timestamps = BytesWriter()
        self._timestamp_types = BytesWriter()
        self._leader_epochs = BytesWriter()
        self._header_ends = BytesWriter()
        self._fields = _Fields()
        if (chosen & HEADERS) != 0:
            write_i32_le(self._header_ends, 0)

    def take(self, batch: OpenBatch, offset_min: i64, offset_end: i64, rows_max: i64) -> i64:
        """Add the rows of a batch from `offset_min` to before `offset_end`, `rows_max` at most;
        return how many were added.

        A damaged record ends the rows before it; it is raised when nothing lies before it.
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
        if batch.records_left > 0:
            batch.next_offset = batch.base_offset + batch.previous_delta + 1
        elif batch.position == batch.end:
            batch.next_offset = batch.base_offset + batch.last_delta + 1
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
        """Have the views name these bytes from now on."""
        if self._source >= 0 and self.sources[self._source] is data:
            return
        self._source = len(self.sources)
        self.sources.append(data)

    def _walk(self, batch: OpenBatch, offset_min: i64, offset_end: i64, rows_end: i64) -> None:
        data, fields = batch.data, self._fields
        keys, values, offsets, times = self.keys, self.values, self._offsets, self._timestamps
        end: i64 = batch.end
        chosen: i64 = self.chosen
        if batch.has_append_time:
            # All rows have one time, which is not the records'.
            chosen &= ~TIMESTAMPS
        source: i64 = self._source
        left: i64 = batch.records_left
        previous: i64 = batch.previous_delta
        last_delta: i64 = batch.last_delta
        base_offset: i64 = batch.base_offset
        base_time: i64 = batch.timestamp
        position: i64 = batch.position
        rows: i64 = self.row_count
        while left > 0 and rows < rows_end:
            behind: i64 = _read_record(data, position, end, fields)
            delta: i64 = fields.offset_delta
            if delta <= previous or delta > last_delta:
                raise MalformedData(f"the offset delta {delta} follows {previous}")
            if left == 1 and behind != end:
                raise MalformedData(f"{end - behind} bytes follow the last record")
            offset: i64 = base_offset + delta
            if offset >= offset_end:
                # The range ends inside the batch.
                batch.leave(offset_end)
                return
            time_delta: i64 = fields.timestamp_delta
            if time_delta < batch.delta_min or time_delta > batch.delta_max:
                raise MalformedData(f"a time {time_delta} from the batch's does not fit 64 bits")
            left -= 1
            previous = delta
            position = behind
            batch.step(position, delta, left)
            if offset < offset_min:
                continue
            rows += 1
            self.row_count = rows
            if (chosen & OFFSETS) != 0:
                write_i64_le(offsets, offset)
            if (chosen & TIMESTAMPS) != 0:
                write_i64_le(times, base_time + time_delta)
            if (chosen & KEYS) != 0:
                keys.add(data, fields.key, fields.key_size, source)
            if (chosen & VALUES) != 0:
                values.add(data, fields.value, fields.value_size, source)
            if (chosen & HEADERS) != 0:
                if fields.header_count > 0:
                    self._add_headers(data, fields.headers, fields.header_count, behind)
                write_i32_le(self._header_ends, i32(self.header_keys.count))

    def _add_headers(self, data: bytes, position: i64, count: i64, end: i64) -> None:
        """Add headers whose lengths were checked."""
        source: i64 = self._source
        while count > 0:
            count -= 1
            size, position = read_varint(data, position, end)
            self._add_header_key(data, position, size)
            position += size
            size, position = read_varint(data, position, end)
            self.header_values.add(data, position, size, source)
            if size > 0:
                position += size

    def _add_header_key(self, data: bytes, start: i64, size: i64) -> None:
        """Add the key of a header, with what is not UTF-8 replaced, as record objects have it."""
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
        """Return where the headers of each row end, behind a 0: Arrow's offsets of a list."""
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


def _read_record(data: bytes, position: i64, batch_end: i64, fields: _Fields) -> i64:
    """Read the places of a record's fields; return the position behind the record."""
    size, position = _read_size(data, position, batch_end)
    if size < RECORD_BYTES_MIN - 1 or size > batch_end - position:
        raise MalformedData(f"a record of {size} bytes, {batch_end - position} are left")
    end: i64 = position + size
    # The first byte are attributes, of which none is in use.
    word: i64 = i64(read_i32_le(data, position)) >> 8
    if (word & 0x80) == 0:
        low: i64 = word & 0x7F
        fields.timestamp_delta = (low >> 1) ^ -(low & 1)
        position += 2
    elif (word & 0x8000) == 0:
        low = (word & 0x7F) | ((word & 0x7F00) >> 1)
        fields.timestamp_delta = (low >> 1) ^ -(low & 1)
        position += 3
    else:
        fields.timestamp_delta, position = read_varlong(data, position + 1, end)
    fields.offset_delta, position = _read_size(data, position, end)
    if position < end and data[position] == NULL_SIZE_BYTE:
        fields.key_size = -1
        position += 1
    else:
        size, position = _read_size(data, position, end)
        if size > end - position:
            raise MalformedData(f"a key of {size} bytes, {end - position} are left")
        fields.key = position
        fields.key_size = size
        if size > 0:
            position += size
    size, position = _read_size(data, position, end)
    if size > end - position:
        raise MalformedData(f"a value of {size} bytes, {end - position} are left")
    fields.value = position
    fields.value_size = size
    if size > 0:
        position += size
    fields.header_count = 0
    if position == end - 1 and data[position] == 0:
        return end
    count, position = read_varint(data, position, end)
    if count < 0 or count > (end - position) // HEADER_BYTES_MIN:
        raise MalformedData(f"{count} headers in {end - position} bytes")
    fields.header_count = count
    fields.headers = position
    position = _skip_headers(data, position, end, count)
    if position != end:
        raise MalformedData(f"{end - position} bytes after its last field")
    return end


def _skip_headers(data: bytes, position: i64, end: i64, count: i64) -> i64:
    while count > 0:
        count -= 1
        size, position = read_varint(data, position, end)
        if size < 0:
            raise MalformedData("a header without a key")
        if size > end - position:
            raise MalformedData(f"a header key of {size} bytes, {end - position} are left")
        size, position = read_varint(data, position + size, end)
        if size > 0:
            if size > end - position:
                raise MalformedData(f"a header value of {size} bytes, {end - position} are left")
            position += size
    return position


def _read_size(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read a signed varint, most likely of one byte or two."""
    if position < end - 1:
        word: i64 = i64(read_i16_le(data, position))
        if (word & 0x80) == 0:
            low: i64 = word & 0x7F
            return (low >> 1) ^ -(low & 1), position + 1
        if (word & 0x8000) == 0:
            wide: i64 = (word & 0x7F) | ((word & 0x7F00) >> 1)
            return (wide >> 1) ^ -(wide & 1), position + 2
    return read_varint(data, position, end)
