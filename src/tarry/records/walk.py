"""Walk over a batch's records: their structure, without building a record.

A record is a length, attributes, timestamp delta, offset delta, key, value and headers; all
numbers except the attributes are zigzag varints.  `read_record` finds the places of one record's
fields and proves that all of it lies inside the batch; readers of records and of columns use it.
The walk also proves that the offset deltas are 0, 1, 2 … and that no bytes follow, and it notes the
values that indexes and settings need.  Code that reads records already walked over needs the places
only (`read_places`): a record may have millions of headers.

Hot: each uncompressed batch is walked when it is produced, and each record when it is read.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le, read_i32_le
from mypy_extensions import i64

from tarry.wire.reader import MalformedData, Reader
from tarry.wire.varint import read_varint, read_varlong

# Smallest record: length, attributes, timestamp delta, offset delta, key and value length, header
# count.
RECORD_BYTES_MIN: Final = 7
# Smallest header: key length and value length.
HEADER_BYTES_MIN: Final = 2
# Encoded length of a null key: the zigzag form of -1.
NULL_SIZE_BYTE: Final = 0x01
# Headers that a stepwise walk counts as one record.
HEADERS_PER_STEP: Final = 4


class RecordCursor(Reader):
    """Cursor that reads the fields of records; every flaw raises `MalformedData`."""

    def size_of(self, what: str) -> i64:
        """Read a length, and check that its bytes lie before the end; -1 for null."""
        size = self.varint()
        if size < 0:
            return -1
        if size > self.end - self.position:
            raise MalformedData(f"a {what} of {size} bytes, {self.end - self.position} are left")
        return size

    def skip(self, what: str) -> bool:
        """Skip a length and its bytes; return False for null."""
        size = self.size_of(what)
        if size < 0:
            return False
        self.position += size
        return True

    def header_count(self) -> i64:
        count = self.varint()
        if count < 0 or count > (self.end - self.position) // HEADER_BYTES_MIN:
            raise MalformedData(f"{count} headers in {self.end - self.position} bytes")
        return count

    def enter_record(self, batch_end: i64) -> i64:
        """Read the record's length and skip its attributes; return where the record ends.

        Until then no read passes that end.
        """
        self.end = batch_end
        size = self.size_of("record")
        if size < RECORD_BYTES_MIN - 1:
            raise MalformedData(f"a record of {size} bytes")
        record_end = self.position + size
        self.end = record_end
        self.position += 1
        return record_end


class RecordWalk:
    """Result of a walk.  `flaw` describes the error in the record with the index `flaw_index`."""

    def __init__(self) -> None:
        self.flaw: str | None = None
        self.flaw_index: i64 = -1
        # Differences to the batch's base timestamp.
        self.timestamp_delta_min: i64 = 0
        self.timestamp_delta_max: i64 = 0
        self.null_keys: i64 = 0
        # Size of the largest record, without its own length field.
        self.record_bytes_max: i64 = 0


def walk_records(data: bytes, position: i64, end: i64, count: i64) -> RecordWalk:
    """Walk over `count` records that must fill the bytes from `position` to `end`."""
    assert position >= 0
    assert end <= len(data)
    walk = RecordWalk()
    fields = RecordFields()
    index: i64 = 0
    try:
        while index < count:
            # As in `read_record`: two calls less a record save a tenth of a produce of 100.
            record_end: i64 = read_places(data, position, end, fields)
            if fields.header_count > 0:
                _expect_end(
                    _skip_headers(data, fields.headers, record_end, fields.header_count),
                    record_end,
                )
            _note_record(index, walk, fields)
            position = record_end
            index += 1
        if position != end:
            raise MalformedData(f"{end - position} bytes follow the last record")
    except MalformedData as error:
        walk.flaw = f"record {index}: {error}"
        walk.flaw_index = index
    return walk


class StepwiseWalk:
    """Walk in steps over all records from `position` of `data` on; `walk` has the result.

    A step may end within a record that has many headers.
    """

    def __init__(self, data: bytes, position: i64, count: i64) -> None:
        self.walk = RecordWalk()
        self._fields = RecordFields()
        self._data = data
        self._count: i64 = count
        self._index: i64 = 0
        self._position: i64 = position
        # For the record under way: its end, and the number of its headers left.
        self._record_end: i64 = -1
        self._headers_left: i64 = 0

    def step(self, count_max: i64) -> bool:
        """Walk over at most `count_max` records; return True when all are done.

        Headers count too: `HEADERS_PER_STEP` of them as one record.
        """
        left = count_max
        try:
            while self._index < self._count:
                if left <= 0:
                    return False
                left -= self._go_on(left)
            end: i64 = len(self._data)
            if self._position != end:
                raise MalformedData(f"{end - self._position} bytes follow the last record")
        except MalformedData as error:
            self.walk.flaw = f"record {self._index}: {error}"
            self.walk.flaw_index = self._index
        return True

    def _go_on(self, left: i64) -> i64:
        """Continue with a record, for at most `left` units; return how many units it took."""
        data = self._data
        fields = self._fields
        if self._record_end < 0:
            self._record_end = read_places(data, self._position, len(data), fields)
            self._position = fields.headers
            self._headers_left = fields.header_count
        count = min(self._headers_left, left * HEADERS_PER_STEP)
        self._position = _skip_headers(data, self._position, self._record_end, count)
        self._headers_left -= count
        if self._headers_left == 0:
            _expect_end(self._position, self._record_end)
            _note_record(self._index, self.walk, fields)
            self._record_end = -1
            self._index += 1
        return 1 + count // HEADERS_PER_STEP


def _note_record(index: i64, walk: RecordWalk, fields: RecordFields) -> None:
    """Note the values of a record that indexes and settings need."""
    timestamp_delta: i64 = fields.timestamp_delta
    if index == 0:
        walk.timestamp_delta_min = timestamp_delta
        walk.timestamp_delta_max = timestamp_delta
    elif timestamp_delta > walk.timestamp_delta_max:
        walk.timestamp_delta_max = timestamp_delta
    elif timestamp_delta < walk.timestamp_delta_min:
        walk.timestamp_delta_min = timestamp_delta
    if fields.offset_delta != index:
        raise MalformedData(f"the offset delta is {fields.offset_delta}")
    if fields.key_size < 0:
        walk.null_keys += 1
    walk.record_bytes_max = max(walk.record_bytes_max, fields.size)


class RecordFields:
    """Places of one record's fields; a size below 0 means null."""

    def __init__(self) -> None:
        self.size: i64 = 0
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key: i64 = 0
        self.key_size: i64 = -1
        self.value: i64 = 0
        self.value_size: i64 = -1
        # Begin of the headers, which end with the record.
        self.headers: i64 = 0
        self.header_count: i64 = 0


