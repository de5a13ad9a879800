"""ListConfigResources, API key 74: versions 0 to 1, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ListConfigResourcesRequest(Message):
    def __init__(
        self,
        resource_types: list[int] | tuple[()] = (),
    ) -> None:
        self.resource_types: list[int] = [] if isinstance(resource_types, tuple) else resource_types

    def encode(self, writer: Writer, version: i64) -> None:
        if version >= 1:
            resource_types_ = self.resource_types
            writer.compact_array_length(len(resource_types_))
            for resource_types_element in resource_types_:
                writer.i8(resource_types_element)
        elif self.resource_types:
            raise ValueError("this version has no resource_types")
        writer.unsigned_varint(0)


def decode_list_config_resources_request(
    reader: Reader, version: i64
) -> ListConfigResourcesRequest:
    resource_types: list[int] = []
    if version >= 1:
        count = reader.compact_array_length(1)
        if count < 0:
            raise MalformedData("resource_types must not be null")
        for _ in range(count):
            resource_types.append(reader.i8())
    reader.skip_tagged_fields()
    return ListConfigResourcesRequest(resource_types)


class ConfigResource:
    def __init__(
        self,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.resource_name)
        if version >= 1:
            writer.i8(self.resource_type)
        writer.unsigned_varint(0)


def _decode_config_resource(reader: Reader, version: i64) -> ConfigResource:
    resource_type: i64 = 16
    resource_name = reader.compact_string()
    if version >= 1:
        resource_type = reader.i8()
    reader.skip_tagged_fields()
    return ConfigResource(resource_name, resource_type)


class ListConfigResourcesResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ConfigResource] = (
            [] if isinstance(config_resources, tuple) else config_resources
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        config_resources_ = self.config_resources
        writer.compact_array_length(len(config_resources_))
        for config_resources_element in config_resources_:
            config_resources_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_list_config_resources_response(
    reader: Reader, version: i64
) -> ListConfigResourcesResponse:
    config_resources: list[ConfigResource] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    count = reader.compact_array_length(2)
    if count < 0:
        raise MalformedData("config_resources must not be null")
    for _ in range(count):
        config_resources.append(_decode_config_resource(reader, version))
    reader.skip_tagged_fields()
    return ListConfigResourcesResponse(throttle_time_ms, error_code, config_resources)
