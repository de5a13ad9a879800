"""DeleteRecords, API key 21: versions 0 to 2, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DeleteRecordsPartition:
    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.partition_index)
        writer.i64(self.offset)
        if flexible:
            writer.unsigned_varint(0)


def _decode_delete_records_partition(reader: Reader, version: i64) -> DeleteRecordsPartition:
    flexible = version >= 2
    partition_index = reader.i32()
    offset = reader.i64()
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsPartition(partition_index, offset)


class DeleteRecordsTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_delete_records_topic(reader: Reader, version: i64) -> DeleteRecordsTopic:
    flexible = version >= 2
    partitions: list[DeleteRecordsPartition] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(13) if flexible else reader.array_length(12)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_delete_records_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsTopic(name, partitions)


class DeleteRecordsRequest(Message):
    def __init__(
        self,
        topics: list[DeleteRecordsTopic] | tuple[()] = (),
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if isinstance(topics, tuple) else topics
        self.timeout_ms: int = timeout_ms

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.i32(self.timeout_ms)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_records_request(reader: Reader, version: i64) -> DeleteRecordsRequest:
    flexible = version >= 2
    topics: list[DeleteRecordsTopic] = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_delete_records_topic(reader, version))
    timeout_ms = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsRequest(topics, timeout_ms)


class DeleteRecordsPartitionResult:
    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.partition_index)
        writer.i64(self.low_watermark)
        writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def _decode_delete_records_partition_result(
    reader: Reader, version: i64
) -> DeleteRecordsPartitionResult:
    flexible = version >= 2
    partition_index = reader.i32()
    low_watermark = reader.i64()
    error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsPartitionResult(partition_index, low_watermark, error_code)


class DeleteRecordsTopicResult:
    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartitionResult] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_delete_records_topic_result(reader: Reader, version: i64) -> DeleteRecordsTopicResult:
    flexible = version >= 2
    partitions: list[DeleteRecordsPartitionResult] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(15) if flexible else reader.array_length(14)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_delete_records_partition_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsTopicResult(name, partitions)


class DeleteRecordsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_records_response(reader: Reader, version: i64) -> DeleteRecordsResponse:
    flexible = version >= 2
    topics: list[DeleteRecordsTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_delete_records_topic_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteRecordsResponse(throttle_time_ms, topics)
