"""Limits of a topic's settings for each record: its time, a key for compaction, its size.

The walk has noted the extremes, so a good batch costs a few comparisons; only if one fails, the
records are read again to name the bad ones.  A compressed batch is opened if a key is required,
times have a lower limit or sizes an upper one.  For the upper limit of times the largest timestamp
in its header is trusted first.  As in Kafka, sizes are limited in compressed batches only.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import INVALID_RECORD, INVALID_TIMESTAMP, CorruptData
from tarry.base.limits import OPENED_BATCH_BYTES_MAX, RECORD_ERRORS_MAX
from tarry.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchCheck, BatchHeader, take_walk
from tarry.records.walk import RecordCursor, RecordWalk, walk_records
from tarry.wire.compression import decompress
from tarry.wire.reader import Window

# Default of max.decompressed.message.bytes, which means no limit.
ANY_SIZE: Final = 2_147_483_639


def check_record_limits(
    check: BatchCheck,
    timestamp_min: int,
    timestamp_max: int,
    is_key_required: bool = False,
    size_max: i64 = OPENED_BATCH_BYTES_MAX,
    record_bytes_max: i64 = ANY_SIZE,
    *,
    latest_setting: str = "message.timestamp.after.max.ms",
) -> None:
    """Set the error of `check` if a record is not allowed in the topic.

    `latest_setting` is what `timestamp_max` follows from: a setting of the topic, or the calendar.

    A lower limit below zero means no limit.  For topics with LogAppendTime the caller passes the
    limits of the type, because the client's times are not kept.
    """
    header = check.header
    assert header is not None
    assert check.error_code == 0
    walk = check.walk
    if walk is None:
        if (
            not is_key_required
            and timestamp_min < 0
            and header.max_timestamp <= timestamp_max
            and record_bytes_max >= ANY_SIZE
        ):
            return
        check.was_opened = True
        try:
            walk = walk_compressed(check.window, header, size_max)
        except CorruptData as error:
            check.refuse(INVALID_RECORD, f"the records cannot be opened: {error}")
            return
        take_walk(check, header, walk)
        if check.error_code != 0:
            return
    base_timestamp = int(header.base_timestamp)
    if (
        base_timestamp + walk.timestamp_delta_min < timestamp_min
        or base_timestamp + walk.timestamp_delta_max > timestamp_max
        or (is_key_required and walk.null_keys > 0)
        or (header.codec != 0 and walk.record_bytes_max > record_bytes_max)
    ):
        if header.codec == 0:
            record_bytes_max = ANY_SIZE
        search = _RecordErrors(
            timestamp_min, timestamp_max, is_key_required, record_bytes_max, latest_setting
        )
        search.go_through(_content(check.window, header, size_max), header)
        search.report(check)


def walk_compressed(window: Window, header: BatchHeader, size_max: i64) -> RecordWalk:
    """Walk over decompressed records; `CorruptData` if they cannot be decompressed."""
    content = _content(window, header, size_max)
    return walk_records(content, 0, len(content), header.record_count)


def _content(window: Window, header: BatchHeader, size_max: i64) -> bytes:
    start = window.start + HEADER_SIZE
    if header.codec == 0:
        return window.data[start : window.end]
    return decompress(header.codec, memoryview(window.data)[start : window.end], size_max)


class _RecordErrors:
    """Records of one batch that are outside the limits; at most RECORD_ERRORS_MAX."""

    def __init__(
        self,
        timestamp_min: int,
        timestamp_max: int,
        is_key_required: bool,
        record_bytes_max: i64,
        latest_setting: str,
    ) -> None:
        self.record_bytes_max = record_bytes_max
        self.latest_setting = latest_setting
        self.timestamp_min = timestamp_min
        self.timestamp_max = timestamp_max
        self.is_key_required = is_key_required
        self.error_code: i64 = INVALID_RECORD
        self.errors: list[tuple[int, str]] = []

    def go_through(self, content: bytes, header: BatchHeader) -> None:
        """Check all records of a batch whose walk found no flaw."""
        end: i64 = len(content)
        cursor = RecordCursor(content, 0, end)
        index: i64 = 0
        while index < header.record_count and len(self.errors) < RECORD_ERRORS_MAX:
            record_end = cursor.enter_record(end)
            # The cursor is already behind the byte of attributes.
            size = record_end - cursor.position + 1
            timestamp = int(header.base_timestamp) + int(cursor.varlong())
            cursor.varint()
            has_key = cursor.skip("key")
            if size > self.record_bytes_max:
                self.errors.append(
                    (
                        index,
                        f"the record has {size} bytes and max.decompressed.message.bytes is "
                        f"{self.record_bytes_max}",
                    )
                )
            elif self.is_key_required and not has_key:
                self.errors.append((index, "a compacted topic takes only records with a key"))
            elif timestamp != NO_TIMESTAMP and not (
                self.timestamp_min <= timestamp <= self.timestamp_max
            ):
                self.error_code = INVALID_TIMESTAMP
                self.errors.append((index, self._sentence_about(timestamp)))
            cursor.position = record_end
            index += 1

    def _sentence_about(self, timestamp: int) -> str:
        compared, limit, setting = "later", self.timestamp_max, self.latest_setting
        if timestamp < self.timestamp_min:
            compared, limit = "earlier", self.timestamp_min
            setting = "message.timestamp.before.max.ms"
        return f"the timestamp {timestamp} is {compared} than {limit}, the limit by {setting}"

    def report(self, check: BatchCheck) -> None:
        # There may be no error: the only record outside the limits may have no timestamp.
        if self.errors:
            index, sentence = self.errors[0]
            check.record_errors = self.errors
            check.refuse(self.error_code, f"record {index}: {sentence}")
