"""DescribeTopicPartitions, API key 75: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class TopicRequest:
    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name: str = name

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.unsigned_varint(0)


def _decode_topic_request(reader: Reader, version: i64) -> TopicRequest:
    name = reader.compact_string()
    reader.skip_tagged_fields()
    return TopicRequest(name)


class Cursor:
    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.topic_name)
        writer.i32(self.partition_index)
        writer.unsigned_varint(0)


def _decode_cursor(reader: Reader, version: i64) -> Cursor:
    topic_name = reader.compact_string()
    partition_index = reader.i32()
    reader.skip_tagged_fields()
    return Cursor(topic_name, partition_index)


class DescribeTopicPartitionsRequest(Message):
    def __init__(
        self,
        topics: list[TopicRequest] | tuple[()] = (),
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if isinstance(topics, tuple) else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: Cursor | None = cursor

    def encode(self, writer: Writer, version: i64) -> None:
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.i32(self.response_partition_limit)
        cursor_ = self.cursor
        if cursor_ is None:
            writer.i8(-1)
        else:
            writer.i8(1)
            cursor_.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_topic_partitions_request(
    reader: Reader, version: i64
) -> DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = []
    cursor: Cursor | None = None
    count = reader.compact_array_length(2)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_topic_request(reader, version))
    response_partition_limit = reader.i32()
    if reader.i8() >= 0:
        cursor = _decode_cursor(reader, version)
    reader.skip_tagged_fields()
    return DescribeTopicPartitionsRequest(topics, response_partition_limit, cursor)


class DescribeTopicPartitionsResponsePartition:
    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | tuple[()] = (),
        isr_nodes: list[int] | tuple[()] = (),
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if isinstance(replica_nodes, tuple) else replica_nodes
        self.isr_nodes: list[int] = [] if isinstance(isr_nodes, tuple) else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = (
            [] if isinstance(offline_replicas, tuple) else offline_replicas
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        writer.i32(self.partition_index)
        writer.i32(self.leader_id)
        writer.i32(self.leader_epoch)
        replica_nodes_ = self.replica_nodes
        writer.compact_array_length(len(replica_nodes_))
        for replica_nodes_element in replica_nodes_:
            writer.i32(replica_nodes_element)
        isr_nodes_ = self.isr_nodes
        writer.compact_array_length(len(isr_nodes_))
        for isr_nodes_element in isr_nodes_:
            writer.i32(isr_nodes_element)
        eligible_leader_replicas_ = self.eligible_leader_replicas
        if eligible_leader_replicas_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(eligible_leader_replicas_))
            for eligible_leader_replicas_element in eligible_leader_replicas_:
                writer.i32(eligible_leader_replicas_element)
        last_known_elr_ = self.last_known_elr
        if last_known_elr_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(last_known_elr_))
            for last_known_elr_element in last_known_elr_:
                writer.i32(last_known_elr_element)
        offline_replicas_ = self.offline_replicas
        writer.compact_array_length(len(offline_replicas_))
        for offline_replicas_element in offline_replicas_:
            writer.i32(offline_replicas_element)
        writer.unsigned_varint(0)


def _decode_describe_topic_partitions_response_partition(
    reader: Reader, version: i64
) -> DescribeTopicPartitionsResponsePartition:
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = []
    error_code = reader.i16()
    partition_index = reader.i32()
    leader_id = reader.i32()
    leader_epoch = reader.i32()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("replica_nodes must not be null")
    for _ in range(count):
        replica_nodes.append(reader.i32())
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("isr_nodes must not be null")
    for _ in range(count):
        isr_nodes.append(reader.i32())
    count = reader.compact_array_length(4)
    eligible_leader_replicas = None
    if count >= 0:
        eligible_leader_replicas = []
        for _ in range(count):
            eligible_leader_replicas.append(reader.i32())
    count = reader.compact_array_length(4)
    last_known_elr = None
    if count >= 0:
        last_known_elr = []
        for _ in range(count):
            last_known_elr.append(reader.i32())
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("offline_replicas must not be null")
    for _ in range(count):
        offline_replicas.append(reader.i32())
    reader.skip_tagged_fields()
    return DescribeTopicPartitionsResponsePartition(
        error_code,
        partition_index,
        leader_id,
        leader_epoch,
        replica_nodes,
        isr_nodes,
        eligible_leader_replicas,
        last_known_elr,
        offline_replicas,
    )


class DescribeTopicPartitionsResponseTopic:
    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | tuple[()] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )
        self.topic_authorized_operations: int = topic_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.boolean(self.is_internal)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.i32(self.topic_authorized_operations)
        writer.unsigned_varint(0)


def _decode_describe_topic_partitions_response_topic(
    reader: Reader, version: i64
) -> DescribeTopicPartitionsResponseTopic:
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    error_code = reader.i16()
    name = reader.compact_nullable_string()
    topic_id = reader.uuid()
    is_internal = reader.boolean()
    count = reader.compact_array_length(20)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_describe_topic_partitions_response_partition(reader, version))
    topic_authorized_operations = reader.i32()
    reader.skip_tagged_fields()
    return DescribeTopicPartitionsResponseTopic(
        error_code, name, topic_id, is_internal, partitions, topic_authorized_operations
    )


class DescribeTopicPartitionsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | tuple[()] = (),
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = (
            [] if isinstance(topics, tuple) else topics
        )
        self.next_cursor: Cursor | None = next_cursor

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        next_cursor_ = self.next_cursor
        if next_cursor_ is None:
            writer.i8(-1)
        else:
            writer.i8(1)
            next_cursor_.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_topic_partitions_response(
    reader: Reader, version: i64
) -> DescribeTopicPartitionsResponse:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(26)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_describe_topic_partitions_response_topic(reader, version))
    if reader.i8() >= 0:
        next_cursor = _decode_cursor(reader, version)
    reader.skip_tagged_fields()
    return DescribeTopicPartitionsResponse(throttle_time_ms, topics, next_cursor)
