"""ChangeScheduledRecords, API key 10001: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ScheduledChange:
    def __init__(
        self,
        schedule_id: bytes | None = None,
        s_offset: int = -1,
        due_ms: int = -1,
        batch_s_offset: int = -1,
    ) -> None:
        self.schedule_id: bytes | None = schedule_id
        self.s_offset: int = s_offset
        self.due_ms: int = due_ms
        self.batch_s_offset: int = batch_s_offset

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_nullable_bytes(self.schedule_id)
        writer.i64(self.s_offset)
        writer.i64(self.due_ms)
        tag_count: i64 = 0
        if self.batch_s_offset != -1:
            tag_count += 1
        writer.unsigned_varint(tag_count)
        if tag_count > 0:
            self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.batch_s_offset != -1:
            content = Writer()
            content.i64(self.batch_s_offset)
            writer.tagged_field(0, content)


def _decode_scheduled_change(reader: Reader, version: i64) -> ScheduledChange:
    batch_s_offset: i64 = -1
    schedule_id = reader.compact_nullable_bytes()
    s_offset = reader.i64()
    due_ms = reader.i64()
    tag: i64 = -1
    for _ in range(reader.tagged_field_count()):
        tag = reader.tag_after(tag)
        end = reader.tagged_field_end()
        if tag == 0:
            batch_s_offset = reader.i64()
            reader.expect_position(end)
        else:
            reader.position = end
    return ScheduledChange(schedule_id, s_offset, due_ms, batch_s_offset)


class ChangedSchedulePartition:
    def __init__(
        self,
        partition_index: int = 0,
        changes: list[ScheduledChange] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.changes: list[ScheduledChange] = [] if isinstance(changes, tuple) else changes

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        changes_ = self.changes
        writer.compact_array_length(len(changes_))
        for changes_element in changes_:
            changes_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_changed_schedule_partition(reader: Reader, version: i64) -> ChangedSchedulePartition:
    changes: list[ScheduledChange] = []
    partition_index = reader.i32()
    count = reader.compact_array_length(18)
    if count < 0:
        raise MalformedData("changes must not be null")
    for _ in range(count):
        changes.append(_decode_scheduled_change(reader, version))
    reader.skip_tagged_fields()
    return ChangedSchedulePartition(partition_index, changes)


class ChangedScheduleTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[ChangedSchedulePartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ChangedSchedulePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_changed_schedule_topic(reader: Reader, version: i64) -> ChangedScheduleTopic:
    partitions: list[ChangedSchedulePartition] = []
    name = reader.compact_string()
    count = reader.compact_array_length(6)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_changed_schedule_partition(reader, version))
    reader.skip_tagged_fields()
    return ChangedScheduleTopic(name, partitions)


class ChangeScheduledRecordsRequest(Message):
    def __init__(
        self,
        timeout_ms: int = 0,
        topics: list[ChangedScheduleTopic] | tuple[()] = (),
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ChangedScheduleTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.timeout_ms)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_change_scheduled_records_request(
    reader: Reader, version: i64
) -> ChangeScheduledRecordsRequest:
    topics: list[ChangedScheduleTopic] = []
    timeout_ms = reader.i32()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_changed_schedule_topic(reader, version))
    reader.skip_tagged_fields()
    return ChangeScheduledRecordsRequest(timeout_ms, topics)


class ScheduledChangeResult:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        outcome: int = 0,
        s_offset: int = -1,
        offset: int = -1,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.outcome: int = outcome
        self.s_offset: int = s_offset
        self.offset: int = offset

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.i8(self.outcome)
        writer.i64(self.s_offset)
        writer.i64(self.offset)
        writer.unsigned_varint(0)


def _decode_scheduled_change_result(reader: Reader, version: i64) -> ScheduledChangeResult:
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    outcome = reader.i8()
    s_offset = reader.i64()
    offset = reader.i64()
    reader.skip_tagged_fields()
    return ScheduledChangeResult(error_code, error_message, outcome, s_offset, offset)


class SchedulePartitionResult:
    def __init__(
        self,
        partition_index: int = 0,
        results: list[ScheduledChangeResult] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.results: list[ScheduledChangeResult] = [] if isinstance(results, tuple) else results

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        results_ = self.results
        writer.compact_array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_schedule_partition_result(reader: Reader, version: i64) -> SchedulePartitionResult:
    results: list[ScheduledChangeResult] = []
    partition_index = reader.i32()
    count = reader.compact_array_length(21)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_scheduled_change_result(reader, version))
    reader.skip_tagged_fields()
    return SchedulePartitionResult(partition_index, results)


class ScheduleTopicResult:
    def __init__(
        self,
        name: str = "",
        partitions: list[SchedulePartitionResult] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[SchedulePartitionResult] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_schedule_topic_result(reader: Reader, version: i64) -> ScheduleTopicResult:
    partitions: list[SchedulePartitionResult] = []
    name = reader.compact_string()
    count = reader.compact_array_length(6)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_schedule_partition_result(reader, version))
    reader.skip_tagged_fields()
    return ScheduleTopicResult(name, partitions)


class ChangeScheduledRecordsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ScheduleTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ScheduleTopicResult] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_change_scheduled_records_response(
    reader: Reader, version: i64
) -> ChangeScheduledRecordsResponse:
    topics: list[ScheduleTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_schedule_topic_result(reader, version))
    reader.skip_tagged_fields()
    return ChangeScheduledRecordsResponse(throttle_time_ms, topics)
