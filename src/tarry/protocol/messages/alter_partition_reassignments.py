"""AlterPartitionReassignments, API key 45: versions 0 to 1, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ReassignablePartition:
    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        replicas_ = self.replicas
        if replicas_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(replicas_))
            for replicas_element in replicas_:
                writer.i32(replicas_element)
        writer.unsigned_varint(0)


def _decode_reassignable_partition(reader: Reader, version: i64) -> ReassignablePartition:
    replicas: list[int] | None = None
    partition_index = reader.i32()
    count = reader.compact_array_length(4)
    replicas = None
    if count >= 0:
        replicas = []
        for _ in range(count):
            replicas.append(reader.i32())
    reader.skip_tagged_fields()
    return ReassignablePartition(partition_index, replicas)


class ReassignableTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_reassignable_topic(reader: Reader, version: i64) -> ReassignableTopic:
    partitions: list[ReassignablePartition] = []
    name = reader.compact_string()
    count = reader.compact_array_length(6)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_reassignable_partition(reader, version))
    reader.skip_tagged_fields()
    return ReassignableTopic(name, partitions)


class AlterPartitionReassignmentsRequest(Message):
    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | tuple[()] = (),
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.timeout_ms)
        if version >= 1:
            writer.boolean(self.allow_replication_factor_change)
        elif not self.allow_replication_factor_change:
            raise ValueError("this version has no allow_replication_factor_change")
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_alter_partition_reassignments_request(
    reader: Reader, version: i64
) -> AlterPartitionReassignmentsRequest:
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = []
    timeout_ms = reader.i32()
    if version >= 1:
        allow_replication_factor_change = reader.boolean()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_reassignable_topic(reader, version))
    reader.skip_tagged_fields()
    return AlterPartitionReassignmentsRequest(timeout_ms, allow_replication_factor_change, topics)


class ReassignablePartitionResponse:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unsigned_varint(0)


def _decode_reassignable_partition_response(
    reader: Reader, version: i64
) -> ReassignablePartitionResponse:
    partition_index = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return ReassignablePartitionResponse(partition_index, error_code, error_message)


class ReassignableTopicResponse:
    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_reassignable_topic_response(reader: Reader, version: i64) -> ReassignableTopicResponse:
    partitions: list[ReassignablePartitionResponse] = []
    name = reader.compact_string()
    count = reader.compact_array_length(8)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_reassignable_partition_response(reader, version))
    reader.skip_tagged_fields()
    return ReassignableTopicResponse(name, partitions)


class AlterPartitionReassignmentsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = (
            [] if isinstance(responses, tuple) else responses
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        if version >= 1:
            writer.boolean(self.allow_replication_factor_change)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        responses_ = self.responses
        writer.compact_array_length(len(responses_))
        for responses_element in responses_:
            responses_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_alter_partition_reassignments_response(
    reader: Reader, version: i64
) -> AlterPartitionReassignmentsResponse:
    allow_replication_factor_change: bool = True
    responses: list[ReassignableTopicResponse] = []
    throttle_time_ms = reader.i32()
    if version >= 1:
        allow_replication_factor_change = reader.boolean()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("responses must not be null")
    for _ in range(count):
        responses.append(_decode_reassignable_topic_response(reader, version))
    reader.skip_tagged_fields()
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms, allow_replication_factor_change, error_code, error_message, responses
    )
