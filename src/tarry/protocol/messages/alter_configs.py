"""AlterConfigs, API key 33: versions 0 to 2, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class AlterableConfig:
    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if flexible:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if flexible:
            writer.unsigned_varint(0)


def _decode_alterable_config(reader: Reader, version: i64) -> AlterableConfig:
    flexible = version >= 2
    name = reader.compact_string() if flexible else reader.string()
    value = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return AlterableConfig(name, value)


class AlterConfigsResource:
    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | tuple[()] = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if isinstance(configs, tuple) else configs

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i8(self.resource_type)
        if flexible:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        configs_ = self.configs
        if flexible:
            writer.compact_array_length(len(configs_))
        else:
            writer.array_length(len(configs_))
        for configs_element in configs_:
            configs_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_alter_configs_resource(reader: Reader, version: i64) -> AlterConfigsResource:
    flexible = version >= 2
    configs: list[AlterableConfig] = []
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("configs must not be null")
    for _ in range(count):
        configs.append(_decode_alterable_config(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return AlterConfigsResource(resource_type, resource_name, configs)


class AlterConfigsRequest(Message):
    def __init__(
        self,
        resources: list[AlterConfigsResource] | tuple[()] = (),
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = (
            [] if isinstance(resources, tuple) else resources
        )
        self.validate_only: bool = validate_only

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        resources_ = self.resources
        if flexible:
            writer.compact_array_length(len(resources_))
        else:
            writer.array_length(len(resources_))
        for resources_element in resources_:
            resources_element.encode(writer, version)
        writer.boolean(self.validate_only)
        if flexible:
            writer.unsigned_varint(0)


def decode_alter_configs_request(reader: Reader, version: i64) -> AlterConfigsRequest:
    flexible = version >= 2
    resources: list[AlterConfigsResource] = []
    count = reader.compact_array_length(4) if flexible else reader.array_length(7)
    if count < 0:
        raise MalformedData("resources must not be null")
    for _ in range(count):
        resources.append(_decode_alter_configs_resource(reader, version))
    validate_only = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return AlterConfigsRequest(resources, validate_only)


class AlterConfigsResourceResponse:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name

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
        if flexible:
            writer.unsigned_varint(0)


def _decode_alter_configs_resource_response(
    reader: Reader, version: i64
) -> AlterConfigsResourceResponse:
    flexible = version >= 2
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    if flexible:
        reader.skip_tagged_fields()
    return AlterConfigsResourceResponse(error_code, error_message, resource_type, resource_name)


class AlterConfigsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = (
            [] if isinstance(responses, tuple) else responses
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        responses_ = self.responses
        if flexible:
            writer.compact_array_length(len(responses_))
        else:
            writer.array_length(len(responses_))
        for responses_element in responses_:
            responses_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_alter_configs_response(reader: Reader, version: i64) -> AlterConfigsResponse:
    flexible = version >= 2
    responses: list[AlterConfigsResourceResponse] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(6) if flexible else reader.array_length(7)
    if count < 0:
        raise MalformedData("responses must not be null")
    for _ in range(count):
        responses.append(_decode_alter_configs_resource_response(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return AlterConfigsResponse(throttle_time_ms, responses)
