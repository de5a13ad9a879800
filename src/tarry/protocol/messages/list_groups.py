"""ListGroups, API key 16: versions 0 to 5, flexible from 3.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ListGroupsRequest(Message):
    def __init__(
        self,
        states_filter: list[str] | tuple[()] = (),
        types_filter: list[str] | tuple[()] = (),
    ) -> None:
        self.states_filter: list[str] = [] if isinstance(states_filter, tuple) else states_filter
        self.types_filter: list[str] = [] if isinstance(types_filter, tuple) else types_filter

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if version >= 4:
            states_filter_ = self.states_filter
            writer.compact_array_length(len(states_filter_))
            for states_filter_element in states_filter_:
                writer.compact_string(states_filter_element)
        elif self.states_filter:
            raise ValueError("this version has no states_filter")
        if version >= 5:
            types_filter_ = self.types_filter
            writer.compact_array_length(len(types_filter_))
            for types_filter_element in types_filter_:
                writer.compact_string(types_filter_element)
        elif self.types_filter:
            raise ValueError("this version has no types_filter")
        if flexible:
            writer.unsigned_varint(0)


def decode_list_groups_request(reader: Reader, version: i64) -> ListGroupsRequest:
    flexible = version >= 3
    states_filter: list[str] = []
    types_filter: list[str] = []
    if version >= 4:
        count = reader.compact_array_length(1)
        if count < 0:
            raise MalformedData("states_filter must not be null")
        for _ in range(count):
            states_filter.append(reader.compact_string())
    if version >= 5:
        count = reader.compact_array_length(1)
        if count < 0:
            raise MalformedData("types_filter must not be null")
        for _ in range(count):
            types_filter.append(reader.compact_string())
    if flexible:
        reader.skip_tagged_fields()
    return ListGroupsRequest(states_filter, types_filter)


class ListedGroup:
    def __init__(
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if flexible:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if flexible:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 4:
            writer.compact_string(self.group_state)
        if version >= 5:
            writer.compact_string(self.group_type)
        if flexible:
            writer.unsigned_varint(0)


def _decode_listed_group(reader: Reader, version: i64) -> ListedGroup:
    flexible = version >= 3
    group_state: str = ""
    group_type: str = ""
    group_id = reader.compact_string() if flexible else reader.string()
    protocol_type = reader.compact_string() if flexible else reader.string()
    if version >= 4:
        group_state = reader.compact_string()
    if version >= 5:
        group_type = reader.compact_string()
    if flexible:
        reader.skip_tagged_fields()
    return ListedGroup(group_id, protocol_type, group_state, group_type)


class ListGroupsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if isinstance(groups, tuple) else groups

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        groups_ = self.groups
        if flexible:
            writer.compact_array_length(len(groups_))
        else:
            writer.array_length(len(groups_))
        for groups_element in groups_:
            groups_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_list_groups_response(reader: Reader, version: i64) -> ListGroupsResponse:
    flexible = version >= 3
    throttle_time_ms: i64 = 0
    groups: list[ListedGroup] = []
    if version >= 1:
        throttle_time_ms = reader.i32()
    error_code = reader.i16()
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("groups must not be null")
    for _ in range(count):
        groups.append(_decode_listed_group(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ListGroupsResponse(throttle_time_ms, error_code, groups)
