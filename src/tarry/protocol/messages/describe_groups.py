"""DescribeGroups, API key 15: versions 0 to 6, flexible from 5.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DescribeGroupsRequest(Message):
    def __init__(
        self,
        groups: list[str] | tuple[()] = (),
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups: list[str] = [] if isinstance(groups, tuple) else groups
        self.include_authorized_operations: bool = include_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        groups_ = self.groups
        if flexible:
            writer.compact_array_length(len(groups_))
        else:
            writer.array_length(len(groups_))
        for groups_element in groups_:
            if flexible:
                writer.compact_string(groups_element)
            else:
                writer.string(groups_element)
        if version >= 3:
            writer.boolean(self.include_authorized_operations)
        elif self.include_authorized_operations:
            raise ValueError("this version has no include_authorized_operations")
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_groups_request(reader: Reader, version: i64) -> DescribeGroupsRequest:
    flexible = version >= 5
    groups: list[str] = []
    include_authorized_operations: bool = False
    count = reader.compact_array_length(1) if flexible else reader.array_length(2)
    if count < 0:
        raise MalformedData("groups must not be null")
    for _ in range(count):
        groups.append(reader.compact_string() if flexible else reader.string())
    if version >= 3:
        include_authorized_operations = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeGroupsRequest(groups, include_authorized_operations)


class DescribedGroupMember:
    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            if flexible:
                writer.compact_nullable_string(self.group_instance_id)
            else:
                writer.nullable_string(self.group_instance_id)
        if flexible:
            writer.compact_string(self.client_id)
        else:
            writer.string(self.client_id)
        if flexible:
            writer.compact_string(self.client_host)
        else:
            writer.string(self.client_host)
        if flexible:
            writer.compact_bytes(self.member_metadata)
        else:
            writer.bytes_(self.member_metadata)
        if flexible:
            writer.compact_bytes(self.member_assignment)
        else:
            writer.bytes_(self.member_assignment)
        if flexible:
            writer.unsigned_varint(0)


def _decode_described_group_member(reader: Reader, version: i64) -> DescribedGroupMember:
    flexible = version >= 5
    group_instance_id: str | None = None
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 4:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    client_id = reader.compact_string() if flexible else reader.string()
    client_host = reader.compact_string() if flexible else reader.string()
    member_metadata = reader.compact_bytes() if flexible else reader.bytes_()
    member_assignment = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    return DescribedGroupMember(
        member_id, group_instance_id, client_id, client_host, member_metadata, member_assignment
    )


class DescribedGroup:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | tuple[()] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if isinstance(members, tuple) else members
        self.authorized_operations: int = authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        writer.i16(self.error_code)
        if version >= 6:
            writer.compact_nullable_string(self.error_message)
        elif self.error_message is not None:
            raise ValueError("this version has no error_message")
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if flexible:
            writer.compact_string(self.group_state)
        else:
            writer.string(self.group_state)
        if flexible:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if flexible:
            writer.compact_string(self.protocol_data)
        else:
            writer.string(self.protocol_data)
        members_ = self.members
        if flexible:
            writer.compact_array_length(len(members_))
        else:
            writer.array_length(len(members_))
        for members_element in members_:
            members_element.encode(writer, version)
        if version >= 3:
            writer.i32(self.authorized_operations)
        elif self.authorized_operations != -2147483648:
            raise ValueError("this version has no authorized_operations")
        if flexible:
            writer.unsigned_varint(0)


def _decode_described_group(reader: Reader, version: i64) -> DescribedGroup:
    flexible = version >= 5
    error_message: str | None = None
    members: list[DescribedGroupMember] = []
    authorized_operations: i64 = -2147483648
    error_code = reader.i16()
    if version >= 6:
        error_message = reader.compact_nullable_string()
    group_id = reader.compact_string() if flexible else reader.string()
    group_state = reader.compact_string() if flexible else reader.string()
    protocol_type = reader.compact_string() if flexible else reader.string()
    protocol_data = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(7) if flexible else reader.array_length(14)
    if count < 0:
        raise MalformedData("members must not be null")
    for _ in range(count):
        members.append(_decode_described_group_member(reader, version))
    if version >= 3:
        authorized_operations = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return DescribedGroup(
        error_code,
        error_message,
        group_id,
        group_state,
        protocol_type,
        protocol_data,
        members,
        authorized_operations,
    )


class DescribeGroupsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if isinstance(groups, tuple) else groups

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        groups_ = self.groups
        if flexible:
            writer.compact_array_length(len(groups_))
        else:
            writer.array_length(len(groups_))
        for groups_element in groups_:
            groups_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_groups_response(reader: Reader, version: i64) -> DescribeGroupsResponse:
    flexible = version >= 5
    throttle_time_ms: i64 = 0
    groups: list[DescribedGroup] = []
    if version >= 1:
        throttle_time_ms = reader.i32()
    count = reader.compact_array_length(12) if flexible else reader.array_length(14)
    if count < 0:
        raise MalformedData("groups must not be null")
    for _ in range(count):
        groups.append(_decode_described_group(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeGroupsResponse(throttle_time_ms, groups)
