"""Fetch, API key 1: versions 4 to 18, flexible from 12.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader, Window
from tarry.wire.writer import ChunkList, Writer


class ReplicaState:
    def __init__(
        self,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.replica_id)
        writer.i64(self.replica_epoch)
        writer.unsigned_varint(0)


def _decode_replica_state(reader: Reader, version: i64) -> ReplicaState:
    replica_id = reader.i32()
    replica_epoch = reader.i64()
    reader.skip_tagged_fields()
    return ReplicaState(replica_id, replica_epoch)


class FetchPartition:
    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: bytes = replica_directory_id
        self.high_watermark: int = high_watermark

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        writer.i32(self.partition)
        if version >= 9:
            writer.i32(self.current_leader_epoch)
        writer.i64(self.fetch_offset)
        if version >= 12:
            writer.i32(self.last_fetched_epoch)
        elif self.last_fetched_epoch != -1:
            raise ValueError("this version has no last_fetched_epoch")
        if version >= 5:
            writer.i64(self.log_start_offset)
        writer.i32(self.partition_max_bytes)
        tag_count: i64 = 0
        if version >= 17 and self.replica_directory_id != ZERO_UUID:
            tag_count += 1
        if version >= 18 and self.high_watermark != 9223372036854775807:
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if version >= 17 and self.replica_directory_id != ZERO_UUID:
            content = Writer()
            content.uuid(self.replica_directory_id)
            writer.tagged_field(0, content)
        if version >= 18 and self.high_watermark != 9223372036854775807:
            content = Writer()
            content.i64(self.high_watermark)
            writer.tagged_field(1, content)


def _decode_fetch_partition(reader: Reader, version: i64) -> FetchPartition:
    flexible = version >= 12
    current_leader_epoch: i64 = -1
    last_fetched_epoch: i64 = -1
    log_start_offset: i64 = -1
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: i64 = 9223372036854775807
    partition = reader.i32()
    if version >= 9:
        current_leader_epoch = reader.i32()
    fetch_offset = reader.i64()
    if version >= 12:
        last_fetched_epoch = reader.i32()
    if version >= 5:
        log_start_offset = reader.i64()
    partition_max_bytes = reader.i32()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0 and version >= 17:
                replica_directory_id = reader.uuid()
                reader.expect_position(end)
            elif tag == 1 and version >= 18:
                high_watermark = reader.i64()
                reader.expect_position(end)
            else:
                reader.position = end
    return FetchPartition(
        partition,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
        replica_directory_id,
        high_watermark,
    )


class FetchTopic:
    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        if version <= 12:
            if flexible:
                writer.compact_string(self.topic)
            else:
                writer.string(self.topic)
        if version >= 13:
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


def _decode_fetch_topic(reader: Reader, version: i64) -> FetchTopic:
    flexible = version >= 12
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[FetchPartition] = []
    if version <= 12:
        topic = reader.compact_string() if flexible else reader.string()
    if version >= 13:
        topic_id = reader.uuid()
    count = reader.compact_array_length(33) if flexible else reader.array_length(16)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_fetch_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return FetchTopic(topic, topic_id, partitions)


class ForgottenTopic:
    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        if version <= 12:
            if flexible:
                writer.compact_string(self.topic)
            else:
                writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            writer.i32(partitions_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_forgotten_topic(reader: Reader, version: i64) -> ForgottenTopic:
    flexible = version >= 12
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    if version <= 12:
        topic = reader.compact_string() if flexible else reader.string()
    if version >= 13:
        topic_id = reader.uuid()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return ForgottenTopic(topic, topic_id, partitions)


class FetchRequest(Message):
    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | tuple[()] = (),
        forgotten_topics_data: list[ForgottenTopic] | tuple[()] = (),
        rack_id: str = "",
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.replica_state: ReplicaState | None = replica_state
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if isinstance(topics, tuple) else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if isinstance(forgotten_topics_data, tuple) else forgotten_topics_data
        )
        self.rack_id: str = rack_id

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        if version <= 14:
            writer.i32(self.replica_id)
        elif self.replica_id != -1:
            raise ValueError("this version has no replica_id")
        writer.i32(self.max_wait_ms)
        writer.i32(self.min_bytes)
        writer.i32(self.max_bytes)
        writer.i8(self.isolation_level)
        if version >= 7:
            writer.i32(self.session_id)
            writer.i32(self.session_epoch)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if version >= 7:
            forgotten_topics_data_ = self.forgotten_topics_data
            if flexible:
                writer.compact_array_length(len(forgotten_topics_data_))
            else:
                writer.array_length(len(forgotten_topics_data_))
            for forgotten_topics_data_element in forgotten_topics_data_:
                forgotten_topics_data_element.encode(writer, version)
        elif self.forgotten_topics_data:
            raise ValueError("this version has no forgotten_topics_data")
        if version >= 11:
            if flexible:
                writer.compact_string(self.rack_id)
            else:
                writer.string(self.rack_id)
        tag_count: i64 = 0
        if version >= 12 and self.cluster_id is not None:
            tag_count += 1
        if self.replica_state is not None:
            if version <= 14:
                raise ValueError("this version has no replica_state")
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.cluster_id is not None:
            content = Writer()
            content.compact_nullable_string(self.cluster_id)
            writer.tagged_field(0, content)
        if version >= 15 and self.replica_state is not None:
            content = Writer()
            replica_state_ = self.replica_state
            if replica_state_ is not None:
                replica_state_.encode(content, version)
            writer.tagged_field(1, content)


def decode_fetch_request(reader: Reader, version: i64) -> FetchRequest:
    flexible = version >= 12
    cluster_id: str | None = None
    replica_id: i64 = -1
    replica_state: ReplicaState | None = None
    session_id: i64 = 0
    session_epoch: i64 = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    rack_id: str = ""
    if version <= 14:
        replica_id = reader.i32()
    max_wait_ms = reader.i32()
    min_bytes = reader.i32()
    max_bytes = reader.i32()
    isolation_level = reader.i8()
    if version >= 7:
        session_id = reader.i32()
        session_epoch = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_fetch_topic(reader, version))
    if version >= 7:
        count = reader.compact_array_length(3) if flexible else reader.array_length(6)
        if count < 0:
            raise MalformedData("forgotten_topics_data must not be null")
        for _ in range(count):
            forgotten_topics_data.append(_decode_forgotten_topic(reader, version))
    if version >= 11:
        rack_id = reader.compact_string() if flexible else reader.string()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0:
                cluster_id = reader.compact_nullable_string()
                reader.expect_position(end)
            elif tag == 1 and version >= 15:
                replica_state = _decode_replica_state(reader, version)
                reader.expect_position(end)
            else:
                reader.position = end
    return FetchRequest(
        cluster_id,
        replica_id,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )


class EpochEndOffset:
    def __init__(
        self,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.epoch)
        writer.i64(self.end_offset)
        writer.unsigned_varint(0)


def _decode_epoch_end_offset(reader: Reader, version: i64) -> EpochEndOffset:
    epoch = reader.i32()
    end_offset = reader.i64()
    reader.skip_tagged_fields()
    return EpochEndOffset(epoch, end_offset)


class LeaderIdAndEpoch:
    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.leader_id)
        writer.i32(self.leader_epoch)
        writer.unsigned_varint(0)


def _decode_leader_id_and_epoch(reader: Reader, version: i64) -> LeaderIdAndEpoch:
    leader_id = reader.i32()
    leader_epoch = reader.i32()
    reader.skip_tagged_fields()
    return LeaderIdAndEpoch(leader_id, leader_epoch)


class SnapshotId:
    def __init__(
        self,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i64(self.end_offset)
        writer.i32(self.epoch)
        writer.unsigned_varint(0)


def _decode_snapshot_id(reader: Reader, version: i64) -> SnapshotId:
    end_offset = reader.i64()
    epoch = reader.i32()
    reader.skip_tagged_fields()
    return SnapshotId(end_offset, epoch)


class AbortedTransaction:
    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        writer.i64(self.producer_id)
        writer.i64(self.first_offset)
        if flexible:
            writer.unsigned_varint(0)


def _decode_aborted_transaction(reader: Reader, version: i64) -> AbortedTransaction:
    flexible = version >= 12
    producer_id = reader.i64()
    first_offset = reader.i64()
    if flexible:
        reader.skip_tagged_fields()
    return AbortedTransaction(producer_id, first_offset)


class PartitionData:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | tuple[()] | None = (),
        preferred_read_replica: int = -1,
        records: Window | ChunkList | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.diverging_epoch: EpochEndOffset | None = diverging_epoch
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.snapshot_id: SnapshotId | None = snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = (
            [] if isinstance(aborted_transactions, tuple) else aborted_transactions
        )
        self.preferred_read_replica: int = preferred_read_replica
        self.records: Window | ChunkList | None = records

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        writer.i64(self.high_watermark)
        writer.i64(self.last_stable_offset)
        if version >= 5:
            writer.i64(self.log_start_offset)
        aborted_transactions_ = self.aborted_transactions
        if aborted_transactions_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(aborted_transactions_))
            else:
                writer.array_length(len(aborted_transactions_))
            for aborted_transactions_element in aborted_transactions_:
                aborted_transactions_element.encode(writer, version)
        if version >= 11:
            writer.i32(self.preferred_read_replica)
        elif self.preferred_read_replica != -1:
            raise ValueError("this version has no preferred_read_replica")
        if flexible:
            writer.compact_nullable_records(self.records)
        else:
            writer.nullable_records(self.records)
        tag_count: i64 = 0
        if self.diverging_epoch is not None:
            if version <= 11:
                raise ValueError("this version has no diverging_epoch")
            tag_count += 1
        if self.current_leader is not None:
            if version <= 11:
                raise ValueError("this version has no current_leader")
            tag_count += 1
        if self.snapshot_id is not None:
            if version <= 11:
                raise ValueError("this version has no snapshot_id")
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.diverging_epoch is not None:
            content = Writer()
            diverging_epoch_ = self.diverging_epoch
            if diverging_epoch_ is not None:
                diverging_epoch_.encode(content, version)
            writer.tagged_field(0, content)
        if self.current_leader is not None:
            content = Writer()
            current_leader_ = self.current_leader
            if current_leader_ is not None:
                current_leader_.encode(content, version)
            writer.tagged_field(1, content)
        if self.snapshot_id is not None:
            content = Writer()
            snapshot_id_ = self.snapshot_id
            if snapshot_id_ is not None:
                snapshot_id_.encode(content, version)
            writer.tagged_field(2, content)


def _decode_partition_data(reader: Reader, version: i64) -> PartitionData:
    flexible = version >= 12
    log_start_offset: i64 = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: i64 = -1
    partition_index = reader.i32()
    error_code = reader.i16()
    high_watermark = reader.i64()
    last_stable_offset = reader.i64()
    if version >= 5:
        log_start_offset = reader.i64()
    count = reader.compact_array_length(17) if flexible else reader.array_length(16)
    aborted_transactions = None
    if count >= 0:
        aborted_transactions = []
        for _ in range(count):
            aborted_transactions.append(_decode_aborted_transaction(reader, version))
    if version >= 11:
        preferred_read_replica = reader.i32()
    records = reader.compact_nullable_window() if flexible else reader.nullable_window()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0:
                diverging_epoch = _decode_epoch_end_offset(reader, version)
                reader.expect_position(end)
            elif tag == 1:
                current_leader = _decode_leader_id_and_epoch(reader, version)
                reader.expect_position(end)
            elif tag == 2:
                snapshot_id = _decode_snapshot_id(reader, version)
                reader.expect_position(end)
            else:
                reader.position = end
    return PartitionData(
        partition_index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        diverging_epoch,
        current_leader,
        snapshot_id,
        aborted_transactions,
        preferred_read_replica,
        records,
    )


class FetchableTopicResponse:
    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        if version <= 12:
            if flexible:
                writer.compact_string(self.topic)
            else:
                writer.string(self.topic)
        if version >= 13:
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


def _decode_fetchable_topic_response(reader: Reader, version: i64) -> FetchableTopicResponse:
    flexible = version >= 12
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    if version <= 12:
        topic = reader.compact_string() if flexible else reader.string()
    if version >= 13:
        topic_id = reader.uuid()
    count = reader.compact_array_length(37) if flexible else reader.array_length(30)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_partition_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return FetchableTopicResponse(topic, topic_id, partitions)


class NodeEndpoint:
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
        writer.i32(self.node_id)
        writer.compact_string(self.host)
        writer.i32(self.port)
        writer.compact_nullable_string(self.rack)
        writer.unsigned_varint(0)


def _decode_node_endpoint(reader: Reader, version: i64) -> NodeEndpoint:
    node_id = reader.i32()
    host = reader.compact_string()
    port = reader.i32()
    rack = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return NodeEndpoint(node_id, host, port, rack)


class FetchResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | tuple[()] = (),
        node_endpoints: list[NodeEndpoint] | tuple[()] = (),
        calendar_ms: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = (
            [] if isinstance(responses, tuple) else responses
        )
        self.node_endpoints: list[NodeEndpoint] = (
            [] if isinstance(node_endpoints, tuple) else node_endpoints
        )
        self.calendar_ms: int = calendar_ms

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 12
        writer.i32(self.throttle_time_ms)
        if version >= 7:
            writer.i16(self.error_code)
            writer.i32(self.session_id)
        elif self.session_id != 0:
            raise ValueError("this version has no session_id")
        responses_ = self.responses
        if flexible:
            writer.compact_array_length(len(responses_))
        else:
            writer.array_length(len(responses_))
        for responses_element in responses_:
            responses_element.encode(writer, version)
        tag_count: i64 = 0
        if self.node_endpoints:
            if version <= 15:
                raise ValueError("this version has no node_endpoints")
            tag_count += 1
        if version >= 12 and self.calendar_ms != -1:
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if version >= 16 and self.node_endpoints:
            content = Writer()
            node_endpoints_ = self.node_endpoints
            content.compact_array_length(len(node_endpoints_))
            for node_endpoints_element in node_endpoints_:
                node_endpoints_element.encode(content, version)
            writer.tagged_field(0, content)
        if self.calendar_ms != -1:
            content = Writer()
            content.i64(self.calendar_ms)
            writer.tagged_field(10000, content)


def decode_fetch_response(reader: Reader, version: i64) -> FetchResponse:
    flexible = version >= 12
    error_code: i64 = 0
    session_id: i64 = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    calendar_ms: i64 = -1
    throttle_time_ms = reader.i32()
    if version >= 7:
        error_code = reader.i16()
        session_id = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("responses must not be null")
    for _ in range(count):
        responses.append(_decode_fetchable_topic_response(reader, version))
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0 and version >= 16:
                count = reader.compact_array_length(11)
                if count < 0:
                    raise MalformedData("node_endpoints must not be null")
                for _ in range(count):
                    node_endpoints.append(_decode_node_endpoint(reader, version))
                reader.expect_position(end)
            elif tag == 10000:
                calendar_ms = reader.i64()
                reader.expect_position(end)
            else:
                reader.position = end
    return FetchResponse(
        throttle_time_ms, error_code, session_id, responses, node_endpoints, calendar_ms
    )
