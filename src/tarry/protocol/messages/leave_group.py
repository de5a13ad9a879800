"""LeaveGroup, API key 13: versions 0 to 5, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class MemberIdentity:
    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if flexible:
            writer.compact_nullable_string(self.group_instance_id)
        else:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.compact_nullable_string(self.reason)
        if flexible:
            writer.unsigned_varint(0)


def _decode_member_identity(reader: Reader, version: i64) -> MemberIdentity:
    flexible = version >= 4
    reason: str | None = None
    member_id = reader.compact_string() if flexible else reader.string()
    group_instance_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if version >= 5:
        reason = reader.compact_nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return MemberIdentity(member_id, group_instance_id, reason)


class LeaveGroupRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: list[MemberIdentity] = [] if isinstance(members, tuple) else members

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version <= 2:
            writer.string(self.member_id)
        elif self.member_id != "":
            raise ValueError("this version has no member_id")
        if version >= 3:
            members_ = self.members
            if flexible:
                writer.compact_array_length(len(members_))
            else:
                writer.array_length(len(members_))
            for members_element in members_:
                members_element.encode(writer, version)
        elif self.members:
            raise ValueError("this version has no members")
        if flexible:
            writer.unsigned_varint(0)


def decode_leave_group_request(reader: Reader, version: i64) -> LeaveGroupRequest:
    flexible = version >= 4
    member_id: str = ""
    members: list[MemberIdentity] = []
    group_id = reader.compact_string() if flexible else reader.string()
    if version <= 2:
        member_id = reader.string()
    if version >= 3:
        count = reader.compact_array_length(3) if flexible else reader.array_length(4)
        if count < 0:
            raise MalformedData("members must not be null")
        for _ in range(count):
            members.append(_decode_member_identity(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return LeaveGroupRequest(group_id, member_id, members)


class MemberResponse:
    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if flexible:
            writer.compact_nullable_string(self.group_instance_id)
        else:
            writer.nullable_string(self.group_instance_id)
        writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def _decode_member_response(reader: Reader, version: i64) -> MemberResponse:
    flexible = version >= 4
    member_id = reader.compact_string() if flexible else reader.string()
    group_instance_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return MemberResponse(member_id, group_instance_id, error_code)


class LeaveGroupResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if isinstance(members, tuple) else members

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        if version >= 3:
            members_ = self.members
            if flexible:
                writer.compact_array_length(len(members_))
            else:
                writer.array_length(len(members_))
            for members_element in members_:
                members_element.encode(writer, version)
        elif self.members:
            raise ValueError("this version has no members")
        if flexible:
            writer.unsigned_varint(0)


def decode_leave_group_response(reader: Reader, version: i64) -> LeaveGroupResponse:
    flexible = version >= 4
    throttle_time_ms: i64 = 0
    members: list[MemberResponse] = []
    if version >= 1:
        throttle_time_ms = reader.i32()
    error_code = reader.i16()
    if version >= 3:
        count = reader.compact_array_length(5) if flexible else reader.array_length(6)
        if count < 0:
            raise MalformedData("members must not be null")
        for _ in range(count):
            members.append(_decode_member_response(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return LeaveGroupResponse(throttle_time_ms, error_code, members)
