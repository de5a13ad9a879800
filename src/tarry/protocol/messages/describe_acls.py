"""DescribeAcls, API key 29: versions 1 to 3, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DescribeAclsRequest(Message):
    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i8(self.resource_type_filter)
        if flexible:
            writer.compact_nullable_string(self.resource_name_filter)
        else:
            writer.nullable_string(self.resource_name_filter)
        writer.i8(self.pattern_type_filter)
        if flexible:
            writer.compact_nullable_string(self.principal_filter)
        else:
            writer.nullable_string(self.principal_filter)
        if flexible:
            writer.compact_nullable_string(self.host_filter)
        else:
            writer.nullable_string(self.host_filter)
        writer.i8(self.operation)
        writer.i8(self.permission_type)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_acls_request(reader: Reader, version: i64) -> DescribeAclsRequest:
    flexible = version >= 2
    resource_type_filter = reader.i8()
    resource_name_filter = (
        reader.compact_nullable_string() if flexible else reader.nullable_string()
    )
    pattern_type_filter = reader.i8()
    principal_filter = reader.compact_nullable_string() if flexible else reader.nullable_string()
    host_filter = reader.compact_nullable_string() if flexible else reader.nullable_string()
    operation = reader.i8()
    permission_type = reader.i8()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeAclsRequest(
        resource_type_filter,
        resource_name_filter,
        pattern_type_filter,
        principal_filter,
        host_filter,
        operation,
        permission_type,
    )


class AclDescription:
    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
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


def _decode_acl_description(reader: Reader, version: i64) -> AclDescription:
    flexible = version >= 2
    principal = reader.compact_string() if flexible else reader.string()
    host = reader.compact_string() if flexible else reader.string()
    operation = reader.i8()
    permission_type = reader.i8()
    if flexible:
        reader.skip_tagged_fields()
    return AclDescription(principal, host, operation, permission_type)


class DescribeAclsResource:
    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | tuple[()] = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if isinstance(acls, tuple) else acls

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i8(self.resource_type)
        if flexible:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.i8(self.pattern_type)
        acls_ = self.acls
        if flexible:
            writer.compact_array_length(len(acls_))
        else:
            writer.array_length(len(acls_))
        for acls_element in acls_:
            acls_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_acls_resource(reader: Reader, version: i64) -> DescribeAclsResource:
    flexible = version >= 2
    acls: list[AclDescription] = []
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    pattern_type = reader.i8()
    count = reader.compact_array_length(5) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("acls must not be null")
    for _ in range(count):
        acls.append(_decode_acl_description(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeAclsResource(resource_type, resource_name, pattern_type, acls)


class DescribeAclsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = (
            [] if isinstance(resources, tuple) else resources
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        resources_ = self.resources
        if flexible:
            writer.compact_array_length(len(resources_))
        else:
            writer.array_length(len(resources_))
        for resources_element in resources_:
            resources_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_acls_response(reader: Reader, version: i64) -> DescribeAclsResponse:
    flexible = version >= 2
    resources: list[DescribeAclsResource] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    count = reader.compact_array_length(5) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("resources must not be null")
    for _ in range(count):
        resources.append(_decode_describe_acls_resource(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeAclsResponse(throttle_time_ms, error_code, error_message, resources)
