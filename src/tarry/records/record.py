"""Records as readers see them, and the search for one by its time.

A batch may come from any broker: offset deltas with gaps (compaction) are read as they stand.
Every flaw is `CorruptData`; nothing is allocated for a count before it was compared with the bytes
that are there, and content unfolds to `size_max` bytes at most.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC_V2,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    BatchHeader,
    decode_batch_header,
    has_valid_crc,
)
from tarry.records.walk import RECORD_BYTES_MIN, RecordCursor
from tarry.wire.compression import decompress
from tarry.wire.reader import MalformedData


class Record:
    """Record of a batch; `headers` keep their order and may repeat a key."""

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Record)
            and self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return self.offset

    def __reduce__(self) -> tuple[object, ...]:
        # The same in both forms, so that one reads what the other has written.
        return Record, (self.offset, self.timestamp, self.key, self.value, self.headers)

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r})"


def open_records(data: bytes, position: i64, header: BatchHeader, size_max: i64) -> RecordCursor:
    """Open a cursor over the records of the batch at `position`, unfolded if compressed."""
    start: i64 = position + HEADER_SIZE
    end: i64 = position + header.size
    if end > len(data):
        raise CorruptData(f"batch of {header.size} bytes, {len(data) - position} are there")
    codec = header.attributes & CODEC_MASK
    if codec != 0:
        data = decompress(codec, memoryview(data)[start:end], size_max)
        start = 0
        end = len(data)
    if header.record_count < 0 or header.record_count > (end - start) // RECORD_BYTES_MIN:
        raise CorruptData(f"{header.record_count} records in {end - start} bytes")
    return RecordCursor(data, start, end)


def decode_records(data: bytes, *, size_max: i64, position: i64 = 0) -> list[Record]:
    """Decode all records of the batch at `position`, with absolute offsets; its CRC must hold."""
    header = decode_batch_header(data, position)
    if header.magic != MAGIC_V2:
        raise CorruptData(f"record batches have magic 2, this one has {header.magic}")
    if header.size > len(data) - position:
        raise CorruptData(f"batch of {header.size} bytes, {len(data) - position} are there")
    if not has_valid_crc(data, position, header):
        raise CorruptData(f"batch at offset {header.base_offset} does not match its CRC")
    cursor = open_records(data, position, header, size_max)
    batch_end: i64 = cursor.end
    records: list[Record] = []
    try:
        while len(records) < header.record_count:
            records.append(_decode_record(cursor, header, batch_end))
    except MalformedData as error:
        offset = int(header.base_offset) + len(records)
        raise CorruptData(f"offset {offset}: {error}") from None
    if cursor.position != batch_end:
        raise CorruptData(f"{batch_end - cursor.position} bytes after the last record")
    return records


def _decode_record(cursor: RecordCursor, header: BatchHeader, batch_end: i64) -> Record:
    record_end = cursor.enter_record(batch_end)
    timestamp = int(header.base_timestamp) + int(cursor.varlong())
    if header.is_log_append_time:
        timestamp = header.max_timestamp
    offset = int(header.base_offset) + int(cursor.varint())
    key = _bytes_of(cursor, "key")
    value = _bytes_of(cursor, "value")
    headers: list[tuple[str, bytes | None]] = []
    count = cursor.header_count()
    while count > 0:
        name = _bytes_of(cursor, "header key")
        if name is None:
            raise MalformedData("a header without a key")
        # Brokers do not look into the keys of headers: one that is not UTF-8 must not make the
        # rest of the partition unreadable.  Java replaces as well.
        headers.append((name.decode("utf-8", "replace"), _bytes_of(cursor, "header value")))
        count -= 1
    if cursor.position != record_end:
        raise MalformedData(f"{record_end - cursor.position} bytes after its last field")
    return Record(offset, timestamp, key, value, headers)


def _bytes_of(cursor: RecordCursor, what: str) -> bytes | None:
    size = cursor.size_of(what)
    if size < 0:
        return None
    start = cursor.position
    cursor.position = start + size
    return cursor.data[start : start + size]


class RecordTime:
    """Time and offset of a record: the answer of a search by time."""

    def __init__(self, timestamp: int, offset: int) -> None:
        self.timestamp = timestamp
        self.offset = offset


def find_record_from_time(
    data: bytes, position: i64, timestamp: int, offset_min: int, size_max: i64
) -> RecordTime | None:
    """Find the first record of the batch at `timestamp` or later, and at `offset_min` or later."""
    header = decode_batch_header(data, position)
    if header.is_log_append_time:
        last_offset = int(header.base_offset) + int(header.last_offset_delta)
        if header.max_timestamp < timestamp or last_offset < offset_min:
            return None
        return RecordTime(header.max_timestamp, max(int(header.base_offset), offset_min))
    times = RecordTimes(open_records(data, position, header, size_max), header)
    while times.advance():
        if times.timestamp >= timestamp and times.offset >= offset_min:
            return RecordTime(times.timestamp, times.offset)
    return None


def find_latest_record(data: bytes, position: i64, size_max: i64) -> RecordTime | None:
    """Find the record with the batch's largest timestamp, the first of several."""
    header = decode_batch_header(data, position)
    if header.is_log_append_time:
        return RecordTime(header.max_timestamp, header.base_offset)
    times = RecordTimes(open_records(data, position, header, size_max), header)
    latest: RecordTime | None = None
    while times.advance():
        if latest is None or times.timestamp > latest.timestamp:
            latest = RecordTime(times.timestamp, times.offset)
    return latest


class RecordTimes:
    """Steps from record to record and reads only their times and offsets."""

    def __init__(self, cursor: RecordCursor, header: BatchHeader) -> None:
        self.cursor = cursor
        self.batch_end: i64 = cursor.end
        self.records_left: i64 = header.record_count
        self.base_timestamp = int(header.base_timestamp)
        self.base_offset = int(header.base_offset)
        self.last_offset = int(header.last_offset)
        self.timestamp = 0
        self.offset = 0

    def advance(self) -> bool:
        """Go to the next record; False after the last one."""
        if self.records_left == 0:
            return False
        self.records_left -= 1
        cursor = self.cursor
        try:
            record_end = cursor.enter_record(self.batch_end)
            self.timestamp = self.base_timestamp + int(cursor.varlong())
            self.offset = self.base_offset + int(cursor.varint())
        except MalformedData as error:
            raise CorruptData(f"a record from offset {self.base_offset} on: {error}") from None
        # Compressed content was not opened when it was produced: it may say anything.
        if not self.base_offset <= self.offset <= self.last_offset:
            raise CorruptData(f"a record of offset {self.offset} in the batch {self.base_offset}")
        if not TIMESTAMP_MIN <= self.timestamp <= TIMESTAMP_MAX:
            raise CorruptData(f"a timestamp in the batch {self.base_offset} does not fit 64 bits")
        cursor.position = record_end
        return True
