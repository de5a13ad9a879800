"""Records as readers see them, and the search for one by its time.

A batch may come from any broker, so gaps between offset deltas (from compaction) are accepted.
Every flaw is `CorruptData`.  Nothing is allocated for a count before it was compared with the bytes
that are there, and content is decompressed to at most `size_max` bytes.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    BatchHeader,
)
from tarry.records.open_batch import OpenBatch
from tarry.records.walk import RECORD_BYTES_MIN, RecordCursor, RecordFields
from tarry.wire.compression import decompress
from tarry.wire.reader import MalformedData
from tarry.wire.varint import read_varint


# No field can refer to a record, so the garbage collector need not track it.
@mypyc_attr(acyclic=True)
class Record:
    """Record of a batch; `headers` keep their order and may repeat a key.  `topic` and `partition`
    say where it was read; they are "" and -1 outside of a consumer.

    A record has copies of its own bytes, and keeps no other fetched bytes alive.
    """

    __slots__ = (
        "_headers",
        "_packed",
        "key",
        "offset",
        "partition",
        "timestamp",
        "topic",
        "value",
    )

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None,
        packed: bytes | None = None,
        *,
        topic: str = "",
        partition: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        # Headers of a record that was read stay encoded in `_packed` until the first access.
        self._headers = headers
        self._packed = packed

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """List of keys and values in their order; it belongs to this record alone."""
        headers = self._headers
        if headers is None:
            # Keep the decoded list, since the record's owner may change it.
            headers = [] if self._packed is None else _unpack_headers(self._packed)
            self._headers = headers
            self._packed = None
        return headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Record)
            and self.offset == other.offset
            and self.partition == other.partition
            and self.topic == other.topic
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return self.offset

    def __reduce__(self) -> tuple[object, ...]:
        # The compiled and the interpreted form write the same pickle: each reads the other's.
        fields = (self.offset, self.timestamp, self.key, self.value, self.headers)
        return _placed, (self.topic, self.partition, fields)

    def __repr__(self) -> str:
        place = f"{self.topic} [{self.partition}] at " if self.topic else ""
        return f"Record({place}{self.offset}, {self.timestamp}, {self.key!r}, {self.value!r})"


def _placed(
    topic: str,
    partition: int,
    fields: tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None],
) -> Record:
    """Make a record from the parts that `__reduce__` returned."""
    offset, timestamp, key, value, headers = fields
    return Record(offset, timestamp, key, value, headers, topic=topic, partition=partition)


def open_records(data: bytes, position: i64, header: BatchHeader, size_max: i64) -> RecordCursor:
    """Return a cursor over the records of the batch at `position`, decompressed if needed."""
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
    batch = OpenBatch(data, position)
    batch.unfold(size_max)
    return take_records(batch, batch.base_offset)


def take_records(
    batch: OpenBatch, offset_min: i64, topic: str = "", partition: int = -1
) -> list[Record]:
    """Take the remaining records of a partition's batch, from `offset_min` on; raise if one has a
    flaw."""
    records: list[Record] = []
    data = batch.data
    fields = RecordFields()
    time: i64 = batch.timestamp
    try:
        while batch.records_left > 0:
            offset: i64 = batch.read_next(fields)
            if offset < offset_min:
                continue
            key: bytes | None = None
            if fields.key_size >= 0:
                key = data[fields.key : fields.key + fields.key_size]
            value: bytes | None = None
            if fields.value_size >= 0:
                value = data[fields.value : fields.value + fields.value_size]
            packed: bytes | None = None
            if fields.header_count > 0:
                packed = data[fields.headers : batch.position]
            if not batch.has_append_time:
                time = batch.timestamp + fields.timestamp_delta
            records.append(
                Record(offset, time, key, value, None, packed, topic=topic, partition=partition)
            )
    except MalformedData as error:
        raise CorruptData(f"offset {batch.next_offset} or behind it: {error}") from None
    return records


def _unpack_headers(packed: bytes) -> list[tuple[str, bytes | None]]:
    """Unpack headers whose lengths were checked."""
    headers: list[tuple[str, bytes | None]] = []
    position: i64 = 0
    end: i64 = len(packed)
    while position < end:
        size, position = read_varint(packed, position, end)
        # Brokers do not check the keys of headers: an invalid one must not make the rest of the
        # partition unreadable.  Java replaces invalid UTF-8 as well.
        name = packed[position : position + size].decode("utf-8", "replace")
        size, position = read_varint(packed, position + size, end)
        value: bytes | None = None
        if size >= 0:
            value = packed[position : position + size]
            position += size
        headers.append((name, value))
    return headers


class RecordTime:
    """Time and offset of a record: the answer of a search by time."""

    def __init__(self, timestamp: int, offset: int) -> None:
        self.timestamp = timestamp
        self.offset = offset


class RecordTimes:
    """Times and offsets of a batch's records, read one record after the other."""

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
        # Compressed content may have been produced without a check of its records.
        if not self.base_offset <= self.offset <= self.last_offset:
            raise CorruptData(f"a record of offset {self.offset} in the batch {self.base_offset}")
        if not TIMESTAMP_MIN <= self.timestamp <= TIMESTAMP_MAX:
            raise CorruptData(f"a timestamp in the batch {self.base_offset} does not fit 64 bits")
        cursor.position = record_end
        return True
