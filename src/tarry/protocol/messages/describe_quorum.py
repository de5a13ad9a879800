"""DescribeQuorum, API key 55: versions 0 to 2, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class AskedPartitionData:
    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.unsigned_varint(0)


def _decode_asked_partition_data(reader: Reader, version: i64) -> AskedPartitionData:
    partition_index = reader.i32()
    reader.skip_tagged_fields()
    return AskedPartitionData(partition_index)


class AskedTopicData:
    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AskedPartitionData] | tuple[()] = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AskedPartitionData] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.topic_name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_asked_topic_data(reader: Reader, version: i64) -> AskedTopicData:
    partitions: list[AskedPartitionData] = []
    topic_name = reader.compact_string()
    count = reader.compact_array_length(5)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_asked_partition_data(reader, version))
    reader.skip_tagged_fields()
    return AskedTopicData(topic_name, partitions)


class DescribeQuorumRequest(Message):
    def __init__(
        self,
        topics: list[AskedTopicData] | tuple[()] = (),
    ) -> None:
        self.topics: list[AskedTopicData] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_quorum_request(reader: Reader, version: i64) -> DescribeQuorumRequest:
    topics: list[AskedTopicData] = []
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_asked_topic_data(reader, version))
    reader.skip_tagged_fields()
    return DescribeQuorumRequest(topics)


class ReplicaState:
    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.replica_id)
        if version >= 2:
            writer.uuid(self.replica_directory_id)
        elif self.replica_directory_id != ZERO_UUID:
            raise ValueError("this version has no replica_directory_id")
        writer.i64(self.log_end_offset)
        if version >= 1:
            writer.i64(self.last_fetch_timestamp)
            writer.i64(self.last_caught_up_timestamp)
        writer.unsigned_varint(0)


def _decode_replica_state(reader: Reader, version: i64) -> ReplicaState:
    replica_directory_id: bytes = ZERO_UUID
    last_fetch_timestamp: i64 = -1
    last_caught_up_timestamp: i64 = -1
    replica_id = reader.i32()
    if version >= 2:
        replica_directory_id = reader.uuid()
    log_end_offset = reader.i64()
    if version >= 1:
        last_fetch_timestamp = reader.i64()
        last_caught_up_timestamp = reader.i64()
    reader.skip_tagged_fields()
    return ReplicaState(
        replica_id,
        replica_directory_id,
        log_end_offset,
        last_fetch_timestamp,
        last_caught_up_timestamp,
    )


class PartitionData:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] | tuple[()] = (),
        observers: list[ReplicaState] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[ReplicaState] = (
            [] if isinstance(current_voters, tuple) else current_voters
        )
        self.observers: list[ReplicaState] = [] if isinstance(observers, tuple) else observers

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        writer.i32(self.leader_id)
        writer.i32(self.leader_epoch)
        writer.i64(self.high_watermark)
        current_voters_ = self.current_voters
        writer.compact_array_length(len(current_voters_))
        for current_voters_element in current_voters_:
            current_voters_element.encode(writer, version)
        observers_ = self.observers
        writer.compact_array_length(len(observers_))
        for observers_element in observers_:
            observers_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_partition_data(reader: Reader, version: i64) -> PartitionData:
    error_message: str | None = ""
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []
    partition_index = reader.i32()
    error_code = reader.i16()
    if version >= 2:
        error_message = reader.compact_nullable_string()
    leader_id = reader.i32()
    leader_epoch = reader.i32()
    high_watermark = reader.i64()
    count = reader.compact_array_length(13)
    if count < 0:
        raise MalformedData("current_voters must not be null")
    for _ in range(count):
        current_voters.append(_decode_replica_state(reader, version))
    count = reader.compact_array_length(13)
    if count < 0:
        raise MalformedData("observers must not be null")
    for _ in range(count):
        observers.append(_decode_replica_state(reader, version))
    reader.skip_tagged_fields()
    return PartitionData(
        partition_index,
        error_code,
        error_message,
        leader_id,
        leader_epoch,
        high_watermark,
        current_voters,
        observers,
    )


class TopicData:
    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] | tuple[()] = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[PartitionData] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.topic_name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_topic_data(reader: Reader, version: i64) -> TopicData:
    partitions: list[PartitionData] = []
    topic_name = reader.compact_string()
    count = reader.compact_array_length(25)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_partition_data(reader, version))
    reader.skip_tagged_fields()
    return TopicData(topic_name, partitions)


class Listener:
    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.u16(self.port)
        writer.unsigned_varint(0)


def _decode_listener(reader: Reader, version: i64) -> Listener:
    name = reader.compact_string()
    host = reader.compact_string()
    port = reader.u16()
    reader.skip_tagged_fields()
    return Listener(name, host, port)


class Node:
    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] | tuple[()] = (),
    ) -> None:
        self.node_id: int = node_id
        self.listeners: list[Listener] = [] if isinstance(listeners, tuple) else listeners

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.node_id)
        listeners_ = self.listeners
        writer.compact_array_length(len(listeners_))
        for listeners_element in listeners_:
            listeners_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_node(reader: Reader, version: i64) -> Node:
    listeners: list[Listener] = []
    node_id = reader.i32()
    count = reader.compact_array_length(5)
    if count < 0:
        raise MalformedData("listeners must not be null")
    for _ in range(count):
        listeners.append(_decode_listener(reader, version))
    reader.skip_tagged_fields()
    return Node(node_id, listeners)


class DescribeQuorumResponse(Message):
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[TopicData] | tuple[()] = (),
        nodes: list[Node] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[TopicData] = [] if isinstance(topics, tuple) else topics
        self.nodes: list[Node] = [] if isinstance(nodes, tuple) else nodes

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if version >= 2:
            nodes_ = self.nodes
            writer.compact_array_length(len(nodes_))
            for nodes_element in nodes_:
                nodes_element.encode(writer, version)
        elif self.nodes:
            raise ValueError("this version has no nodes")
        writer.unsigned_varint(0)


def decode_describe_quorum_response(reader: Reader, version: i64) -> DescribeQuorumResponse:
    error_message: str | None = ""
    topics: list[TopicData] = []
    nodes: list[Node] = []
    error_code = reader.i16()
    if version >= 2:
        error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_topic_data(reader, version))
    if version >= 2:
        count = reader.compact_array_length(6)
        if count < 0:
            raise MalformedData("nodes must not be null")
        for _ in range(count):
            nodes.append(_decode_node(reader, version))
    reader.skip_tagged_fields()
    return DescribeQuorumResponse(error_code, error_message, topics, nodes)
