"""OffsetForLeaderEpoch, API key 23: versions 2 to 4, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class OffsetForLeaderPartition:
    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        writer.i32(self.partition)
        writer.i32(self.current_leader_epoch)
        writer.i32(self.leader_epoch)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_for_leader_partition(reader: Reader, version: i64) -> OffsetForLeaderPartition:
    flexible = version >= 4
    partition = reader.i32()
    current_leader_epoch = reader.i32()
    leader_epoch = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return OffsetForLeaderPartition(partition, current_leader_epoch, leader_epoch)


class OffsetForLeaderTopic:
    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_for_leader_topic(reader: Reader, version: i64) -> OffsetForLeaderTopic:
    flexible = version >= 4
    partitions: list[OffsetForLeaderPartition] = []
    topic = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(13) if flexible else reader.array_length(12)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_offset_for_leader_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetForLeaderTopic(topic, partitions)


class OffsetForLeaderEpochRequest(Message):
    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | tuple[()] = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if version >= 3:
            writer.i32(self.replica_id)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_offset_for_leader_epoch_request(
    reader: Reader, version: i64
) -> OffsetForLeaderEpochRequest:
    flexible = version >= 4
    replica_id: i64 = -2
    topics: list[OffsetForLeaderTopic] = []
    if version >= 3:
        replica_id = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_for_leader_topic(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetForLeaderEpochRequest(replica_id, topics)


class EpochEndOffset:
    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        writer.i16(self.error_code)
        writer.i32(self.partition)
        writer.i32(self.leader_epoch)
        writer.i64(self.end_offset)
        if flexible:
            writer.unsigned_varint(0)


def _decode_epoch_end_offset(reader: Reader, version: i64) -> EpochEndOffset:
    flexible = version >= 4
    error_code = reader.i16()
    partition = reader.i32()
    leader_epoch = reader.i32()
    end_offset = reader.i64()
    if flexible:
        reader.skip_tagged_fields()
    return EpochEndOffset(error_code, partition, leader_epoch, end_offset)


class OffsetForLeaderTopicResult:
    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_offset_for_leader_topic_result(
    reader: Reader, version: i64
) -> OffsetForLeaderTopicResult:
    flexible = version >= 4
    partitions: list[EpochEndOffset] = []
    topic = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(19) if flexible else reader.array_length(18)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_epoch_end_offset(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetForLeaderTopicResult(topic, partitions)


class OffsetForLeaderEpochResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
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


def decode_offset_for_leader_epoch_response(
    reader: Reader, version: i64
) -> OffsetForLeaderEpochResponse:
    flexible = version >= 4
    topics: list[OffsetForLeaderTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_offset_for_leader_topic_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return OffsetForLeaderEpochResponse(throttle_time_ms, topics)
