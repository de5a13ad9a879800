"""Scan of one opened batch's records for compaction.

It has two purposes: to map every key to its offset, and to find the records that stay.  Those are
never decoded.  Their bytes are copied in runs, since offsets and times are relative to the batch,
whose base does not change.  A scan can stop after any record and continue later.  Hot: every record
of a compacted log passes here twice.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from tarry.log.compaction.effort import RECORD_UNITS, Effort
from tarry.log.compaction.key_map import KeyMap
from tarry.log.config import INT64_MAX
from tarry.records.batch import NO_TIMESTAMP, BatchHeader
from tarry.records.walk import RECORD_BYTES_MIN
from tarry.wire.reader import MalformedData
from tarry.wire.varint import (
    read_varint,
    read_varlong,
    varint_size,
    write_varint,
    write_varlong,
)

_NO_RUN: Final = -1
# Largest difference of timestamps: far from overflowing, and far beyond any real one.
_DELTA_MAX: Final = 1 << 61


class RecordScan:
    """Scan over the records of `data` from `position` to `end`, one record at a time."""

    def __init__(self, data: bytes, position: i64, end: i64, header: BatchHeader) -> None:
        self.data = data
        self.position: i64 = position
        self.end: i64 = end
        self.base_offset: i64 = header.base_offset
        self.last_offset_delta: i64 = header.last_offset_delta
        self.records_left: i64 = header.record_count
        # Start, offset, time, key and kind of the last record that was passed.
        self.record_start: i64 = position
        self.offset: i64 = -1
        self.timestamp_delta: i64 = 0
        self.key: bytes | None = None
        self.is_tombstone = False
        # Records that stay, as pieces of `data`; `_run_start` begins the piece that is still open.
        self.kept: list[bytes] = []
        self.kept_count: i64 = 0
        self.dropped_count: i64 = 0
        self.keyless_count: i64 = 0
        self.timestamp_delta_min: i64 = 0
        self.timestamp_delta_max: i64 = 0
        self.has_tombstone = False
        self._run_start: i64 = _NO_RUN
        if self.records_left < 0 or self.records_left > (end - position) // RECORD_BYTES_MIN:
            raise MalformedData(f"{self.records_left} records in {end - position} bytes")

    def try_map(self, keys: KeyMap, effort: Effort) -> bool:
        """Map keys while effort is left; return True after the last record."""
        while self.records_left > 0:
            if effort.units <= 0:
                return False
            self._next()
            effort.spend(RECORD_UNITS)
            key = self.key
            if key is not None:
                keys.put(key, self.offset)
        self._check_end()
        return True

    def try_keep(self, keys: KeyMap, drops_tombstones: bool, effort: Effort) -> bool:
        """Find the records that stay while effort is left; return True after the last record.

        A record stays if its key has no later one; a tombstone also goes if `drops_tombstones`.
        """
        while self.records_left > 0:
            if effort.units <= 0:
                return False
            self._next()
            effort.spend(RECORD_UNITS)
            key = self.key
            if key is None:
                self.keyless_count += 1
                self._drop()
                continue
            last_offset = keys.last_offset(key)
            # ABSENT is less than any offset.
            if last_offset > self.offset or (self.is_tombstone and drops_tombstones):
                self._drop()
            else:
                self._keep()
        self._check_end()
        self._end_run(self.position)
        return True

    def _keep(self) -> None:
        if self._run_start == _NO_RUN:
            self._run_start = self.record_start
        if self.kept_count == 0 or self.timestamp_delta > self.timestamp_delta_max:
            self.timestamp_delta_max = self.timestamp_delta
        if self.kept_count == 0 or self.timestamp_delta < self.timestamp_delta_min:
            self.timestamp_delta_min = self.timestamp_delta
        self.kept_count += 1
        if self.is_tombstone:
            self.has_tombstone = True

    def _drop(self) -> None:
        self.dropped_count += 1
        self._end_run(self.record_start)

    def _end_run(self, end: i64) -> None:
        if self._run_start != _NO_RUN:
            self.kept.append(self.data[self._run_start : end])
            self._run_start = _NO_RUN

    def _check_end(self) -> None:
        if self.position != self.end:
            raise MalformedData(f"{self.end - self.position} bytes follow the last record")

    def _next(self) -> None:
        """Pass a record, and read the fields that decide about it."""
        data = self.data
        position: i64 = self.position
        end: i64 = self.end
        self.record_start = position
        size, position = read_varint(data, position, end)
        if size < RECORD_BYTES_MIN - 1 or size > end - position:
            raise MalformedData(f"a record of {size} bytes, {end - position} are left")
        record_end = position + size
        # Skip the attributes, which are not in use.
        self.timestamp_delta, position = read_varlong(data, position + 1, record_end)
        offset_delta, position = read_varint(data, position, record_end)
        if offset_delta < 0 or offset_delta > self.last_offset_delta:
            raise MalformedData(f"the offset delta {offset_delta} is outside the batch")
        offset = self.base_offset + offset_delta
        if offset <= self.offset:
            raise MalformedData(f"the offset {offset} follows {self.offset}")
        self.offset = offset
        size, position = read_varint(data, position, record_end)
        if size < 0:
            self.key = None
        elif size > record_end - position:
            raise MalformedData(f"a key of {size} bytes, {record_end - position} are left")
        else:
            self.key = data[position : position + size]
            position += size
        size, position = read_varint(data, position, record_end)
        self.is_tombstone = size < 0
        self.position = record_end
        self.records_left -= 1


def can_retime(header: BatchHeader, scan: RecordScan, new_base_timestamp: i64) -> bool:
    """Return True if the times of the records that stay fit another base time."""
    shift = int(header.base_timestamp) - int(new_base_timestamp)
    return (
        int(scan.timestamp_delta_min) + shift >= -_DELTA_MAX
        and int(scan.timestamp_delta_max) + shift <= _DELTA_MAX
    )


class Retiming:
    """Records whose times become relative to another base time; all other bytes stay.

    Only for records for which `can_retime` is true.
    """

    def __init__(self, data: bytes, base_timestamp: i64, new_base_timestamp: i64) -> None:
        self.data = data
        self.position: i64 = 0
        self.shift: i64 = base_timestamp - new_base_timestamp
        self._records = BytesWriter()

    def step(self, effort: Effort) -> bool:
        """Rewrite records while effort is left; return True after the last one."""
        data = self.data
        end: i64 = len(data)
        records = self._records
        while self.position < end:
            if effort.units <= 0:
                return False
            effort.spend(RECORD_UNITS)
            size, position = read_varint(data, self.position, end)
            record_end = position + size
            attributes = data[position : position + 1]
            delta, position = read_varlong(data, position + 1, record_end)
            delta += self.shift
            write_varint(records, 1 + varint_size(delta) + record_end - position)
            records.write(attributes)
            write_varlong(records, delta)
            records.write(data[position:record_end])
            self.position = record_end
        return True

    def content(self) -> bytes:
        return self._records.getvalue()


def latest_timestamp(header: BatchHeader, scan: RecordScan) -> i64:
    """Return the largest timestamp of the records that stay."""
    if header.is_log_append_time:
        return header.max_timestamp
    # Times of a batch that was never opened may not fit 64 bits.
    latest = int(header.base_timestamp) + int(scan.timestamp_delta_max)
    return min(max(latest, NO_TIMESTAMP), INT64_MAX)
