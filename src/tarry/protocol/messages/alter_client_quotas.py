"""AlterClientQuotas, API key 49: versions 0 to 1, flexible from 1.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class AlteredEntityData:
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


def _decode_altered_entity_data(reader: Reader, version: i64) -> AlteredEntityData:
    flexible = version >= 1
    entity_type = reader.compact_string() if flexible else reader.string()
    entity_name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return AlteredEntityData(entity_type, entity_name)


class OpData:
    def __init__(
        self,
        key: str = "",
        value: float = 0,
        remove: bool = False,
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        if flexible:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.f64(self.value)
        writer.boolean(self.remove)
        if flexible:
            writer.unsigned_varint(0)


def _decode_op_data(reader: Reader, version: i64) -> OpData:
    flexible = version >= 1
    key = reader.compact_string() if flexible else reader.string()
    value = reader.f64()
    remove = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return OpData(key, value, remove)


class AlteredEntryData:
    def __init__(
        self,
        entity: list[AlteredEntityData] | tuple[()] = (),
        ops: list[OpData] | tuple[()] = (),
    ) -> None:
        self.entity: list[AlteredEntityData] = [] if isinstance(entity, tuple) else entity
        self.ops: list[OpData] = [] if isinstance(ops, tuple) else ops

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        entity_ = self.entity
        if flexible:
            writer.compact_array_length(len(entity_))
        else:
            writer.array_length(len(entity_))
        for entity_element in entity_:
            entity_element.encode(writer, version)
        ops_ = self.ops
        if flexible:
            writer.compact_array_length(len(ops_))
        else:
            writer.array_length(len(ops_))
        for ops_element in ops_:
            ops_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_altered_entry_data(reader: Reader, version: i64) -> AlteredEntryData:
    flexible = version >= 1
    entity: list[AlteredEntityData] = []
    ops: list[OpData] = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("entity must not be null")
    for _ in range(count):
        entity.append(_decode_altered_entity_data(reader, version))
    count = reader.compact_array_length(11) if flexible else reader.array_length(11)
    if count < 0:
        raise MalformedData("ops must not be null")
    for _ in range(count):
        ops.append(_decode_op_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return AlteredEntryData(entity, ops)


class AlterClientQuotasRequest(Message):
    def __init__(
        self,
        entries: list[AlteredEntryData] | tuple[()] = (),
        validate_only: bool = False,
    ) -> None:
        self.entries: list[AlteredEntryData] = [] if isinstance(entries, tuple) else entries
        self.validate_only: bool = validate_only

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        entries_ = self.entries
        if flexible:
            writer.compact_array_length(len(entries_))
        else:
            writer.array_length(len(entries_))
        for entries_element in entries_:
            entries_element.encode(writer, version)
        writer.boolean(self.validate_only)
        if flexible:
            writer.unsigned_varint(0)


def decode_alter_client_quotas_request(reader: Reader, version: i64) -> AlterClientQuotasRequest:
    flexible = version >= 1
    entries: list[AlteredEntryData] = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("entries must not be null")
    for _ in range(count):
        entries.append(_decode_altered_entry_data(reader, version))
    validate_only = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return AlterClientQuotasRequest(entries, validate_only)


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


class EntryData:
    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] | tuple[()] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[EntityData] = [] if isinstance(entity, tuple) else entity

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        entity_ = self.entity
        if flexible:
            writer.compact_array_length(len(entity_))
        else:
            writer.array_length(len(entity_))
        for entity_element in entity_:
            entity_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_entry_data(reader: Reader, version: i64) -> EntryData:
    flexible = version >= 1
    entity: list[EntityData] = []
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("entity must not be null")
    for _ in range(count):
        entity.append(_decode_entity_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return EntryData(error_code, error_message, entity)


class AlterClientQuotasResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[EntryData] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[EntryData] = [] if isinstance(entries, tuple) else entries

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 1
        writer.i32(self.throttle_time_ms)
        entries_ = self.entries
        if flexible:
            writer.compact_array_length(len(entries_))
        else:
            writer.array_length(len(entries_))
        for entries_element in entries_:
            entries_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_alter_client_quotas_response(reader: Reader, version: i64) -> AlterClientQuotasResponse:
    flexible = version >= 1
    entries: list[EntryData] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(5) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("entries must not be null")
    for _ in range(count):
        entries.append(_decode_entry_data(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return AlterClientQuotasResponse(throttle_time_ms, entries)
