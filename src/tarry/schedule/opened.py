"""Opened bodies: a batch whose records are released one place after the other.

What is released keeps the records' times, keys, values and headers byte by byte, and has one header
more: `x-sched-due`, when it was due in milliseconds since 1970.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.records.batch import CODEC_MASK, HEADER_SIZE, BatchHeader, checked_header
from tarry.records.builder import BatchBuilder, write_bytes
from tarry.records.rebuild import RebuiltBatch
from tarry.records.walk import RecordFields, read_record
from tarry.wire.reader import MalformedData
from tarry.wire.varint import write_varint

DUE: Final = b"x-sched-due"

# Records between two places of a batch that are known.
_MARK_RECORDS: Final = 16


def opened_batch(header: BatchHeader, content: bytes) -> bytes:
    """Return a batch with its content uncompressed: identity and records stay."""
    rebuilt = RebuiltBatch(header)
    rebuilt.attributes &= ~CODEC_MASK
    rebuilt.record_count = header.record_count
    rebuilt.content = content
    return rebuilt.encode()


class OpenedBody:
    """Body of several places, whole and undamaged in `data`; `CorruptData` if it is not."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._header = checked_header(data, 0)
        # Where each sixteenth record begins, as far as they were gone through: places are asked for
        # in the order of their due times.
        self._marks: list[i64] = [HEADER_SIZE]

    @property
    def size(self) -> int:
        """Bytes of the batch."""
        return len(self._data)

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return int(self._header.base_offset)

    def batch_of(self, first: int, count: int, due_ms: int | None, codec: int, level: int) -> bytes:
        """Return the batch of the `count` records from `first` on.

        Without a due time they stay as they were sent.
        """
        if first + count > self._header.record_count:
            raise CorruptData(f"{self._header.record_count} records, {first + count} were noted")
        due = b"" if due_ms is None else _due_header(due_ms)
        builder = BatchBuilder()
        fields = RecordFields()
        try:
            marks = self._marks
            mark = min(first // _MARK_RECORDS, len(marks) - 1)
            index = mark * _MARK_RECORDS
            position = marks[mark]
            while index < first + count:
                position = read_record(self._data, position, len(self._data), fields)
                if index >= first:
                    self._add(builder, fields, position, due)
                index += 1
                if index == len(marks) * _MARK_RECORDS:
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


def _field(data: bytes, position: i64, size: i64) -> bytes | None:
    return None if size < 0 else data[position : position + size]


def _due_header(due_ms: int) -> bytes:
    writer = BytesWriter()
    write_bytes(writer, DUE)
    write_bytes(writer, b"%d" % due_ms)
    return writer.getvalue()
