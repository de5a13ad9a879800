"""Opened bodies: a batch whose records are released one place after the other.

A batch that has to make room for others leaves an outline: where its pieces of some kilobytes
lie, and their checksums, taken while the CRC of the whole batch held.  By it a record is read again
without the rest of its batch.

A released record keeps its time, key, value and headers byte by byte, and gets one header more:
`x-sched-due`, its due time in milliseconds since 1970.

An instance of a recurring record has its due time as its timestamp, and not the headers by which it
recurs; its id is in `x-sched-instance-of`.  A consumer may send an instance to the topic again:
that must neither define another recurrence nor replace this one.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.base.schedule_headers import (
    RECURRENCE_NAMES,
    SCHEDULE_DUE,
    SCHEDULE_ID,
    SCHEDULE_INSTANCE_OF,
)
from tarry.records.batch import CODEC_MASK, HEADER_SIZE, BatchHeader, checked_header
from tarry.records.builder import BatchBuilder, write_bytes
from tarry.records.rebuild import RebuiltBatch
from tarry.records.walk import RecordFields, read_places
from tarry.schedule.pending import Body
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import MalformedData
from tarry.wire.varint import read_varint, write_varint

DUE: Final = SCHEDULE_DUE.encode()
INSTANCE_OF: Final = SCHEDULE_INSTANCE_OF.encode()

_ID: Final = SCHEDULE_ID.encode()
# Headers that an instance does not take over.  A record that was an instance itself has the first
# two.
_LEFT_OUT: Final = [DUE, INSTANCE_OF, *[name.encode() for name in RECURRENCE_NAMES]]

# Distance between two marks of a batch, in records.
_MARK_RECORDS: Final = 16
# Records of a piece of an outline, at most, and bytes that it has on average, at most; a piece has
# one record at least.
_PIECE_RECORDS_MAX: Final = 64
_PIECE_BYTES: Final = 8 * 1024
# Records of a batch that is outlined, at most: all of them are walked over.
_OUTLINED_RECORDS_MAX: Final = 20_000


def opened_batch(header: BatchHeader, content: bytes) -> bytes:
    """Return a batch with uncompressed `content` in place of its own: identity and records stay."""
    rebuilt = RebuiltBatch(header)
    rebuilt.attributes &= ~CODEC_MASK
    rebuilt.record_count = header.record_count
    rebuilt.content = content
    return rebuilt.encode()


def batch_with(data: bytes, bodies: list[Body]) -> bytes:
    """Return an uncompressed batch with only the records of `bodies`, which are in its order.

    The offsets of all other records become gaps, as after compaction.  Raises `CorruptData` if the
    batch is damaged.
    """
    header = checked_header(data, 0)
    rebuilt = RebuiltBatch(header)
    kept: list[bytes] = []
    fields = RecordFields()
    position: i64 = HEADER_SIZE
    index: i64 = 0
    try:
        for body in bodies:
            while index < body.place:
                position = read_places(data, position, len(data), fields)
                index += 1
            begin = position
            while index < body.place + body.record_count:
                position = read_places(data, position, len(data), fields)
                index += 1
            kept.append(data[begin:position])
            rebuilt.record_count += body.record_count
    except (MalformedData, ValueError) as error:
        raise CorruptData(f"the batch at offset {header.base_offset}: {error}") from None
    rebuilt.content = b"".join(kept)
    return rebuilt.encode()


class BodyOutline:
    """Outline of a body: the positions of its pieces within the batch, the end of the last one, and
    a checksum for each.

    `piece_records` is the number of records of each piece but the last, `file_position` the place
    of the batch in its segment.
    """

    def __init__(
        self,
        header: BatchHeader,
        piece_records: i64,
        file_position: i64,
        positions: list[i64],
        checksums: list[int],
    ) -> None:
        self.file_position: i64 = file_position
        self._header = header
        self._piece_records: i64 = piece_records
        self._positions = positions
        self._checksums = checksums

    @property
    def piece_count(self) -> int:
        """Number of pieces."""
        return len(self._checksums)

    def range_of(self, first: i64, count: i64) -> tuple[i64, i64]:
        """Return where the pieces with these records begin and end in the batch; (0, 0) if it has
        no such records."""
        last: i64 = (first + count - 1) // self._piece_records
        if count <= 0 or last >= len(self._checksums):
            return 0, 0
        return self._positions[first // self._piece_records], self._positions[last + 1]

    def opened(self, data: bytes, first: i64) -> OpenedBody | None:
        """Return the pieces in `data`, of which the first has the record `first`; None if they are
        not those of this batch."""
        piece: i64 = first // self._piece_records
        start: i64 = self._positions[piece]
        position: i64 = 0
        index = piece
        while position < len(data):
            end: i64 = self._positions[index + 1] - start
            if end > len(data) or crc32c(data[position:end]) != self._checksums[index]:
                return None
            position = end
            index += 1
        return OpenedBody(data, self._header, piece * self._piece_records, 0, -1)


def open_body(data: bytes, file_position: i64) -> OpenedBody:
    """Open a whole batch; `CorruptData` if it is damaged.

    `file_position` is where it lies in its segment, -1 if that is not known.
    """
    return OpenedBody(data, checked_header(data, 0), 0, HEADER_SIZE, file_position)


class OpenedBody:
    """Body of several places, or a piece of it: `data` has its records from number `first` on, and
    `position` is where they begin."""

    def __init__(
        self, data: bytes, header: BatchHeader, first: i64, position: i64, file_position: i64
    ) -> None:
        self._data = data
        self._header = header
        self._first: i64 = first
        self._file_position: i64 = file_position
        # Marks: the position of each sixteenth record, as far as the batch was read.  Places are
        # read in the order of their due times, and a search begins at the nearest mark.
        self._marks: list[i64] = [position]

    @property
    def size(self) -> int:
        """Size of the batch in bytes."""
        return len(self._data)

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return int(self._header.base_offset)

    def outline(self) -> BodyOutline | None:
        """Return the outline of a whole batch; None if it has too many records, or its place in the
        file is not known."""
        record_count: i64 = self._header.record_count
        if self._file_position < 0 or record_count > _OUTLINED_RECORDS_MAX:
            return None
        piece_records: i64 = _PIECE_RECORDS_MAX
        while piece_records > 1 and piece_records * len(self._data) > record_count * _PIECE_BYTES:
            piece_records //= 2
        positions: list[i64] = [HEADER_SIZE]
        checksums: list[int] = []
        position: i64 = HEADER_SIZE
        index: i64 = 0
        fields = RecordFields()
        try:
            while index < record_count:
                position = read_places(self._data, position, len(self._data), fields)
                index += 1
                if index % piece_records == 0 or index == record_count:
                    start: i64 = positions[len(positions) - 1]
                    checksums.append(crc32c(self._data[start:position]))
                    positions.append(position)
        except (MalformedData, ValueError):
            return None
        return BodyOutline(self._header, piece_records, self._file_position, positions, checksums)

    def batch_of(self, first: int, count: int, due_ms: int | None, codec: int, level: int) -> bytes:
        """Return the batch of the `count` records from `first` on.

        Without a due time the records stay as they were sent.
        """
        return self._batch_of(first, count, due_ms, codec, level, False)

    def instance_of(self, index: int, due_ms: int, codec: int, level: int) -> bytes:
        """Return the batch of a recurring record's instance that is due at `due_ms`."""
        return self._batch_of(index, 1, due_ms, codec, level, True)

    def _batch_of(
        self, first: int, count: int, due_ms: int | None, codec: int, level: int, is_instance: bool
    ) -> bytes:
        if first + count > self._header.record_count:
            raise CorruptData(f"{self._header.record_count} records, {first + count} were noted")
        due = b"" if due_ms is None else _header(DUE, b"%d" % due_ms)
        builder = BatchBuilder()
        fields = RecordFields()
        try:
            marks = self._marks
            mark = min((first - self._first) // _MARK_RECORDS, len(marks) - 1)
            index = self._first + mark * _MARK_RECORDS
            position = marks[mark]
            while index < first + count:
                position = read_places(self._data, position, len(self._data), fields)
                if index >= first and is_instance:
                    assert due_ms is not None
                    self._add_instance(builder, fields, position, due_ms)
                elif index >= first:
                    self._add(builder, fields, position, due)
                index += 1
                if index == self._first + len(marks) * _MARK_RECORDS:
                    marks.append(position)
        except (MalformedData, ValueError) as error:
            raise CorruptData(f"the batch at offset {self.base_offset}: {error}") from None
        return builder.build(max(codec, 0), level=level if codec > 0 else None)

    def _add(self, builder: BatchBuilder, fields: RecordFields, end: i64, due: bytes) -> None:
        data = self._data
        rest = BytesWriter()
        write_bytes(rest, _field(data, fields.key, fields.key_size))
        write_bytes(rest, _field(data, fields.value, fields.value_size))
        write_varint(rest, max(fields.header_count, 0) + (1 if due else 0))
        if fields.header_count > 0:
            rest.write(data[fields.headers : end])
        rest.write(due)
        body = rest.getvalue()
        timestamp = self._header.base_timestamp + fields.timestamp_delta
        builder.begin_record(timestamp, len(body)).write(body)

    def _add_instance(
        self, builder: BatchBuilder, fields: RecordFields, end: i64, due_ms: int
    ) -> None:
        data = self._data
        headers: list[bytes] = []
        position: i64 = fields.headers
        while fields.header_count > 0 and position < end:
            start = position
            size, position = read_varint(data, position, end)
            name = data[position : position + size]
            size, position = read_varint(data, position + size, end)
            value_start = position
            position += max(size, 0)
            if name == _ID:
                headers.append(_header(INSTANCE_OF, data[value_start:position]))
            elif name not in _LEFT_OUT:
                headers.append(data[start:position])
        headers.append(_header(DUE, b"%d" % due_ms))
        rest = BytesWriter()
        write_bytes(rest, _field(data, fields.key, fields.key_size))
        write_bytes(rest, _field(data, fields.value, fields.value_size))
        write_varint(rest, len(headers))
        for header in headers:
            rest.write(header)
        body = rest.getvalue()
        builder.begin_record(due_ms, len(body)).write(body)


def _field(data: bytes, position: i64, size: i64) -> bytes | None:
    return None if size < 0 else data[position : position + size]


def _header(name: bytes, value: bytes) -> bytes:
    writer = BytesWriter()
    write_bytes(writer, name)
    write_bytes(writer, value)
    return writer.getvalue()