def read_record(data: bytes, position: i64, batch_end: i64, fields: RecordFields) -> i64:
    """Find the places of a record's fields and walk its headers; return the position behind it."""
    end: i64 = read_places(data, position, batch_end, fields)
    if fields.header_count > 0:
        _expect_end(_skip_headers(data, fields.headers, end, fields.header_count), end)
    return end


def read_places(data: bytes, position: i64, batch_end: i64, fields: RecordFields) -> i64:
    """Find the places of a record's fields without reading its headers; return the position behind
    the record.

    Positions are locals, and the most frequent bytes are decoded in place.
    """
    if batch_end - position < RECORD_BYTES_MIN:
        raise MalformedData(f"{batch_end - position} bytes are too few for a record")
    size, position = _read_size(data, position, batch_end)
    if size < RECORD_BYTES_MIN - 1 or size > batch_end - position:
        raise MalformedData(f"a record of {size} bytes, {batch_end - position} are left")
    fields.size = size
    end: i64 = position + size
    # The first byte is the attributes, none of which is in use.
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
        fields.headers = end
        return end
    count, position = read_varint(data, position, end)
    if count < 0 or count > (end - position) // HEADER_BYTES_MIN:
        raise MalformedData(f"{count} headers in {end - position} bytes")
    fields.header_count = count
    fields.headers = position
    if count == 0:
        _expect_end(position, end)
    return end


def _expect_end(position: i64, end: i64) -> None:
    if position != end:
        raise MalformedData(f"{end - position} bytes follow its last field")


def _skip_headers(data: bytes, position: i64, end: i64, count: i64) -> i64:
    while count > 0:
        count -= 1
        size, position = read_varint(data, position, end)
        if size < 0 or size > end - position:
            raise MalformedData(f"a header key of {size} bytes, {end - position} are left")
        size, position = read_varint(data, position + size, end)
        if size > 0:
            if size > end - position:
                raise MalformedData(f"a header value of {size} bytes, {end - position} are left")
            position += size
    return position


def _read_size(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read a signed varint, which most often has one or two bytes."""
    if position < end - 1:
        word: i64 = i64(read_i16_le(data, position))
        if (word & 0x80) == 0:
            low: i64 = word & 0x7F
            return (low >> 1) ^ -(low & 1), position + 1
        if (word & 0x8000) == 0:
            wide: i64 = (word & 0x7F) | ((word & 0x7F00) >> 1)
            return (wide >> 1) ^ -(wide & 1), position + 2
    return read_varint(data, position, end)
