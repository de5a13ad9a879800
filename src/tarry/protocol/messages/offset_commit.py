"""OffsetCommit, API key 8: versions 2 to 10, flexible from 8.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class OffsetCommitRequestPartition:
    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        writer.i32(self.partition_index)
        writer.i64(self.committed_offset)
        if version >= 6:
            writer.i32(self.committed_leader_epoch)
        if flexible:
            writer.compact_nullable_string(self.committed_metadata)
        else:
            writer.nullable_string(self.committed_metadata)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_commit_request_partition(
    reader: Reader, version: i64
) -> OffsetCommitRequestPartition:
    flexible = version >= 8
    committed_leader_epoch: i64 = -1
    partition_index = reader.i32()
    committed_offset = reader.i64()
    if version >= 6:
        committed_leader_epoch = reader.i32()
    committed_metadata = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitRequestPartition(
        partition_index, committed_offset, committed_leader_epoch, committed_metadata
    )


class OffsetCommitRequestTopic:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        if version <= 9:
            if flexible:
                writer.compact_string(self.name)
            else:
                writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_commit_request_topic(reader: Reader, version: i64) -> OffsetCommitRequestTopic:
    flexible = version >= 8
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []
    if version <= 9:
        name = reader.compact_string() if flexible else reader.string()
    if version >= 10:
        topic_id = reader.uuid()
    count = reader.compact_array_length(18) if flexible else reader.array_length(14)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_commit_request_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitRequestTopic(name, topic_id, partitions)


class OffsetCommitRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.i32(self.generation_id_or_member_epoch)
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 7:
            if flexible:
                writer.compact_nullable_string(self.group_instance_id)
            else:
                writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise ValueError("this version has no group_instance_id")
        if version <= 4:
            writer.i64(self.retention_time_ms)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_offset_commit_request(reader: Reader, version: i64) -> OffsetCommitRequest:
    flexible = version >= 8
    group_instance_id: str | None = None
    retention_time_ms: i64 = -1
    topics: list[OffsetCommitRequestTopic] = []
    group_id = reader.compact_string() if flexible else reader.string()
    generation_id_or_member_epoch = reader.i32()
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 7:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    if version <= 4:
        retention_time_ms = reader.i64()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_commit_request_topic(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        group_instance_id,
        retention_time_ms,
        topics,
    )


class OffsetCommitResponsePartition:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_commit_response_partition(
    reader: Reader, version: i64
) -> OffsetCommitResponsePartition:
    flexible = version >= 8
    partition_index = reader.i32()
    error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitResponsePartition(partition_index, error_code)


class OffsetCommitResponseTopic:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        if version <= 9:
            if flexible:
                writer.compact_string(self.name)
            else:
                writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_commit_response_topic(reader: Reader, version: i64) -> OffsetCommitResponseTopic:
    flexible = version >= 8
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []
    if version <= 9:
        name = reader.compact_string() if flexible else reader.string()
    if version >= 10:
        topic_id = reader.uuid()
    count = reader.compact_array_length(7) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_commit_response_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitResponseTopic(name, topic_id, partitions)


class OffsetCommitResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 8
        if version >= 3:
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


def decode_offset_commit_response(reader: Reader, version: i64) -> OffsetCommitResponse:
    flexible = version >= 8
    throttle_time_ms: i64 = 0
    topics: list[OffsetCommitResponseTopic] = []
    if version >= 3:
        throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_commit_response_topic(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetCommitResponse(throttle_time_ms, topics)
