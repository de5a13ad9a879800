"""DescribeClientQuotas, API key 48: versions 0 to 1, flexible from 1.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ComponentData:
    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        if flexible:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        writer.i8(self.match_type)
        if flexible:
            writer.compact_nullable_string(self.match)
        else:
            writer.nullable_string(self.match)
        if flexible:
            writer.unsigned_varint(0)


def _decode_component_data(reader: Reader, version: i64) -> ComponentData:
    flexible = version >= 1
    entity_type = reader.compact_string() if flexible else reader.string()
    match_type = reader.i8()
    match = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return ComponentData(entity_type, match_type, match)


class DescribeClientQuotasRequest(Message):
    def __init__(
        self,
        components: list[ComponentData] | tuple[()] = (),
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if isinstance(components, tuple) else components
        self.strict: bool = strict

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        components_ = self.components
        if flexible:
            writer.compact_array_length(len(components_))
        else:
            writer.array_length(len(components_))
        for components_element in components_:
            components_element.encode(writer, version)
        writer.boolean(self.strict)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_client_quotas_request(
    reader: Reader, version: i64
) -> DescribeClientQuotasRequest:
    flexible = version >= 1
    components: list[ComponentData] = []
    count = reader.compact_array_length(4) if flexible else reader.array_length(5)
    if count < 0:
        raise MalformedData("components must not be null")
    for _ in range(count):
        components.append(_decode_component_data(reader, version))
    strict = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeClientQuotasRequest(components, strict)


class EntityData:
    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        if flexible:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        if flexible:
            writer.compact_nullable_string(self.entity_name)
        else:
            writer.nullable_string(self.entity_name)
        if flexible:
            writer.unsigned_varint(0)


def _decode_entity_data(reader: Reader, version: i64) -> EntityData:
    flexible = version >= 1
    entity_type = reader.compact_string() if flexible else reader.string()
    entity_name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return EntityData(entity_type, entity_name)


class ValueData:
    def __init__(
        self,
        key: str = "",
        value: float = 0,
    ) -> None:
        self.key: str = key
        self.value: float = value

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        if flexible:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.f64(self.value)
        if flexible:
            writer.unsigned_varint(0)


def _decode_value_data(reader: Reader, version: i64) -> ValueData:
    flexible = version >= 1
    key = reader.compact_string() if flexible else reader.string()
    value = reader.f64()
    if flexible:
        reader.skip_tagged_fields()
    return ValueData(key, value)


class EntryData:
    def __init__(
        self,
        entity: list[EntityData] | tuple[()] = (),
        values: list[ValueData] | tuple[()] = (),
    ) -> None:
        self.entity: list[EntityData] = [] if isinstance(entity, tuple) else entity
        self.values: list[ValueData] = [] if isinstance(values, tuple) else values

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        entity_ = self.entity
        if flexible:
            writer.compact_array_length(len(entity_))
        else:
            writer.array_length(len(entity_))
        for entity_element in entity_:
            entity_element.encode(writer, version)
        values_ = self.values
        if flexible:
            writer.compact_array_length(len(values_))
        else:
            writer.array_length(len(values_))
        for values_element in values_:
            values_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_entry_data(reader: Reader, version: i64) -> EntryData:
    flexible = version >= 1
    entity: list[EntityData] = []
    values: list[ValueData] = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("entity must not be null")
    for _ in range(count):
        entity.append(_decode_entity_data(reader, version))
    count = reader.compact_array_length(10) if flexible else reader.array_length(10)
    if count < 0:
        raise MalformedData("values must not be null")
    for _ in range(count):
        values.append(_decode_value_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return EntryData(entity, values)


class DescribeClientQuotasResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | tuple[()] | None = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if isinstance(entries, tuple) else entries

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        entries_ = self.entries
        if entries_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(entries_))
            else:
                writer.array_length(len(entries_))
            for entries_element in entries_:
                entries_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_client_quotas_response(
    reader: Reader, version: i64
) -> DescribeClientQuotasResponse:
    flexible = version >= 1
    entries: list[EntryData] | None = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(8)
    entries = None
    if count >= 0:
        entries = []
        for _ in range(count):
            entries.append(_decode_entry_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeClientQuotasResponse(throttle_time_ms, error_code, error_message, entries)
