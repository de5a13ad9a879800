"""CreateAcls, API key 30: versions 1 to 3, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class AclCreation:
    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i8(self.resource_type)
        if flexible:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.i8(self.resource_pattern_type)
        if flexible:
            writer.compact_string(self.principal)
        else:
            writer.string(self.principal)
        if flexible:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.i8(self.operation)
        writer.i8(self.permission_type)
        if flexible:
            writer.unsigned_varint(0)


def _decode_acl_creation(reader: Reader, version: i64) -> AclCreation:
    flexible = version >= 2
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    resource_pattern_type = reader.i8()
    principal = reader.compact_string() if flexible else reader.string()
    host = reader.compact_string() if flexible else reader.string()
    operation = reader.i8()
    permission_type = reader.i8()
    if flexible:
        reader.skip_tagged_fields()
    return AclCreation(
        resource_type,
        resource_name,
        resource_pattern_type,
        principal,
        host,
        operation,
        permission_type,
    )


class CreateAclsRequest(Message):
    def __init__(
        self,
        creations: list[AclCreation] | tuple[()] = (),
    ) -> None:
        self.creations: list[AclCreation] = [] if isinstance(creations, tuple) else creations

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        creations_ = self.creations
        if flexible:
            writer.compact_array_length(len(creations_))
        else:
            writer.array_length(len(creations_))
        for creations_element in creations_:
            creations_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_create_acls_request(reader: Reader, version: i64) -> CreateAclsRequest:
    flexible = version >= 2
    creations: list[AclCreation] = []
    count = reader.compact_array_length(8) if flexible else reader.array_length(10)
    if count < 0:
        raise MalformedData("creations must not be null")
    for _ in range(count):
        creations.append(_decode_acl_creation(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreateAclsRequest(creations)


class AclCreationResult:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_acl_creation_result(reader: Reader, version: i64) -> AclCreationResult:
    flexible = version >= 2
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return AclCreationResult(error_code, error_message)


class CreateAclsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if isinstance(results, tuple) else results

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        results_ = self.results
        if flexible:
            writer.compact_array_length(len(results_))
        else:
            writer.array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_create_acls_response(reader: Reader, version: i64) -> CreateAclsResponse:
    flexible = version >= 2
    results: list[AclCreationResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_acl_creation_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreateAclsResponse(throttle_time_ms, results)
