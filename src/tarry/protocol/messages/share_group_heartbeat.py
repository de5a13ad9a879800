"""ShareGroupHeartbeat, API key 76: versions 1 to 1, flexible from 1.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ShareGroupHeartbeatRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.i32(self.member_epoch)
        writer.compact_nullable_string(self.rack_id)
        subscribed_topic_names_ = self.subscribed_topic_names
        if subscribed_topic_names_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(subscribed_topic_names_))
            for subscribed_topic_names_element in subscribed_topic_names_:
                writer.compact_string(subscribed_topic_names_element)
        writer.unsigned_varint(0)


def decode_share_group_heartbeat_request(
    reader: Reader, version: i64
) -> ShareGroupHeartbeatRequest:
    subscribed_topic_names: list[str] | None = None
    group_id = reader.compact_string()
    member_id = reader.compact_string()
    member_epoch = reader.i32()
    rack_id = reader.compact_nullable_string()
    count = reader.compact_array_length(1)
    subscribed_topic_names = None
    if count >= 0:
        subscribed_topic_names = []
        for _ in range(count):
            subscribed_topic_names.append(reader.compact_string())
    reader.skip_tagged_fields()
    return ShareGroupHeartbeatRequest(
        group_id, member_id, member_epoch, rack_id, subscribed_topic_names
    )


class TopicPartitions:
    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | tuple[()] = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        writer.uuid(self.topic_id)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            writer.i32(partitions_element)
        writer.unsigned_varint(0)


def _decode_topic_partitions(reader: Reader, version: i64) -> TopicPartitions:
    partitions: list[int] = []
    topic_id = reader.uuid()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(reader.i32())
    reader.skip_tagged_fields()
    return TopicPartitions(topic_id, partitions)


class Assignment:
    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | tuple[()] = (),
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = (
            [] if isinstance(topic_partitions, tuple) else topic_partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        topic_partitions_ = self.topic_partitions
        writer.compact_array_length(len(topic_partitions_))
        for topic_partitions_element in topic_partitions_:
            topic_partitions_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_assignment(reader: Reader, version: i64) -> Assignment:
    topic_partitions: list[TopicPartitions] = []
    count = reader.compact_array_length(18)
    if count < 0:
        raise MalformedData("topic_partitions must not be null")
    for _ in range(count):
        topic_partitions.append(_decode_topic_partitions(reader, version))
    reader.skip_tagged_fields()
    return Assignment(topic_partitions)


class ShareGroupHeartbeatResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_nullable_string(self.member_id)
        writer.i32(self.member_epoch)
        writer.i32(self.heartbeat_interval_ms)
        assignment_ = self.assignment
        if assignment_ is None:
            writer.i8(-1)
        else:
            writer.i8(1)
            assignment_.encode(writer, version)
        writer.unsigned_varint(0)


def decode_share_group_heartbeat_response(
    reader: Reader, version: i64
) -> ShareGroupHeartbeatResponse:
    assignment: Assignment | None = None
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    member_id = reader.compact_nullable_string()
    member_epoch = reader.i32()
    heartbeat_interval_ms = reader.i32()
    if reader.i8() >= 0:
        assignment = _decode_assignment(reader, version)
    reader.skip_tagged_fields()
    return ShareGroupHeartbeatResponse(
        throttle_time_ms,
        error_code,
        error_message,
        member_id,
        member_epoch,
        heartbeat_interval_ms,
        assignment,
    )
