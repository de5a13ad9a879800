"""Produce, API key 0: versions 3 to 13, flexible from 9.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader, Window
from tarry.wire.writer import ChunkList, Writer


class PartitionProduceData:
    def __init__(
        self,
        index: int = 0,
        records: Window | ChunkList | None = None,
    ) -> None:
        self.index: int = index
        self.records: Window | ChunkList | None = records

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i32(self.index)
        if flexible:
            writer.compact_nullable_records(self.records)
        else:
            writer.nullable_records(self.records)
        if flexible:
            writer.unsigned_varint(0)


def _decode_partition_produce_data(reader: Reader, version: i64) -> PartitionProduceData:
    flexible = version >= 9
    index = reader.i32()
    records = reader.compact_nullable_window() if flexible else reader.nullable_window()
    if flexible:
        reader.skip_tagged_fields()
    return PartitionProduceData(index, records)


class TopicProduceData:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_data: list[PartitionProduceData] = (
            [] if isinstance(partition_data, tuple) else partition_data
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if version <= 12:
            if flexible:
                writer.compact_string(self.name)
            else:
                writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        partition_data_ = self.partition_data
        if flexible:
            writer.compact_array_length(len(partition_data_))
        else:
            writer.array_length(len(partition_data_))
        for partition_data_element in partition_data_:
            partition_data_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_topic_produce_data(reader: Reader, version: i64) -> TopicProduceData:
    flexible = version >= 9
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_data: list[PartitionProduceData] = []
    if version <= 12:
        name = reader.compact_string() if flexible else reader.string()
    if version >= 13:
        topic_id = reader.uuid()
    count = reader.compact_array_length(6) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("partition_data must not be null")
    for _ in range(count):
        partition_data.append(_decode_partition_produce_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return TopicProduceData(name, topic_id, partition_data)


class ProduceRequest(Message):
    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | tuple[()] = (),
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = (
            [] if isinstance(topic_data, tuple) else topic_data
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if flexible:
            writer.compact_nullable_string(self.transactional_id)
        else:
            writer.nullable_string(self.transactional_id)
        writer.i16(self.acks)
        writer.i32(self.timeout_ms)
        topic_data_ = self.topic_data
        if flexible:
            writer.compact_array_length(len(topic_data_))
        else:
            writer.array_length(len(topic_data_))
        for topic_data_element in topic_data_:
            topic_data_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_produce_request(reader: Reader, version: i64) -> ProduceRequest:
    flexible = version >= 9
    topic_data: list[TopicProduceData] = []
    transactional_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    acks = reader.i16()
    timeout_ms = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topic_data must not be null")
    for _ in range(count):
        topic_data.append(_decode_topic_produce_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data)


class BatchIndexAndErrorMessage:
    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i32(self.batch_index)
        if flexible:
            writer.compact_nullable_string(self.batch_index_error_message)
        else:
            writer.nullable_string(self.batch_index_error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_batch_index_and_error_message(
    reader: Reader, version: i64
) -> BatchIndexAndErrorMessage:
    flexible = version >= 9
    batch_index = reader.i32()
    batch_index_error_message = (
        reader.compact_nullable_string() if flexible else reader.nullable_string()
    )
    if flexible:
        reader.skip_tagged_fields()
    return BatchIndexAndErrorMessage(batch_index, batch_index_error_message)


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


class PartitionProduceResponse:
    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | tuple[()] = (),
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        s_offset: int = -1,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = (
            [] if isinstance(record_errors, tuple) else record_errors
        )
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.s_offset: int = s_offset

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        writer.i32(self.index)
        writer.i16(self.error_code)
        writer.i64(self.base_offset)
        writer.i64(self.log_append_time_ms)
        if version >= 5:
            writer.i64(self.log_start_offset)
        if version >= 8:
            record_errors_ = self.record_errors
            if flexible:
                writer.compact_array_length(len(record_errors_))
            else:
                writer.array_length(len(record_errors_))
            for record_errors_element in record_errors_:
                record_errors_element.encode(writer, version)
            if flexible:
                writer.compact_nullable_string(self.error_message)
            else:
                writer.nullable_string(self.error_message)
        tag_count: i64 = 0
        if self.current_leader is not None:
            if version <= 9:
                raise ValueError("this version has no current_leader")
            tag_count += 1
        if version >= 9 and self.s_offset != -1:
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if version >= 10 and self.current_leader is not None:
            content = Writer()
            current_leader_ = self.current_leader
            if current_leader_ is not None:
                current_leader_.encode(content, version)
            writer.tagged_field(0, content)
        if self.s_offset != -1:
            content = Writer()
            content.i64(self.s_offset)
            writer.tagged_field(10000, content)


def _decode_partition_produce_response(reader: Reader, version: i64) -> PartitionProduceResponse:
    flexible = version >= 9
    log_start_offset: i64 = -1
    record_errors: list[BatchIndexAndErrorMessage] = []
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch | None = None
    s_offset: i64 = -1
    index = reader.i32()
    error_code = reader.i16()
    base_offset = reader.i64()
    log_append_time_ms = reader.i64()
    if version >= 5:
        log_start_offset = reader.i64()
    if version >= 8:
        count = reader.compact_array_length(6) if flexible else reader.array_length(6)
        if count < 0:
            raise MalformedData("record_errors must not be null")
        for _ in range(count):
            record_errors.append(_decode_batch_index_and_error_message(reader, version))
        error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0 and version >= 10:
                current_leader = _decode_leader_id_and_epoch(reader, version)
                reader.expect_position(end)
            elif tag == 10000:
                s_offset = reader.i64()
                reader.expect_position(end)
            else:
                reader.position = end
    return PartitionProduceResponse(
        index,
        error_code,
        base_offset,
        log_append_time_ms,
        log_start_offset,
        record_errors,
        error_message,
        current_leader,
        s_offset,
    )


class TopicProduceResponse:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if isinstance(partition_responses, tuple) else partition_responses
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        if version <= 12:
            if flexible:
                writer.compact_string(self.name)
            else:
                writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        partition_responses_ = self.partition_responses
        if flexible:
            writer.compact_array_length(len(partition_responses_))
        else:
            writer.array_length(len(partition_responses_))
        for partition_responses_element in partition_responses_:
            partition_responses_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_topic_produce_response(reader: Reader, version: i64) -> TopicProduceResponse:
    flexible = version >= 9
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []
    if version <= 12:
        name = reader.compact_string() if flexible else reader.string()
    if version >= 13:
        topic_id = reader.uuid()
    count = reader.compact_array_length(33) if flexible else reader.array_length(22)
    if count < 0:
        raise MalformedData("partition_responses must not be null")
    for _ in range(count):
        partition_responses.append(_decode_partition_produce_response(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return TopicProduceResponse(name, topic_id, partition_responses)


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


class ProduceResponse(Message):
    def __init__(
        self,
        responses: list[TopicProduceResponse] | tuple[()] = (),
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | tuple[()] = (),
    ) -> None:
        self.responses: list[TopicProduceResponse] = (
            [] if isinstance(responses, tuple) else responses
        )
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = (
            [] if isinstance(node_endpoints, tuple) else node_endpoints
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 9
        responses_ = self.responses
        if flexible:
            writer.compact_array_length(len(responses_))
        else:
            writer.array_length(len(responses_))
        for responses_element in responses_:
            responses_element.encode(writer, version)
        writer.i32(self.throttle_time_ms)
        tag_count: i64 = 0
        if self.node_endpoints:
            if version <= 9:
                raise ValueError("this version has no node_endpoints")
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if version >= 10 and self.node_endpoints:
            content = Writer()
            node_endpoints_ = self.node_endpoints
            content.compact_array_length(len(node_endpoints_))
            for node_endpoints_element in node_endpoints_:
                node_endpoints_element.encode(content, version)
            writer.tagged_field(0, content)


def decode_produce_response(reader: Reader, version: i64) -> ProduceResponse:
    flexible = version >= 9
    responses: list[TopicProduceResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("responses must not be null")
    for _ in range(count):
        responses.append(_decode_topic_produce_response(reader, version))
    throttle_time_ms = reader.i32()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0 and version >= 10:
                count = reader.compact_array_length(11)
                if count < 0:
                    raise MalformedData("node_endpoints must not be null")
                for _ in range(count):
                    node_endpoints.append(_decode_node_endpoint(reader, version))
                reader.expect_position(end)
            else:
                reader.position = end
    return ProduceResponse(responses, throttle_time_ms, node_endpoints)
