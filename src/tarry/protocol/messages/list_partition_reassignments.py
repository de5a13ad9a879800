"""ListPartitionReassignments, API key 46: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ListPartitionReassignmentsTopics:
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
        writer.compact_string(self.name)
        partition_indexes_ = self.partition_indexes
        writer.compact_array_length(len(partition_indexes_))
        for partition_indexes_element in partition_indexes_:
            writer.i32(partition_indexes_element)
        writer.unsigned_varint(0)


def _decode_list_partition_reassignments_topics(
    reader: Reader, version: i64
) -> ListPartitionReassignmentsTopics:
    partition_indexes: list[int] = []
    name = reader.compact_string()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("partition_indexes must not be null")
    for _ in range(count):
        partition_indexes.append(reader.i32())
    reader.skip_tagged_fields()
    return ListPartitionReassignmentsTopics(name, partition_indexes)


class ListPartitionReassignmentsRequest(Message):
    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsTopics] | None = topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.timeout_ms)
        topics_ = self.topics
        if topics_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(topics_))
            for topics_element in topics_:
                topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_list_partition_reassignments_request(
    reader: Reader, version: i64
) -> ListPartitionReassignmentsRequest:
    topics: list[ListPartitionReassignmentsTopics] | None = None
    timeout_ms = reader.i32()
    count = reader.compact_array_length(3)
    topics = None
    if count >= 0:
        topics = []
        for _ in range(count):
            topics.append(_decode_list_partition_reassignments_topics(reader, version))
    reader.skip_tagged_fields()
    return ListPartitionReassignmentsRequest(timeout_ms, topics)


class OngoingPartitionReassignment:
    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | tuple[()] = (),
        adding_replicas: list[int] | tuple[()] = (),
        removing_replicas: list[int] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] = [] if isinstance(replicas, tuple) else replicas
        self.adding_replicas: list[int] = (
            [] if isinstance(adding_replicas, tuple) else adding_replicas
        )
        self.removing_replicas: list[int] = (
            [] if isinstance(removing_replicas, tuple) else removing_replicas
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        replicas_ = self.replicas
        writer.compact_array_length(len(replicas_))
        for replicas_element in replicas_:
            writer.i32(replicas_element)
        adding_replicas_ = self.adding_replicas
        writer.compact_array_length(len(adding_replicas_))
        for adding_replicas_element in adding_replicas_:
            writer.i32(adding_replicas_element)
        removing_replicas_ = self.removing_replicas
        writer.compact_array_length(len(removing_replicas_))
        for removing_replicas_element in removing_replicas_:
            writer.i32(removing_replicas_element)
        writer.unsigned_varint(0)


def _decode_ongoing_partition_reassignment(
    reader: Reader, version: i64
) -> OngoingPartitionReassignment:
    replicas: list[int] = []
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []
    partition_index = reader.i32()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("replicas must not be null")
    for _ in range(count):
        replicas.append(reader.i32())
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("adding_replicas must not be null")
    for _ in range(count):
        adding_replicas.append(reader.i32())
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("removing_replicas must not be null")
    for _ in range(count):
        removing_replicas.append(reader.i32())
    reader.skip_tagged_fields()
    return OngoingPartitionReassignment(
        partition_index, replicas, adding_replicas, removing_replicas
    )


class OngoingTopicReassignment:
    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[OngoingPartitionReassignment] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_ongoing_topic_reassignment(reader: Reader, version: i64) -> OngoingTopicReassignment:
    partitions: list[OngoingPartitionReassignment] = []
    name = reader.compact_string()
    count = reader.compact_array_length(8)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_ongoing_partition_reassignment(reader, version))
    reader.skip_tagged_fields()
    return OngoingTopicReassignment(name, partitions)


class ListPartitionReassignmentsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[OngoingTopicReassignment] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_list_partition_reassignments_response(
    reader: Reader, version: i64
) -> ListPartitionReassignmentsResponse:
    topics: list[OngoingTopicReassignment] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_ongoing_topic_reassignment(reader, version))
    reader.skip_tagged_fields()
    return ListPartitionReassignmentsResponse(throttle_time_ms, error_code, error_message, topics)
