"""JoinGroup, API key 11: versions 0 to 9, flexible from 6.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class JoinGroupRequestProtocol:
    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name: str = name
        self.metadata: bytes = metadata

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if flexible:
            writer.compact_bytes(self.metadata)
        else:
            writer.bytes_(self.metadata)
        if flexible:
            writer.unsigned_varint(0)


def _decode_join_group_request_protocol(reader: Reader, version: i64) -> JoinGroupRequestProtocol:
    flexible = version >= 6
    name = reader.compact_string() if flexible else reader.string()
    metadata = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    return JoinGroupRequestProtocol(name, metadata)


class JoinGroupRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | tuple[()] = (),
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = (
            [] if isinstance(protocols, tuple) else protocols
        )
        self.reason: str | None = reason

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.i32(self.session_timeout_ms)
        if version >= 1:
            writer.i32(self.rebalance_timeout_ms)
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 5:
            if flexible:
                writer.compact_nullable_string(self.group_instance_id)
            else:
                writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise ValueError("this version has no group_instance_id")
        if flexible:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        protocols_ = self.protocols
        if flexible:
            writer.compact_array_length(len(protocols_))
        else:
            writer.array_length(len(protocols_))
        for protocols_element in protocols_:
            protocols_element.encode(writer, version)
        if version >= 8:
            writer.compact_nullable_string(self.reason)
        if flexible:
            writer.unsigned_varint(0)


def decode_join_group_request(reader: Reader, version: i64) -> JoinGroupRequest:
    flexible = version >= 6
    rebalance_timeout_ms: i64 = -1
    group_instance_id: str | None = None
    protocols: list[JoinGroupRequestProtocol] = []
    reason: str | None = None
    group_id = reader.compact_string() if flexible else reader.string()
    session_timeout_ms = reader.i32()
    if version >= 1:
        rebalance_timeout_ms = reader.i32()
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 5:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    protocol_type = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("protocols must not be null")
    for _ in range(count):
        protocols.append(_decode_join_group_request_protocol(reader, version))
    if version >= 8:
        reason = reader.compact_nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        reason,
    )


class JoinGroupResponseMember:
    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 5:
            if flexible:
                writer.compact_nullable_string(self.group_instance_id)
            else:
                writer.nullable_string(self.group_instance_id)
        if flexible:
            writer.compact_bytes(self.metadata)
        else:
            writer.bytes_(self.metadata)
        if flexible:
            writer.unsigned_varint(0)


def _decode_join_group_response_member(reader: Reader, version: i64) -> JoinGroupResponseMember:
    flexible = version >= 6
    group_instance_id: str | None = None
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 5:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    metadata = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    return JoinGroupResponseMember(member_id, group_instance_id, metadata)


class JoinGroupResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if isinstance(members, tuple) else members

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 6
        if version >= 2:
            writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.i32(self.generation_id)
        if version >= 7:
            writer.compact_nullable_string(self.protocol_type)
        if self.protocol_name is None and version < 7:
            raise ValueError("protocol_name must not be None in this version")
        if flexible:
            writer.compact_nullable_string(self.protocol_name)
        else:
            writer.nullable_string(self.protocol_name)
        if flexible:
            writer.compact_string(self.leader)
        else:
            writer.string(self.leader)
        if version >= 9:
            writer.boolean(self.skip_assignment)
        elif self.skip_assignment:
            raise ValueError("this version has no skip_assignment")
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        members_ = self.members
        if flexible:
            writer.compact_array_length(len(members_))
        else:
            writer.array_length(len(members_))
        for members_element in members_:
            members_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_join_group_response(reader: Reader, version: i64) -> JoinGroupResponse:
    flexible = version >= 6
    throttle_time_ms: i64 = 0
    protocol_type: str | None = None
    skip_assignment: bool = False
    members: list[JoinGroupResponseMember] = []
    if version >= 2:
        throttle_time_ms = reader.i32()
    error_code = reader.i16()
    generation_id = reader.i32()
    if version >= 7:
        protocol_type = reader.compact_nullable_string()
    protocol_name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if protocol_name is None and version < 7:
        raise MalformedData("protocol_name must not be null")
    leader = reader.compact_string() if flexible else reader.string()
    if version >= 9:
        skip_assignment = reader.boolean()
    member_id = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(4) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("members must not be null")
    for _ in range(count):
        members.append(_decode_join_group_response_member(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        protocol_type,
        protocol_name,
        leader,
        skip_assignment,
        member_id,
        members,
    )
