"""ConsumerGroupDescribe, API key 69: versions 0 to 1, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ConsumerGroupDescribeRequest(Message):
    def __init__(
        self,
        group_ids: list[str] | tuple[()] = (),
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if isinstance(group_ids, tuple) else group_ids
        self.include_authorized_operations: bool = include_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        group_ids_ = self.group_ids
        writer.compact_array_length(len(group_ids_))
        for group_ids_element in group_ids_:
            writer.compact_string(group_ids_element)
        writer.boolean(self.include_authorized_operations)
        writer.unsigned_varint(0)


def decode_consumer_group_describe_request(
    reader: Reader, version: i64
) -> ConsumerGroupDescribeRequest:
    group_ids: list[str] = []
    count = reader.compact_array_length(1)
    if count < 0:
        raise MalformedData("group_ids must not be null")
    for _ in range(count):
        group_ids.append(reader.compact_string())
    include_authorized_operations = reader.boolean()
    reader.skip_tagged_fields()
    return ConsumerGroupDescribeRequest(group_ids, include_authorized_operations)


class TopicPartitions:
    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] | tuple[()] = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        partitions_ = self.partitions
        writer.compact_array_length(len(partitions_))
        for partitions_element in partitions_:
            writer.i32(partitions_element)
        writer.unsigned_varint(0)


def _decode_topic_partitions(reader: Reader, version: i64) -> TopicPartitions:
    partitions: list[int] = []
    topic_id = reader.uuid()
    topic_name = reader.compact_string()
    count = reader.compact_array_length(4)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(reader.i32())
    reader.skip_tagged_fields()
    return TopicPartitions(topic_id, topic_name, partitions)


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
    count = reader.compact_array_length(19)
    if count < 0:
        raise MalformedData("topic_partitions must not be null")
    for _ in range(count):
        topic_partitions.append(_decode_topic_partitions(reader, version))
    reader.skip_tagged_fields()
    return Assignment(topic_partitions)


class Member:
    def __init__(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | tuple[()] = (),
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id: str = member_id
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = (
            [] if isinstance(subscribed_topic_names, tuple) else subscribed_topic_names
        )
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = (
            Assignment() if target_assignment is None else target_assignment
        )
        self.member_type: int = member_type

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.member_id)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.i32(self.member_epoch)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        subscribed_topic_names_ = self.subscribed_topic_names
        writer.compact_array_length(len(subscribed_topic_names_))
        for subscribed_topic_names_element in subscribed_topic_names_:
            writer.compact_string(subscribed_topic_names_element)
        writer.compact_nullable_string(self.subscribed_topic_regex)
        self.assignment.encode(writer, version)
        self.target_assignment.encode(writer, version)
        if version >= 1:
            writer.i8(self.member_type)
        writer.unsigned_varint(0)


def _decode_member(reader: Reader, version: i64) -> Member:
    subscribed_topic_names: list[str] = []
    member_type: i64 = -1
    member_id = reader.compact_string()
    instance_id = reader.compact_nullable_string()
    rack_id = reader.compact_nullable_string()
    member_epoch = reader.i32()
    client_id = reader.compact_string()
    client_host = reader.compact_string()
    count = reader.compact_array_length(1)
    if count < 0:
        raise MalformedData("subscribed_topic_names must not be null")
    for _ in range(count):
        subscribed_topic_names.append(reader.compact_string())
    subscribed_topic_regex = reader.compact_nullable_string()
    assignment = _decode_assignment(reader, version)
    target_assignment = _decode_assignment(reader, version)
    if version >= 1:
        member_type = reader.i8()
    reader.skip_tagged_fields()
    return Member(
        member_id,
        instance_id,
        rack_id,
        member_epoch,
        client_id,
        client_host,
        subscribed_topic_names,
        subscribed_topic_regex,
        assignment,
        target_assignment,
        member_type,
    )


class DescribedGroup:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | tuple[()] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[Member] = [] if isinstance(members, tuple) else members
        self.authorized_operations: int = authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.group_id)
        writer.compact_string(self.group_state)
        writer.i32(self.group_epoch)
        writer.i32(self.assignment_epoch)
        writer.compact_string(self.assignor_name)
        members_ = self.members
        writer.compact_array_length(len(members_))
        for members_element in members_:
            members_element.encode(writer, version)
        writer.i32(self.authorized_operations)
        writer.unsigned_varint(0)


def _decode_described_group(reader: Reader, version: i64) -> DescribedGroup:
    members: list[Member] = []
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    group_id = reader.compact_string()
    group_state = reader.compact_string()
    group_epoch = reader.i32()
    assignment_epoch = reader.i32()
    assignor_name = reader.compact_string()
    count = reader.compact_array_length(16)
    if count < 0:
        raise MalformedData("members must not be null")
    for _ in range(count):
        members.append(_decode_member(reader, version))
    authorized_operations = reader.i32()
    reader.skip_tagged_fields()
    return DescribedGroup(
        error_code,
        error_message,
        group_id,
        group_state,
        group_epoch,
        assignment_epoch,
        assignor_name,
        members,
        authorized_operations,
    )


class ConsumerGroupDescribeResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if isinstance(groups, tuple) else groups

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        groups_ = self.groups
        writer.compact_array_length(len(groups_))
        for groups_element in groups_:
            groups_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_consumer_group_describe_response(
    reader: Reader, version: i64
) -> ConsumerGroupDescribeResponse:
    groups: list[DescribedGroup] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(20)
    if count < 0:
        raise MalformedData("groups must not be null")
    for _ in range(count):
        groups.append(_decode_described_group(reader, version))
    reader.skip_tagged_fields()
    return ConsumerGroupDescribeResponse(throttle_time_ms, groups)
