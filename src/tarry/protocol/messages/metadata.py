"""Metadata, API key 3: versions 0 to 13, flexible from 9.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class MetadataRequestTopic:
    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str | None = name

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if version >= 10:
            writer.uuid(self.topic_id)
        if self.name is None and version < 10:
            raise ValueError("name must not be None in this version")
        if flexible:
            writer.compact_nullable_string(self.name)
        else:
            writer.nullable_string(self.name)
        if flexible:
            writer.unsigned_varint(0)


def _decode_metadata_request_topic(reader: Reader, version: i64) -> MetadataRequestTopic:
    flexible = version >= 9
    topic_id: bytes = ZERO_UUID
    if version >= 10:
        topic_id = reader.uuid()
    name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if name is None and version < 10:
        raise MalformedData("name must not be null")
    if flexible:
        reader.skip_tagged_fields()
    return MetadataRequestTopic(topic_id, name)


class MetadataRequest(Message):
    def __init__(
        self,
        topics: list[MetadataRequestTopic] | tuple[()] | None = (),
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if self.topics is None and version < 1:
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
        if version >= 4:
            writer.boolean(self.allow_auto_topic_creation)
        elif not self.allow_auto_topic_creation:
            raise ValueError("this version has no allow_auto_topic_creation")
        if 8 <= version <= 10:
            writer.boolean(self.include_cluster_authorized_operations)
        elif self.include_cluster_authorized_operations:
            raise ValueError("this version has no include_cluster_authorized_operations")
        if version >= 8:
            writer.boolean(self.include_topic_authorized_operations)
        elif self.include_topic_authorized_operations:
            raise ValueError("this version has no include_topic_authorized_operations")
        if flexible:
            writer.unsigned_varint(0)


def decode_metadata_request(reader: Reader, version: i64) -> MetadataRequest:
    flexible = version >= 9
    topics: list[MetadataRequestTopic] | None = []
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False
    count = reader.compact_array_length(2) if flexible else reader.array_length(2)
    if count < 0 and version < 1:
        raise MalformedData("topics must not be null")
    topics = None
    if count >= 0:
        topics = []
        for _ in range(count):
            topics.append(_decode_metadata_request_topic(reader, version))
    if version >= 4:
        allow_auto_topic_creation = reader.boolean()
    if 8 <= version <= 10:
        include_cluster_authorized_operations = reader.boolean()
    if version >= 8:
        include_topic_authorized_operations = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return MetadataRequest(
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )


class MetadataResponseBroker:
    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i32(self.node_id)
        if flexible:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.i32(self.port)
        if version >= 1:
            if flexible:
                writer.compact_nullable_string(self.rack)
            else:
                writer.nullable_string(self.rack)
        if flexible:
            writer.unsigned_varint(0)


def _decode_metadata_response_broker(reader: Reader, version: i64) -> MetadataResponseBroker:
    flexible = version >= 9
    rack: str | None = None
    node_id = reader.i32()
    host = reader.compact_string() if flexible else reader.string()
    port = reader.i32()
    if version >= 1:
        rack = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return MetadataResponseBroker(node_id, host, port, rack)


class MetadataResponsePartition:
    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | tuple[()] = (),
        isr_nodes: list[int] | tuple[()] = (),
        offline_replicas: list[int] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if isinstance(replica_nodes, tuple) else replica_nodes
        self.isr_nodes: list[int] = [] if isinstance(isr_nodes, tuple) else isr_nodes
        self.offline_replicas: list[int] = (
            [] if isinstance(offline_replicas, tuple) else offline_replicas
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i16(self.error_code)
        writer.i32(self.partition_index)
        writer.i32(self.leader_id)
        if version >= 7:
            writer.i32(self.leader_epoch)
        replica_nodes_ = self.replica_nodes
        if flexible:
            writer.compact_array_length(len(replica_nodes_))
        else:
            writer.array_length(len(replica_nodes_))
        for replica_nodes_element in replica_nodes_:
            writer.i32(replica_nodes_element)
        isr_nodes_ = self.isr_nodes
        if flexible:
            writer.compact_array_length(len(isr_nodes_))
        else:
            writer.array_length(len(isr_nodes_))
        for isr_nodes_element in isr_nodes_:
            writer.i32(isr_nodes_element)
        if version >= 5:
            offline_replicas_ = self.offline_replicas
            if flexible:
                writer.compact_array_length(len(offline_replicas_))
            else:
                writer.array_length(len(offline_replicas_))
            for offline_replicas_element in offline_replicas_:
                writer.i32(offline_replicas_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_metadata_response_partition(reader: Reader, version: i64) -> MetadataResponsePartition:
    flexible = version >= 9
    leader_epoch: i64 = -1
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    offline_replicas: list[int] = []
    error_code = reader.i16()
    partition_index = reader.i32()
    leader_id = reader.i32()
    if version >= 7:
        leader_epoch = reader.i32()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("replica_nodes must not be null")
    for _ in range(count):
        replica_nodes.append(reader.i32())
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("isr_nodes must not be null")
    for _ in range(count):
        isr_nodes.append(reader.i32())
    if version >= 5:
        count = reader.compact_array_length(4) if flexible else reader.array_length(4)
        if count < 0:
            raise MalformedData("offline_replicas must not be null")
        for _ in range(count):
            offline_replicas.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return MetadataResponsePartition(
        error_code,
        partition_index,
        leader_id,
        leader_epoch,
        replica_nodes,
        isr_nodes,
        offline_replicas,
    )


class MetadataResponseTopic:
    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] | tuple[()] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )
        self.topic_authorized_operations: int = topic_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i16(self.error_code)
        if self.name is None and version < 12:
            raise ValueError("name must not be None in this version")
        if flexible:
            writer.compact_nullable_string(self.name)
        else:
            writer.nullable_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 1:
            writer.boolean(self.is_internal)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if version >= 8:
            writer.i32(self.topic_authorized_operations)
        elif self.topic_authorized_operations != -2147483648:
            raise ValueError("this version has no topic_authorized_operations")
        if flexible:
            writer.unsigned_varint(0)


def _decode_metadata_response_topic(reader: Reader, version: i64) -> MetadataResponseTopic:
    flexible = version >= 9
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: i64 = -2147483648
    error_code = reader.i16()
    name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if name is None and version < 12:
        raise MalformedData("name must not be null")
    if version >= 10:
        topic_id = reader.uuid()
    if version >= 1:
        is_internal = reader.boolean()
    count = reader.compact_array_length(18) if flexible else reader.array_length(18)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_metadata_response_partition(reader, version))
    if version >= 8:
        topic_authorized_operations = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return MetadataResponseTopic(
        error_code, name, topic_id, is_internal, partitions, topic_authorized_operations
    )


class MetadataResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | tuple[()] = (),
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | tuple[()] = (),
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if isinstance(brokers, tuple) else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if isinstance(topics, tuple) else topics
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if version >= 3:
            writer.i32(self.throttle_time_ms)
        brokers_ = self.brokers
        if flexible:
            writer.compact_array_length(len(brokers_))
        else:
            writer.array_length(len(brokers_))
        for brokers_element in brokers_:
            brokers_element.encode(writer, version)
        if version >= 2:
            if flexible:
                writer.compact_nullable_string(self.cluster_id)
            else:
                writer.nullable_string(self.cluster_id)
        if version >= 1:
            writer.i32(self.controller_id)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if 8 <= version <= 10:
            writer.i32(self.cluster_authorized_operations)
        elif self.cluster_authorized_operations != -2147483648:
            raise ValueError("this version has no cluster_authorized_operations")
        if version >= 13:
            writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def decode_metadata_response(reader: Reader, version: i64) -> MetadataResponse:
    flexible = version >= 9
    throttle_time_ms: i64 = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: str | None = None
    controller_id: i64 = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: i64 = -2147483648
    error_code: i64 = 0
    if version >= 3:
        throttle_time_ms = reader.i32()
    count = reader.compact_array_length(11) if flexible else reader.array_length(10)
    if count < 0:
        raise MalformedData("brokers must not be null")
    for _ in range(count):
        brokers.append(_decode_metadata_response_broker(reader, version))
    if version >= 2:
        cluster_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if version >= 1:
        controller_id = reader.i32()
    count = reader.compact_array_length(10) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_metadata_response_topic(reader, version))
    if 8 <= version <= 10:
        cluster_authorized_operations = reader.i32()
    if version >= 13:
        error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        error_code,
    )
