"""FindCoordinator, API key 10: versions 0 to 6, flexible from 3.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class FindCoordinatorRequest(Message):
    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | tuple[()] = (),
    ) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = (
            [] if isinstance(coordinator_keys, tuple) else coordinator_keys
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if version <= 3:
            if flexible:
                writer.compact_string(self.key)
            else:
                writer.string(self.key)
        elif self.key != "":
            raise ValueError("this version has no key")
        if version >= 1:
            writer.i8(self.key_type)
        elif self.key_type != 0:
            raise ValueError("this version has no key_type")
        if version >= 4:
            coordinator_keys_ = self.coordinator_keys
            writer.compact_array_length(len(coordinator_keys_))
            for coordinator_keys_element in coordinator_keys_:
                writer.compact_string(coordinator_keys_element)
        elif self.coordinator_keys:
            raise ValueError("this version has no coordinator_keys")
        if flexible:
            writer.unsigned_varint(0)


def decode_find_coordinator_request(reader: Reader, version: i64) -> FindCoordinatorRequest:
    flexible = version >= 3
    key: str = ""
    key_type: i64 = 0
    coordinator_keys: list[str] = []
    if version <= 3:
        key = reader.compact_string() if flexible else reader.string()
    if version >= 1:
        key_type = reader.i8()
    if version >= 4:
        count = reader.compact_array_length(1)
        if count < 0:
            raise MalformedData("coordinator_keys must not be null")
        for _ in range(count):
            coordinator_keys.append(reader.compact_string())
    if flexible:
        reader.skip_tagged_fields()
    return FindCoordinatorRequest(key, key_type, coordinator_keys)


class Coordinator:
    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.key)
        writer.i32(self.node_id)
        writer.compact_string(self.host)
        writer.i32(self.port)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unsigned_varint(0)


def _decode_coordinator(reader: Reader, version: i64) -> Coordinator:
    key = reader.compact_string()
    node_id = reader.i32()
    host = reader.compact_string()
    port = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return Coordinator(key, node_id, host, port, error_code, error_message)


class FindCoordinatorResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.coordinators: list[Coordinator] = (
            [] if isinstance(coordinators, tuple) else coordinators
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        if version <= 3:
            writer.i16(self.error_code)
        elif self.error_code != 0:
            raise ValueError("this version has no error_code")
        if 1 <= version <= 3:
            if flexible:
                writer.compact_nullable_string(self.error_message)
            else:
                writer.nullable_string(self.error_message)
        if version <= 3:
            writer.i32(self.node_id)
            if flexible:
                writer.compact_string(self.host)
            else:
                writer.string(self.host)
            writer.i32(self.port)
        elif self.node_id != 0:
            raise ValueError("this version has no node_id")
        elif self.host != "":
            raise ValueError("this version has no host")
        elif self.port != 0:
            raise ValueError("this version has no port")
        if version >= 4:
            coordinators_ = self.coordinators
            writer.compact_array_length(len(coordinators_))
            for coordinators_element in coordinators_:
                coordinators_element.encode(writer, version)
        elif self.coordinators:
            raise ValueError("this version has no coordinators")
        if flexible:
            writer.unsigned_varint(0)


def decode_find_coordinator_response(reader: Reader, version: i64) -> FindCoordinatorResponse:
    flexible = version >= 3
    throttle_time_ms: i64 = 0
    error_code: i64 = 0
    error_message: str | None = ""
    node_id: i64 = 0
    host: str = ""
    port: i64 = 0
    coordinators: list[Coordinator] = []
    if version >= 1:
        throttle_time_ms = reader.i32()
    if version <= 3:
        error_code = reader.i16()
    if 1 <= version <= 3:
        error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if version <= 3:
        node_id = reader.i32()
        host = reader.compact_string() if flexible else reader.string()
        port = reader.i32()
    if version >= 4:
        count = reader.compact_array_length(14)
        if count < 0:
            raise MalformedData("coordinators must not be null")
        for _ in range(count):
            coordinators.append(_decode_coordinator(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return FindCoordinatorResponse(
        throttle_time_ms, error_code, error_message, node_id, host, port, coordinators
    )
