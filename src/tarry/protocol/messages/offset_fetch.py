"""OffsetFetch, API key 9: versions 1 to 10, flexible from 6.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class OffsetFetchRequestTopic:
    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = (
            [] if isinstance(partition_indexes, tuple) else partition_indexes
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        partition_indexes_ = self.partition_indexes
        if flexible:
            writer.compact_array_length(len(partition_indexes_))
        else:
            writer.array_length(len(partition_indexes_))
        for partition_indexes_element in partition_indexes_:
            writer.i32(partition_indexes_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_fetch_request_topic(reader: Reader, version: i64) -> OffsetFetchRequestTopic:
    flexible = version >= 6
    partition_indexes: list[int] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("partition_indexes must not be null")
    for _ in range(count):
        partition_indexes.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return OffsetFetchRequestTopic(name, partition_indexes)


class OffsetFetchRequestTopics:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_indexes: list[int] = (
            [] if isinstance(partition_indexes, tuple) else partition_indexes
        )

    def encode(self, writer: Writer, version: i64) -> None:
        if version <= 9:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        partition_indexes_ = self.partition_indexes
        writer.compact_array_length(len(partition_indexes_))
        for partition_indexes_element in partition_indexes_:
            writer.i32(partition_indexes_element)
        writer.unsigned_varint(0)


def _decode_offset_fetch_request_topics(reader: Reader, version: i64) -> OffsetFetchRequestTopics:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_indexes: list[int] = []
    if version <= 9:
        name = reader.compact_string()
    if version >= 10:
        topic_id = reader.uuid()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("partition_indexes must not be null")
    for _ in range(count):
        partition_indexes.append(reader.i32())
    reader.skip_tagged_fields()
    return OffsetFetchRequestTopics(name, topic_id, partition_indexes)


class OffsetFetchRequestGroup:
    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | tuple[()] | None = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = (
            [] if isinstance(topics, tuple) else topics
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.group_id)
        if version >= 9:
            writer.compact_nullable_string(self.member_id)
            writer.i32(self.member_epoch)
        topics_ = self.topics
        if topics_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(topics_))
            for topics_element in topics_:
                topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_offset_fetch_request_group(reader: Reader, version: i64) -> OffsetFetchRequestGroup:
    member_id: str | None = None
    member_epoch: i64 = -1
    topics: list[OffsetFetchRequestTopics] | None = []
    group_id = reader.compact_string()
    if version >= 9:
        member_id = reader.compact_nullable_string()
        member_epoch = reader.i32()
    count = reader.compact_array_length(3)
    topics = None
    if count >= 0:
        topics = []
        for _ in range(count):
            topics.append(_decode_offset_fetch_request_topics(reader, version))
    reader.skip_tagged_fields()
    return OffsetFetchRequestGroup(group_id, member_id, member_epoch, topics)


class OffsetFetchRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | tuple[()] | None = (),
        groups: list[OffsetFetchRequestGroup] | tuple[()] = (),
        require_stable: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = (
            [] if isinstance(topics, tuple) else topics
        )
        self.groups: list[OffsetFetchRequestGroup] = [] if isinstance(groups, tuple) else groups
        self.require_stable: bool = require_stable

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if version <= 7:
            if flexible:
                writer.compact_string(self.group_id)
            else:
                writer.string(self.group_id)
            if self.topics is None and version < 2:
                raise ValueError("topics must not be None in this version")
            topics_ = self.topics
            if topics_ is None:
                if flexible:
                    writer.compact_array_length(-1)
                else:
                    writer.array_length(-1)
            else:
                if flexible:
                    writer.compact_array_length(len(topics_))
                else:
                    writer.array_length(len(topics_))
                for topics_element in topics_:
                    topics_element.encode(writer, version)
        elif self.group_id != "":
            raise ValueError("this version has no group_id")
        elif self.topics is None or len(self.topics) > 0:
            raise ValueError("this version has no topics")
        if version >= 8:
            groups_ = self.groups
            writer.compact_array_length(len(groups_))
            for groups_element in groups_:
                groups_element.encode(writer, version)
        elif self.groups:
            raise ValueError("this version has no groups")
        if version >= 7:
            writer.boolean(self.require_stable)
        elif self.require_stable:
            raise ValueError("this version has no require_stable")
        if flexible:
            writer.unsigned_varint(0)


def decode_offset_fetch_request(reader: Reader, version: i64) -> OffsetFetchRequest:
    flexible = version >= 6
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = []
    groups: list[OffsetFetchRequestGroup] = []
    require_stable: bool = False
    if version <= 7:
        group_id = reader.compact_string() if flexible else reader.string()
        count = reader.compact_array_length(3) if flexible else reader.array_length(6)
        if count < 0 and version < 2:
            raise MalformedData("topics must not be null")
        topics = None
        if count >= 0:
            topics = []
            for _ in range(count):
                topics.append(_decode_offset_fetch_request_topic(reader, version))
    if version >= 8:
        count = reader.compact_array_length(3)
        if count < 0:
            raise MalformedData("groups must not be null")
        for _ in range(count):
            groups.append(_decode_offset_fetch_request_group(reader, version))
    if version >= 7:
        require_stable = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return OffsetFetchRequest(group_id, topics, groups, require_stable)


class OffsetFetchResponsePartition:
    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        writer.i32(self.partition_index)
        writer.i64(self.committed_offset)
        if version >= 5:
            writer.i32(self.committed_leader_epoch)
        if flexible:
            writer.compact_nullable_string(self.metadata)
        else:
            writer.nullable_string(self.metadata)
        writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_fetch_response_partition(
    reader: Reader, version: i64
) -> OffsetFetchResponsePartition:
    flexible = version >= 6
    committed_leader_epoch: i64 = -1
    partition_index = reader.i32()
    committed_offset = reader.i64()
    if version >= 5:
        committed_leader_epoch = reader.i32()
    metadata = reader.compact_nullable_string() if flexible else reader.nullable_string()
    error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return OffsetFetchResponsePartition(
        partition_index, committed_offset, committed_leader_epoch, metadata, error_code
    )


class OffsetFetchResponseTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = (
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


def _decode_offset_fetch_response_topic(reader: Reader, version: i64) -> OffsetFetchResponseTopic:
    flexible = version >= 6
    partitions: list[OffsetFetchResponsePartition] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(20) if flexible else reader.array_length(16)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_fetch_response_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetFetchResponseTopic(name, partitions)


class OffsetFetchResponsePartitions:
    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i64(self.committed_offset)
        writer.i32(self.committed_leader_epoch)
        writer.compact_nullable_string(self.metadata)
        writer.i16(self.error_code)
        writer.unsigned_varint(0)


def _decode_offset_fetch_response_partitions(
    reader: Reader, version: i64
) -> OffsetFetchResponsePartitions:
    partition_index = reader.i32()
    committed_offset = reader.i64()
    committed_leader_epoch = reader.i32()
    metadata = reader.compact_nullable_string()
    error_code = reader.i16()
    reader.skip_tagged_fields()
    return OffsetFetchResponsePartitions(
        partition_index, committed_offset, committed_leader_epoch, metadata, error_code
    )


class OffsetFetchResponseTopics:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        if version <= 9:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_offset_fetch_response_topics(reader: Reader, version: i64) -> OffsetFetchResponseTopics:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = []
    if version <= 9:
        name = reader.compact_string()
    if version >= 10:
        topic_id = reader.uuid()
    count = reader.compact_array_length(20)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_fetch_response_partitions(reader, version))
    reader.skip_tagged_fields()
    return OffsetFetchResponseTopics(name, topic_id, partitions)


class OffsetFetchResponseGroup:
    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | tuple[()] = (),
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if isinstance(topics, tuple) else topics
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.group_id)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.i16(self.error_code)
        writer.unsigned_varint(0)


def _decode_offset_fetch_response_group(reader: Reader, version: i64) -> OffsetFetchResponseGroup:
    topics: list[OffsetFetchResponseTopics] = []
    group_id = reader.compact_string()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_fetch_response_topics(reader, version))
    error_code = reader.i16()
    reader.skip_tagged_fields()
    return OffsetFetchResponseGroup(group_id, topics, error_code)


class OffsetFetchResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | tuple[()] = (),
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if isinstance(topics, tuple) else topics
        self.error_code: int = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if isinstance(groups, tuple) else groups

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if version >= 3:
            writer.i32(self.throttle_time_ms)
        if version <= 7:
            topics_ = self.topics
            if flexible:
                writer.compact_array_length(len(topics_))
            else:
                writer.array_length(len(topics_))
            for topics_element in topics_:
                topics_element.encode(writer, version)
        elif self.topics:
            raise ValueError("this version has no topics")
        if 2 <= version <= 7:
            writer.i16(self.error_code)
        if version >= 8:
            groups_ = self.groups
            writer.compact_array_length(len(groups_))
            for groups_element in groups_:
                groups_element.encode(writer, version)
        elif self.groups:
            raise ValueError("this version has no groups")
        if flexible:
            writer.unsigned_varint(0)


def decode_offset_fetch_response(reader: Reader, version: i64) -> OffsetFetchResponse:
    flexible = version >= 6
    throttle_time_ms: i64 = 0
    topics: list[OffsetFetchResponseTopic] = []
    error_code: i64 = 0
    groups: list[OffsetFetchResponseGroup] = []
    if version >= 3:
        throttle_time_ms = reader.i32()
    if version <= 7:
        count = reader.compact_array_length(3) if flexible else reader.array_length(6)
        if count < 0:
            raise MalformedData("topics must not be null")
        for _ in range(count):
            topics.append(_decode_offset_fetch_response_topic(reader, version))
    if 2 <= version <= 7:
        error_code = reader.i16()
    if version >= 8:
        count = reader.compact_array_length(5)
        if count < 0:
            raise MalformedData("groups must not be null")
        for _ in range(count):
            groups.append(_decode_offset_fetch_response_group(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, groups)
