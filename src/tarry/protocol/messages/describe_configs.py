"""DescribeConfigs, API key 32: versions 1 to 4, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DescribeConfigsResource:
    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | tuple[()] | None = (),
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = (
            [] if isinstance(configuration_keys, tuple) else configuration_keys
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        writer.i8(self.resource_type)
        if flexible:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        configuration_keys_ = self.configuration_keys
        if configuration_keys_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(configuration_keys_))
            else:
                writer.array_length(len(configuration_keys_))
            for configuration_keys_element in configuration_keys_:
                if flexible:
                    writer.compact_string(configuration_keys_element)
                else:
                    writer.string(configuration_keys_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_configs_resource(reader: Reader, version: i64) -> DescribeConfigsResource:
    flexible = version >= 4
    configuration_keys: list[str] | None = []
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(1) if flexible else reader.array_length(2)
    configuration_keys = None
    if count >= 0:
        configuration_keys = []
        for _ in range(count):
            configuration_keys.append(reader.compact_string() if flexible else reader.string())
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsResource(resource_type, resource_name, configuration_keys)


class DescribeConfigsRequest(Message):
    def __init__(
        self,
        resources: list[DescribeConfigsResource] | tuple[()] = (),
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = (
            [] if isinstance(resources, tuple) else resources
        )
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        resources_ = self.resources
        if flexible:
            writer.compact_array_length(len(resources_))
        else:
            writer.array_length(len(resources_))
        for resources_element in resources_:
            resources_element.encode(writer, version)
        writer.boolean(self.include_synonyms)
        if version >= 3:
            writer.boolean(self.include_documentation)
        elif self.include_documentation:
            raise ValueError("this version has no include_documentation")
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_configs_request(reader: Reader, version: i64) -> DescribeConfigsRequest:
    flexible = version >= 4
    resources: list[DescribeConfigsResource] = []
    include_documentation: bool = False
    count = reader.compact_array_length(4) if flexible else reader.array_length(7)
    if count < 0:
        raise MalformedData("resources must not be null")
    for _ in range(count):
        resources.append(_decode_describe_configs_resource(reader, version))
    include_synonyms = reader.boolean()
    if version >= 3:
        include_documentation = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsRequest(resources, include_synonyms, include_documentation)


class DescribeConfigsSynonym:
    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if flexible:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        writer.i8(self.source)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_configs_synonym(reader: Reader, version: i64) -> DescribeConfigsSynonym:
    flexible = version >= 4
    name = reader.compact_string() if flexible else reader.string()
    value = reader.compact_nullable_string() if flexible else reader.nullable_string()
    source = reader.i8()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsSynonym(name, value, source)


class DescribeConfigsResourceResult:
    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | tuple[()] = (),
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = (
            [] if isinstance(synonyms, tuple) else synonyms
        )
        self.config_type: int = config_type
        self.documentation: str | None = documentation

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if flexible:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        writer.boolean(self.read_only)
        writer.i8(self.config_source)
        writer.boolean(self.is_sensitive)
        synonyms_ = self.synonyms
        if flexible:
            writer.compact_array_length(len(synonyms_))
        else:
            writer.array_length(len(synonyms_))
        for synonyms_element in synonyms_:
            synonyms_element.encode(writer, version)
        if version >= 3:
            writer.i8(self.config_type)
            if flexible:
                writer.compact_nullable_string(self.documentation)
            else:
                writer.nullable_string(self.documentation)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_configs_resource_result(
    reader: Reader, version: i64
) -> DescribeConfigsResourceResult:
    flexible = version >= 4
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: i64 = 0
    documentation: str | None = ""
    name = reader.compact_string() if flexible else reader.string()
    value = reader.compact_nullable_string() if flexible else reader.nullable_string()
    read_only = reader.boolean()
    config_source = reader.i8()
    is_sensitive = reader.boolean()
    count = reader.compact_array_length(4) if flexible else reader.array_length(5)
    if count < 0:
        raise MalformedData("synonyms must not be null")
    for _ in range(count):
        synonyms.append(_decode_describe_configs_synonym(reader, version))
    if version >= 3:
        config_type = reader.i8()
        documentation = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsResourceResult(
        name, value, read_only, config_source, is_sensitive, synonyms, config_type, documentation
    )


class DescribeConfigsResult:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = (
            [] if isinstance(configs, tuple) else configs
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
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
        configs_ = self.configs
        if flexible:
            writer.compact_array_length(len(configs_))
        else:
            writer.array_length(len(configs_))
        for configs_element in configs_:
            configs_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_configs_result(reader: Reader, version: i64) -> DescribeConfigsResult:
    flexible = version >= 4
    configs: list[DescribeConfigsResourceResult] = []
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    resource_type = reader.i8()
    resource_name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(9) if flexible else reader.array_length(11)
    if count < 0:
        raise MalformedData("configs must not be null")
    for _ in range(count):
        configs.append(_decode_describe_configs_resource_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsResult(error_code, error_message, resource_type, resource_name, configs)


class DescribeConfigsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if isinstance(results, tuple) else results

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
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


def decode_describe_configs_response(reader: Reader, version: i64) -> DescribeConfigsResponse:
    flexible = version >= 4
    results: list[DescribeConfigsResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(7) if flexible else reader.array_length(11)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_describe_configs_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeConfigsResponse(throttle_time_ms, results)
