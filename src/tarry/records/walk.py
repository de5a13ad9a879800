"""The walk over a batch's records: their structure, without building one of them.

A record is a length, attributes, timestamp delta, offset delta, key, value and headers; all
numbers but the attributes are zigzag varints.  The walk proves that all of it lies inside the
batch, that the offset deltas are 0, 1, 2 … and that nothing is left over, and it notes what
indexes and settings ask for.

Hot: each uncompressed batch is walked when it is produced.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.wire.reader import MalformedData, Reader

# Length, attributes, timestamp delta, offset delta, key length, value length, header count.
RECORD_BYTES_MIN: Final = 7
# Key length, value length.
HEADER_BYTES_MIN: Final = 2


class RecordCursor(Reader):
    """Reads the fields of records; all flaws are `MalformedData`."""

    def size_of(self, what: str) -> i64:
        """A length whose bytes must lie before the end; -1 for null."""
        size = self.varint()
        if size < 0:
            return -1
        if size > self.end - self.position:
            raise MalformedData(f"a {what} of {size} bytes, {self.end - self.position} are left")
        return size

    def skip(self, what: str) -> bool:
        """Step over a length and its bytes; False for null."""
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

    def skip_headers(self) -> None:
        count = self.header_count()
        while count > 0:
            if not self.skip("header key"):
                raise MalformedData("a header without a key")
            self.skip("header value")
            count -= 1

    def enter_record(self, batch_end: i64) -> i64:
        """Read the record's length and step over its attributes; return where it ends.

        Until it has ended, nothing is read past that end.
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
    """What a walk found.  `flaw` says what is wrong with the record `flaw_index`."""

    def __init__(self) -> None:
        self.flaw: str | None = None
        self.flaw_index: i64 = -1
        # Deltas to the batch's base timestamp; indexes are counted from 0.
        self.timestamp_delta_min: i64 = 0
        self.timestamp_delta_max: i64 = 0
        self.null_keys: i64 = 0


def walk_records(data: bytes, position: i64, end: i64, count: i64) -> RecordWalk:
    """Walk over `count` records that must fill the bytes from `position` to `end`."""
    walk = RecordWalk()
    if count > (end - position) // RECORD_BYTES_MIN:
        walk.flaw = f"{count} records in {end - position} bytes"
        walk.flaw_index = 0
        return walk
    cursor = RecordCursor(data, position, end)
    index: i64 = 0
    try:
        while index < count:
            _walk_record(cursor, walk, index, end)
            index += 1
    except MalformedData as error:
        walk.flaw = f"record {index}: {error}"
        walk.flaw_index = index
        return walk
    if cursor.position != end:
        walk.flaw = f"{end - cursor.position} bytes after the last record"
        walk.flaw_index = count - 1
    return walk


def _walk_record(cursor: RecordCursor, walk: RecordWalk, index: i64, batch_end: i64) -> None:
    record_end = cursor.enter_record(batch_end)
    timestamp_delta = cursor.varlong()
    offset_delta = cursor.varint()
    if offset_delta != index:
        raise MalformedData(f"the offset delta is {offset_delta}")
    if index == 0:
        walk.timestamp_delta_min = timestamp_delta
        walk.timestamp_delta_max = timestamp_delta
    elif timestamp_delta > walk.timestamp_delta_max:
        walk.timestamp_delta_max = timestamp_delta
    elif timestamp_delta < walk.timestamp_delta_min:
        walk.timestamp_delta_min = timestamp_delta
    if not cursor.skip("key"):
        walk.null_keys += 1
    cursor.skip("value")
    cursor.skip_headers()
    if cursor.position != record_end:
        raise MalformedData(f"{record_end - cursor.position} bytes after its last field")
