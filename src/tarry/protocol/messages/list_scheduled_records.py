"""ListScheduledRecords, API key 10000: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader, Window
from tarry.wire.writer import ChunkList, Writer


class ListScheduledPartition:
    def __init__(
        self,
        partition_index: int = 0,
        after_due_ms: int = -1,
        after_s_offset: int = -1,
        s_offset: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        self.after_due_ms: int = after_due_ms
        self.after_s_offset: int = after_s_offset
        self.s_offset: int = s_offset

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i64(self.after_due_ms)
        writer.i64(self.after_s_offset)
        writer.i64(self.s_offset)
        writer.unsigned_varint(0)


def _decode_list_scheduled_partition(reader: Reader, version: i64) -> ListScheduledPartition:
    partition_index = reader.i32()
    after_due_ms = reader.i64()
    after_s_offset = reader.i64()
    s_offset = reader.i64()
    reader.skip_tagged_fields()
    return ListScheduledPartition(partition_index, after_due_ms, after_s_offset, s_offset)


class ListScheduledRecordsRequest(Message):
    def __init__(
        self,
        topic_name: str = "",
        due_from_ms: int = 0,
        due_until_ms: int = 9223372036854775807,
        limit: int = 1000,
        include_batches: bool = False,
        schedule_id: bytes | None = None,
        bucket_edges_ms: list[int] | tuple[()] = (),
        partitions: list[ListScheduledPartition] | tuple[()] = (),
        include_counts: bool = False,
    ) -> None:
        self.topic_name: str = topic_name
        self.due_from_ms: int = due_from_ms
        self.due_until_ms: int = due_until_ms
        self.limit: int = limit
        self.include_batches: bool = include_batches
        self.schedule_id: bytes | None = schedule_id
        self.bucket_edges_ms: list[int] = (
            [] if isinstance(bucket_edges_ms, tuple) else bucket_edges_ms
        )
        self.partitions: list[ListScheduledPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )
        self.include_counts: bool = include_counts

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.topic_name)
        writer.i64(self.due_from_ms)
        writer.i64(self.due_until_ms)
        writer.i32(self.limit)
        writer.boolean(self.include_batches)
        writer.compact_nullable_bytes(self.schedule_id)
        bucket_edges_ms_ = self.bucket_edges_ms
        writer.compact_array_length(len(bucket_edges_ms_))
        for bucket_edges_ms_element in bucket_edges_ms_:
            writer.i64(bucket_edges_ms_element)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        tag_count: i64 = 0
        if self.include_counts:
            tag_count += 1
        writer.unsigned_varint(tag_count)
        if tag_count > 0:
            self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.include_counts:
            content = Writer()
            content.boolean(self.include_counts)
            writer.tagged_field(0, content)


def decode_list_scheduled_records_request(
    reader: Reader, version: i64
) -> ListScheduledRecordsRequest:
    bucket_edges_ms: list[int] = []
    partitions: list[ListScheduledPartition] = []
    include_counts: bool = False
    topic_name = reader.compact_string()
    due_from_ms = reader.i64()
    due_until_ms = reader.i64()
    limit = reader.i32()
    include_batches = reader.boolean()
    schedule_id = reader.compact_nullable_bytes()
    count = reader.compact_array_length(8)
    if count < 0:
        raise MalformedData("bucket_edges_ms must not be null")
    for _ in range(count):
        bucket_edges_ms.append(reader.i64())
    count = reader.compact_array_length(29)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_list_scheduled_partition(reader, version))
    tag: i64 = -1
    for _ in range(reader.tagged_field_count()):
        tag = reader.tag_after(tag)
        end = reader.tagged_field_end()
        if tag == 0:
            include_counts = reader.boolean()
            reader.expect_position(end)
        else:
            reader.position = end
    return ListScheduledRecordsRequest(
        topic_name,
        due_from_ms,
        due_until_ms,
        limit,
        include_batches,
        schedule_id,
        bucket_edges_ms,
        partitions,
        include_counts,
    )


class ScheduledBucket:
    def __init__(
        self,
        record_count: int = 0,
        size: int = 0,
    ) -> None:
        self.record_count: int = record_count
        self.size: int = size

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i64(self.record_count)
        writer.i64(self.size)
        writer.unsigned_varint(0)


def _decode_scheduled_bucket(reader: Reader, version: i64) -> ScheduledBucket:
    record_count = reader.i64()
    size = reader.i64()
    reader.skip_tagged_fields()
    return ScheduledBucket(record_count, size)


class ScheduledEntry:
    def __init__(
        self,
        due_ms: int = 0,
        s_offset: int = 0,
        record_count: int = 0,
        size: int = 0,
        schedule_id: bytes | None = None,
        batch: Window | ChunkList | None = None,
        cron: str = "",
        time_zone: str = "",
    ) -> None:
        self.due_ms: int = due_ms
        self.s_offset: int = s_offset
        self.record_count: int = record_count
        self.size: int = size
        self.schedule_id: bytes | None = schedule_id
        self.batch: Window | ChunkList | None = batch
        self.cron: str = cron
        self.time_zone: str = time_zone

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i64(self.due_ms)
        writer.i64(self.s_offset)
        writer.i32(self.record_count)
        writer.i32(self.size)
        writer.compact_nullable_bytes(self.schedule_id)
        writer.compact_nullable_records(self.batch)
        tag_count: i64 = 0
        if self.cron != "":
            tag_count += 1
        if self.time_zone != "":
            tag_count += 1
        writer.unsigned_varint(tag_count)
        if tag_count > 0:
            self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.cron != "":
            content = Writer()
            content.compact_string(self.cron)
            writer.tagged_field(0, content)
        if self.time_zone != "":
            content = Writer()
            content.compact_string(self.time_zone)
            writer.tagged_field(1, content)


def _decode_scheduled_entry(reader: Reader, version: i64) -> ScheduledEntry:
    cron: str = ""
    time_zone: str = ""
    due_ms = reader.i64()
    s_offset = reader.i64()
    record_count = reader.i32()
    size = reader.i32()
    schedule_id = reader.compact_nullable_bytes()
    batch = reader.compact_nullable_window()
    tag: i64 = -1
    for _ in range(reader.tagged_field_count()):
        tag = reader.tag_after(tag)
        end = reader.tagged_field_end()
        if tag == 0:
            cron = reader.compact_string()
            reader.expect_position(end)
        elif tag == 1:
            time_zone = reader.compact_string()
            reader.expect_position(end)
        else:
            reader.position = end
    return ScheduledEntry(due_ms, s_offset, record_count, size, schedule_id, batch, cron, time_zone)


class ScheduledPartition:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        entry_count: int = 0,
        record_count: int = 0,
        size: int = 0,
        damaged_count: int = 0,
        furthest_due_ms: int = -1,
        buckets: list[ScheduledBucket] | tuple[()] = (),
        scheduled: list[ScheduledEntry] | tuple[()] = (),
        has_more: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entry_count: int = entry_count
        self.record_count: int = record_count
        self.size: int = size
        self.damaged_count: int = damaged_count
        self.furthest_due_ms: int = furthest_due_ms
        self.buckets: list[ScheduledBucket] = [] if isinstance(buckets, tuple) else buckets
        self.scheduled: list[ScheduledEntry] = [] if isinstance(scheduled, tuple) else scheduled
        self.has_more: bool = has_more

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.i64(self.entry_count)
        writer.i64(self.record_count)
        writer.i64(self.size)
        writer.i64(self.damaged_count)
        writer.i64(self.furthest_due_ms)
        buckets_ = self.buckets
        writer.compact_array_length(len(buckets_))
        for buckets_element in buckets_:
            buckets_element.encode(writer, version)
        scheduled_ = self.scheduled
        writer.compact_array_length(len(scheduled_))
        for scheduled_element in scheduled_:
            scheduled_element.encode(writer, version)
        writer.boolean(self.has_more)
        writer.unsigned_varint(0)


def _decode_scheduled_partition(reader: Reader, version: i64) -> ScheduledPartition:
    buckets: list[ScheduledBucket] = []
    scheduled: list[ScheduledEntry] = []
    partition_index = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    entry_count = reader.i64()
    record_count = reader.i64()
    size = reader.i64()
    damaged_count = reader.i64()
    furthest_due_ms = reader.i64()
    count = reader.compact_array_length(17)
    if count < 0:
        raise MalformedData("buckets must not be null")
    for _ in range(count):
        buckets.append(_decode_scheduled_bucket(reader, version))
    count = reader.compact_array_length(27)
    if count < 0:
        raise MalformedData("scheduled must not be null")
    for _ in range(count):
        scheduled.append(_decode_scheduled_entry(reader, version))
    has_more = reader.boolean()
    reader.skip_tagged_fields()
    return ScheduledPartition(
        partition_index,
        error_code,
        error_message,
        entry_count,
        record_count,
        size,
        damaged_count,
        furthest_due_ms,
        buckets,
        scheduled,
        has_more,
    )


class LatenessBucket:
    def __init__(
        self,
        number: int = 0,
        record_count: int = 0,
    ) -> None:
        self.number: int = number
        self.record_count: int = record_count

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.number)
        writer.i64(self.record_count)
        writer.unsigned_varint(0)


def _decode_lateness_bucket(reader: Reader, version: i64) -> LatenessBucket:
    number = reader.i32()
    record_count = reader.i64()
    reader.skip_tagged_fields()
    return LatenessBucket(number, record_count)


class CountedScheduled:
    def __init__(
        self,
        since_ms: int = -1,
        parked_count: int = 0,
        released_count: int = 0,
        cancelled_count: int = 0,
        refused_count: int = 0,
        longest_late_ms: int = 0,
        lateness: list[LatenessBucket] | tuple[()] = (),
    ) -> None:
        self.since_ms: int = since_ms
        self.parked_count: int = parked_count
        self.released_count: int = released_count
        self.cancelled_count: int = cancelled_count
        self.refused_count: int = refused_count
        self.longest_late_ms: int = longest_late_ms
        self.lateness: list[LatenessBucket] = [] if isinstance(lateness, tuple) else lateness

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i64(self.since_ms)
        writer.i64(self.parked_count)
        writer.i64(self.released_count)
        writer.i64(self.cancelled_count)
        writer.i64(self.refused_count)
        writer.i64(self.longest_late_ms)
        lateness_ = self.lateness
        writer.compact_array_length(len(lateness_))
        for lateness_element in lateness_:
            lateness_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_counted_scheduled(reader: Reader, version: i64) -> CountedScheduled:
    lateness: list[LatenessBucket] = []
    since_ms = reader.i64()
    parked_count = reader.i64()
    released_count = reader.i64()
    cancelled_count = reader.i64()
    refused_count = reader.i64()
    longest_late_ms = reader.i64()
    count = reader.compact_array_length(13)
    if count < 0:
        raise MalformedData("lateness must not be null")
    for _ in range(count):
        lateness.append(_decode_lateness_bucket(reader, version))
    reader.skip_tagged_fields()
    return CountedScheduled(
        since_ms,
        parked_count,
        released_count,
        cancelled_count,
        refused_count,
        longest_late_ms,
        lateness,
    )


class ListScheduledRecordsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        partitions: list[ScheduledPartition] | tuple[()] = (),
        counts: CountedScheduled | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.partitions: list[ScheduledPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )
        self.counts: CountedScheduled | None = counts

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        tag_count: i64 = 0
        if self.counts is not None:
            tag_count += 1
        writer.unsigned_varint(tag_count)
        if tag_count > 0:
            self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.counts is not None:
            content = Writer()
            counts_ = self.counts
            if counts_ is not None:
                counts_.encode(content, version)
            writer.tagged_field(0, content)


def decode_list_scheduled_records_response(
    reader: Reader, version: i64
) -> ListScheduledRecordsResponse:
    partitions: list[ScheduledPartition] = []
    counts: CountedScheduled | None = None
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(51)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_scheduled_partition(reader, version))
    tag: i64 = -1
    for _ in range(reader.tagged_field_count()):
        tag = reader.tag_after(tag)
        end = reader.tagged_field_end()
        if tag == 0:
            counts = _decode_counted_scheduled(reader, version)
            reader.expect_position(end)
        else:
            reader.position = end
    return ListScheduledRecordsResponse(throttle_time_ms, partitions, counts)
