"""DeleteAcls, API key 31: versions 1 to 3, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DeleteAclsFilter:
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


def _decode_delete_acls_filter(reader: Reader, version: i64) -> DeleteAclsFilter:
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
    return DeleteAclsFilter(
        resource_type_filter,
        resource_name_filter,
        pattern_type_filter,
        principal_filter,
        host_filter,
        operation,
        permission_type,
    )


class DeleteAclsRequest(Message):
    def __init__(
        self,
        filters: list[DeleteAclsFilter] | tuple[()] = (),
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if isinstance(filters, tuple) else filters

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        filters_ = self.filters
        if flexible:
            writer.compact_array_length(len(filters_))
        else:
            writer.array_length(len(filters_))
        for filters_element in filters_:
            filters_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_acls_request(reader: Reader, version: i64) -> DeleteAclsRequest:
    flexible = version >= 2
    filters: list[DeleteAclsFilter] = []
    count = reader.compact_array_length(8) if flexible else reader.array_length(10)
    if count < 0:
        raise MalformedData("filters must not be null")
    for _ in range(count):
        filters.append(_decode_delete_acls_filter(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteAclsRequest(filters)


class DeleteAclsMatchingAcl:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.i8(self.resource_type)
        if flexible:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.i8(self.pattern_type)
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


def _decode_delete_acls_matching_acl(reader: Reader, version: i64) -> DeleteAclsMatchingAcl:
    flexible = version >= 2
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    pattern_type = reader.i8()
    principal = reader.compact_string() if flexible else reader.string()
    host = reader.compact_string() if flexible else reader.string()
    operation = reader.i8()
    permission_type = reader.i8()
    if flexible:
        reader.skip_tagged_fields()
    return DeleteAclsMatchingAcl(
        error_code,
        error_message,
        resource_type,
        resource_name,
        pattern_type,
        principal,
        host,
        operation,
        permission_type,
    )


class DeleteAclsFilterResult:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = (
            [] if isinstance(matching_acls, tuple) else matching_acls
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        matching_acls_ = self.matching_acls
        if flexible:
            writer.compact_array_length(len(matching_acls_))
        else:
            writer.array_length(len(matching_acls_))
        for matching_acls_element in matching_acls_:
            matching_acls_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_delete_acls_filter_result(reader: Reader, version: i64) -> DeleteAclsFilterResult:
    flexible = version >= 2
    matching_acls: list[DeleteAclsMatchingAcl] = []
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    count = reader.compact_array_length(11) if flexible else reader.array_length(14)
    if count < 0:
        raise MalformedData("matching_acls must not be null")
    for _ in range(count):
        matching_acls.append(_decode_delete_acls_matching_acl(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteAclsFilterResult(error_code, error_message, matching_acls)


class DeleteAclsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = (
            [] if isinstance(filter_results, tuple) else filter_results
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        filter_results_ = self.filter_results
        if flexible:
            writer.compact_array_length(len(filter_results_))
        else:
            writer.array_length(len(filter_results_))
        for filter_results_element in filter_results_:
            filter_results_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_acls_response(reader: Reader, version: i64) -> DeleteAclsResponse:
    flexible = version >= 2
    filter_results: list[DeleteAclsFilterResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(5) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("filter_results must not be null")
    for _ in range(count):
        filter_results.append(_decode_delete_acls_filter_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteAclsResponse(throttle_time_ms, filter_results)
