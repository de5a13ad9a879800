"""DescribeProducers, API key 61: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class TopicRequest:
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


def _decode_topic_request(reader: Reader, version: i64) -> TopicRequest:
    partition_indexes: list[int] = []
    name = reader.compact_string()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("partition_indexes must not be null")
    for _ in range(count):
        partition_indexes.append(reader.i32())
    reader.skip_tagged_fields()
    return TopicRequest(name, partition_indexes)


class DescribeProducersRequest(Message):
    def __init__(
        self,
        topics: list[TopicRequest] | tuple[()] = (),
    ) -> None:
        self.topics: list[TopicRequest] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_producers_request(reader: Reader, version: i64) -> DescribeProducersRequest:
    topics: list[TopicRequest] = []
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_topic_request(reader, version))
    reader.skip_tagged_fields()
    return DescribeProducersRequest(topics)


class ProducerState:
    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i64(self.producer_id)
        writer.i32(self.producer_epoch)
        writer.i32(self.last_sequence)
        writer.i64(self.last_timestamp)
        writer.i32(self.coordinator_epoch)
        writer.i64(self.current_txn_start_offset)
        writer.unsigned_varint(0)


def _decode_producer_state(reader: Reader, version: i64) -> ProducerState:
    producer_id = reader.i64()
    producer_epoch = reader.i32()
    last_sequence = reader.i32()
    last_timestamp = reader.i64()
    coordinator_epoch = reader.i32()
    current_txn_start_offset = reader.i64()
    reader.skip_tagged_fields()
    return ProducerState(
        producer_id,
        producer_epoch,
        last_sequence,
        last_timestamp,
        coordinator_epoch,
        current_txn_start_offset,
    )


class PartitionResponse:
    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = (
            [] if isinstance(active_producers, tuple) else active_producers
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.partition_index)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        active_producers_ = self.active_producers
        writer.compact_array_length(len(active_producers_))
        for active_producers_element in active_producers_:
            active_producers_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_partition_response(reader: Reader, version: i64) -> PartitionResponse:
    active_producers: list[ProducerState] = []
    partition_index = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(37)
    if count < 0:
        raise MalformedData("active_producers must not be null")
    for _ in range(count):
        active_producers.append(_decode_producer_state(reader, version))
    reader.skip_tagged_fields()
    return PartitionResponse(partition_index, error_code, error_message, active_producers)


class TopicResponse:
    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionResponse] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionResponse] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_topic_response(reader: Reader, version: i64) -> TopicResponse:
    partitions: list[PartitionResponse] = []
    name = reader.compact_string()
    count = reader.compact_array_length(9)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_partition_response(reader, version))
    reader.skip_tagged_fields()
    return TopicResponse(name, partitions)


class DescribeProducersResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TopicResponse] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        writer.compact_array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_producers_response(reader: Reader, version: i64) -> DescribeProducersResponse:
    topics: list[TopicResponse] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_topic_response(reader, version))
    reader.skip_tagged_fields()
    return DescribeProducersResponse(throttle_time_ms, topics)
