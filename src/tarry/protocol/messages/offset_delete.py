"""OffsetDelete, API key 47: versions 0 to 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class OffsetDeleteRequestPartition:
    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)


def _decode_offset_delete_request_partition(
    reader: Reader, version: i64
) -> OffsetDeleteRequestPartition:
    partition_index = reader.i32()
    return OffsetDeleteRequestPartition(partition_index)


class OffsetDeleteRequestTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.string(self.name)
        partitions_ = self.partitions
        writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)


def _decode_offset_delete_request_topic(reader: Reader, version: i64) -> OffsetDeleteRequestTopic:
    partitions: list[OffsetDeleteRequestPartition] = []
    name = reader.string()
    count = reader.array_length(4)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_delete_request_partition(reader, version))
    return OffsetDeleteRequestTopic(name, partitions)


class OffsetDeleteRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.string(self.group_id)
        topics_ = self.topics
        writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)


def decode_offset_delete_request(reader: Reader, version: i64) -> OffsetDeleteRequest:
    topics: list[OffsetDeleteRequestTopic] = []
    group_id = reader.string()
    count = reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_delete_request_topic(reader, version))
    return OffsetDeleteRequest(group_id, topics)


class OffsetDeleteResponsePartition:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i16(self.error_code)


def _decode_offset_delete_response_partition(
    reader: Reader, version: i64
) -> OffsetDeleteResponsePartition:
    partition_index = reader.i32()
    error_code = reader.i16()
    return OffsetDeleteResponsePartition(partition_index, error_code)


class OffsetDeleteResponseTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.string(self.name)
        partitions_ = self.partitions
        writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)


def _decode_offset_delete_response_topic(reader: Reader, version: i64) -> OffsetDeleteResponseTopic:
    partitions: list[OffsetDeleteResponsePartition] = []
    name = reader.string()
    count = reader.array_length(6)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_delete_response_partition(reader, version))
    return OffsetDeleteResponseTopic(name, partitions)


class OffsetDeleteResponse(Message):
    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)


def decode_offset_delete_response(reader: Reader, version: i64) -> OffsetDeleteResponse:
    topics: list[OffsetDeleteResponseTopic] = []
    error_code = reader.i16()
    throttle_time_ms = reader.i32()
    count = reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_delete_response_topic(reader, version))
    return OffsetDeleteResponse(error_code, throttle_time_ms, topics)
