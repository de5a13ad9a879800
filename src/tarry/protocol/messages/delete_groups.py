"""DeleteGroups, API key 42: versions 0 to 3, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DeleteGroupsRequest(Message):
    def __init__(
        self,
        groups_names: list[str] | tuple[()] = (),
    ) -> None:
        self.groups_names: list[str] = [] if isinstance(groups_names, tuple) else groups_names

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        groups_names_ = self.groups_names
        if flexible:
            writer.compact_array_length(len(groups_names_))
        else:
            writer.array_length(len(groups_names_))
        for groups_names_element in groups_names_:
            if flexible:
                writer.compact_string(groups_names_element)
            else:
                writer.string(groups_names_element)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_groups_request(reader: Reader, version: i64) -> DeleteGroupsRequest:
    flexible = version >= 2
    groups_names: list[str] = []
    count = reader.compact_array_length(1) if flexible else reader.array_length(2)
    if count < 0:
        raise MalformedData("groups_names must not be null")
    for _ in range(count):
        groups_names.append(reader.compact_string() if flexible else reader.string())
    if flexible:
        reader.skip_tagged_fields()
    return DeleteGroupsRequest(groups_names)


class DeletableGroupResult:
    def __init__(
        self,
        group_id: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.i16(self.error_code)
        if version >= 3:
            writer.compact_nullable_string(self.error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_deletable_group_result(reader: Reader, version: i64) -> DeletableGroupResult:
    flexible = version >= 2
    error_message: str | None = None
    group_id = reader.compact_string() if flexible else reader.string()
    error_code = reader.i16()
    if version >= 3:
        error_message = reader.compact_nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return DeletableGroupResult(group_id, error_code, error_message)


class DeleteGroupsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if isinstance(results, tuple) else results

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


def decode_delete_groups_response(reader: Reader, version: i64) -> DeleteGroupsResponse:
    flexible = version >= 2
    results: list[DeletableGroupResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_deletable_group_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteGroupsResponse(throttle_time_ms, results)
