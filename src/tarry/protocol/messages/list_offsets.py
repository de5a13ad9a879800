"""ListOffsets, API key 2: versions 1 to 11, flexible from 6.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ListOffsetsPartition:
    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        writer.i32(self.partition_index)
        if version >= 4:
            writer.i32(self.current_leader_epoch)
        writer.i64(self.timestamp)
        if flexible:
            writer.unsigned_varint(0)


def _decode_list_offsets_partition(reader: Reader, version: i64) -> ListOffsetsPartition:
    flexible = version >= 6
    current_leader_epoch: i64 = -1
    partition_index = reader.i32()
    if version >= 4:
        current_leader_epoch = reader.i32()
    timestamp = reader.i64()
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsPartition(partition_index, current_leader_epoch, timestamp)


class ListOffsetsTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
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


def _decode_list_offsets_topic(reader: Reader, version: i64) -> ListOffsetsTopic:
    flexible = version >= 6
    partitions: list[ListOffsetsPartition] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(17) if flexible else reader.array_length(12)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_list_offsets_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsTopic(name, partitions)


class ListOffsetsRequest(Message):
    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | tuple[()] = (),
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if isinstance(topics, tuple) else topics
        self.timeout_ms: int = timeout_ms

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        writer.i32(self.replica_id)
        if version >= 2:
            writer.i8(self.isolation_level)
        elif self.isolation_level != 0:
            raise ValueError("this version has no isolation_level")
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if version >= 10:
            writer.i32(self.timeout_ms)
        if flexible:
            writer.unsigned_varint(0)


def decode_list_offsets_request(reader: Reader, version: i64) -> ListOffsetsRequest:
    flexible = version >= 6
    isolation_level: i64 = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: i64 = 0
    replica_id = reader.i32()
    if version >= 2:
        isolation_level = reader.i8()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_list_offsets_topic(reader, version))
    if version >= 10:
        timeout_ms = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsRequest(replica_id, isolation_level, topics, timeout_ms)


class ListOffsetsPartitionResponse:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        writer.i64(self.timestamp)
        writer.i64(self.offset)
        if version >= 4:
            writer.i32(self.leader_epoch)
        elif self.leader_epoch != -1:
            raise ValueError("this version has no leader_epoch")
        if flexible:
            writer.unsigned_varint(0)


def _decode_list_offsets_partition_response(
    reader: Reader, version: i64
) -> ListOffsetsPartitionResponse:
    flexible = version >= 6
    leader_epoch: i64 = -1
    partition_index = reader.i32()
    error_code = reader.i16()
    timestamp = reader.i64()
    offset = reader.i64()
    if version >= 4:
        leader_epoch = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsPartitionResponse(
        partition_index, error_code, timestamp, offset, leader_epoch
    )


class ListOffsetsTopicResponse:
    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
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


def _decode_list_offsets_topic_response(reader: Reader, version: i64) -> ListOffsetsTopicResponse:
    flexible = version >= 6
    partitions: list[ListOffsetsPartitionResponse] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(27) if flexible else reader.array_length(22)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_list_offsets_partition_response(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsTopicResponse(name, partitions)


class ListOffsetsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if version >= 2:
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


def decode_list_offsets_response(reader: Reader, version: i64) -> ListOffsetsResponse:
    flexible = version >= 6
    throttle_time_ms: i64 = 0
    topics: list[ListOffsetsTopicResponse] = []
    if version >= 2:
        throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_list_offsets_topic_response(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ListOffsetsResponse(throttle_time_ms, topics)
