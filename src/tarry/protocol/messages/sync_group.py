"""SyncGroup, API key 14: versions 0 to 5, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class SyncGroupRequestAssignment:
    def __init__(
        self,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if flexible:
            writer.compact_bytes(self.assignment)
        else:
            writer.bytes_(self.assignment)
        if flexible:
            writer.unsigned_varint(0)


def _decode_sync_group_request_assignment(
    reader: Reader, version: i64
) -> SyncGroupRequestAssignment:
    flexible = version >= 4
    member_id = reader.compact_string() if flexible else reader.string()
    assignment = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    return SyncGroupRequestAssignment(member_id, assignment)


class SyncGroupRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = (
            [] if isinstance(assignments, tuple) else assignments
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.i32(self.generation_id)
        if flexible:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 3:
            if flexible:
                writer.compact_nullable_string(self.group_instance_id)
            else:
                writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise ValueError("this version has no group_instance_id")
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
            writer.compact_nullable_string(self.protocol_name)
        assignments_ = self.assignments
        if flexible:
            writer.compact_array_length(len(assignments_))
        else:
            writer.array_length(len(assignments_))
        for assignments_element in assignments_:
            assignments_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_sync_group_request(reader: Reader, version: i64) -> SyncGroupRequest:
    flexible = version >= 4
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = []
    group_id = reader.compact_string() if flexible else reader.string()
    generation_id = reader.i32()
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 3:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    if version >= 5:
        protocol_type = reader.compact_nullable_string()
        protocol_name = reader.compact_nullable_string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("assignments must not be null")
    for _ in range(count):
        assignments.append(_decode_sync_group_request_assignment(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return SyncGroupRequest(
        group_id,
        generation_id,
        member_id,
        group_instance_id,
        protocol_type,
        protocol_name,
        assignments,
    )


class SyncGroupResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
            writer.compact_nullable_string(self.protocol_name)
        if flexible:
            writer.compact_bytes(self.assignment)
        else:
            writer.bytes_(self.assignment)
        if flexible:
            writer.unsigned_varint(0)


def decode_sync_group_response(reader: Reader, version: i64) -> SyncGroupResponse:
    flexible = version >= 4
    throttle_time_ms: i64 = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    if version >= 1:
        throttle_time_ms = reader.i32()
    error_code = reader.i16()
    if version >= 5:
        protocol_type = reader.compact_nullable_string()
        protocol_name = reader.compact_nullable_string()
    assignment = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    return SyncGroupResponse(throttle_time_ms, error_code, protocol_type, protocol_name, assignment)
