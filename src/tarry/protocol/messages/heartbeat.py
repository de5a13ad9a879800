"""Heartbeat, API key 12: versions 0 to 4, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer


class HeartbeatRequest(Message):
    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id

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
        if flexible:
            writer.unsigned_varint(0)


def decode_heartbeat_request(reader: Reader, version: i64) -> HeartbeatRequest:
    flexible = version >= 4
    group_instance_id: str | None = None
    group_id = reader.compact_string() if flexible else reader.string()
    generation_id = reader.i32()
    member_id = reader.compact_string() if flexible else reader.string()
    if version >= 3:
        group_instance_id = (
            reader.compact_nullable_string() if flexible else reader.nullable_string()
        )
    if flexible:
        reader.skip_tagged_fields()
    return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id)


class HeartbeatResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        if flexible:
            writer.unsigned_varint(0)


def decode_heartbeat_response(reader: Reader, version: i64) -> HeartbeatResponse:
    flexible = version >= 4
    throttle_time_ms: i64 = 0
    if version >= 1:
        throttle_time_ms = reader.i32()
    error_code = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return HeartbeatResponse(throttle_time_ms, error_code)
