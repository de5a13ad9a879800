"""Values that are Protobuf: messages of a descriptor set, as `protoc` writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from tarry.spark.steps.columns import check_names
from tarry.spark.steps.formats.broken_schemas import BrokenSchemas
from tarry.spark.steps.formats.framing import read_frame, read_indexes
from tarry.spark.steps.formats.values import BadValue, Decoded, decode_rows
from tarry.spark.steps.refused import StepRefused

FIELD: Final = descriptor_pb2.FieldDescriptorProto

SCALARS: Final[dict[int, pa.DataType]] = {
    FIELD.TYPE_DOUBLE: pa.float64(),
    FIELD.TYPE_FLOAT: pa.float32(),
    FIELD.TYPE_INT32: pa.int32(),
    FIELD.TYPE_SINT32: pa.int32(),
    FIELD.TYPE_SFIXED32: pa.int32(),
    FIELD.TYPE_INT64: pa.int64(),
    FIELD.TYPE_SINT64: pa.int64(),
    FIELD.TYPE_SFIXED64: pa.int64(),
    FIELD.TYPE_UINT32: pa.int64(),
    FIELD.TYPE_FIXED32: pa.int64(),
    # Spark has no unsigned numbers.
    FIELD.TYPE_UINT64: pa.decimal128(20, 0),
    FIELD.TYPE_FIXED64: pa.decimal128(20, 0),
    FIELD.TYPE_BOOL: pa.bool_(),
    FIELD.TYPE_STRING: pa.string(),
    FIELD.TYPE_BYTES: pa.binary(),
}
TIMESTAMP: Final = "google.protobuf.Timestamp"
# The years 1 to 9999, as the Timestamp of Protobuf has them.
SECONDS_MIN: Final = -62_135_596_800
SECONDS_MAX: Final = 253_402_300_799

HOW: Final = "protoc --include_imports --descriptor_set_out=order.desc order.proto"

Convert = Callable[[Any], Any]


class ProtobufDecoder:
    """Decoder of one message type."""

    def __init__(
        self, schema: bytes, name: str, *, is_framed: bool, broken: BrokenSchemas | None = None
    ) -> None:
        files = descriptor_pb2.FileDescriptorSet()
        pool = descriptor_pool.DescriptorPool()
        try:
            files.ParseFromString(schema)
            for file in files.file:
                pool.Add(file)
            descriptor = pool.FindMessageTypeByName(name)
        except KeyError:
            found = [
                f"{file.package}.{one.name}" for file in files.file for one in file.message_type
            ]
            names = ", ".join(one.lstrip(".") for one in found)
            raise StepRefused(
                f"the descriptor set has no message {name!r:.60}; it has {names or 'none'}"
            ) from None
        except (message.DecodeError, TypeError) as flaw:
            raise StepRefused(
                f"the schema is no descriptor set of Protobuf ({flaw!s:.200}): make one by {HOW}"
            ) from None
        self.fields, self._convert = _message(descriptor, ())
        check_names(field.name for field in self.fields)
        self._made: Any = message_factory.GetMessageClass(descriptor)
        self._indexes = _indexes_of(descriptor)
        self._is_framed = is_framed
        self._name = name
        self._broken = broken or BrokenSchemas()

    def decode_all(self, values: Sequence[bytes | str | None]) -> Decoded:
        """Decode the values of a batch."""
        return decode_rows(self, values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a message."""
        if self._is_framed:
            frame = read_frame(value)
            indexes, value = read_indexes(frame.value)
            if indexes != self._indexes:
                told = (
                    f"the value is message {_text(indexes)} of its file, and {self._name} is "
                    f"{_text(self._indexes)}"
                )
                self._broken.tell(frame.schema_id, f"schema {frame.schema_id}: {told}")
                raise BadValue(told)
        found = self._made()
        try:
            found.ParseFromString(value)
        except message.DecodeError as flaw:
            raise BadValue(f"the value is no {self._name}: {flaw!s:.200}") from None
        missing = found.FindInitializationErrors()
        if missing:
            raise BadValue(f"field {missing[0]} is missing")
        try:
            row: dict[str, Any] = self._convert(found)
        except UnicodeDecodeError:
            # Files of proto2 let texts be any bytes, and a map's key cannot be told then.
            raise BadValue(f"the value is no {self._name}: a text is no UTF-8") from None
        return row


def _text(indexes: tuple[int, ...]) -> str:
    return ".".join(str(index) for index in indexes)


def _indexes_of(descriptor: Any) -> tuple[int, ...]:
    if descriptor.containing_type is None:
        names = list(descriptor.file.message_types_by_name)
        return (names.index(descriptor.name),)
    outer = descriptor.containing_type
    names = [one.name for one in outer.nested_types]
    return (*_indexes_of(outer), names.index(descriptor.name))


def _message(descriptor: Any, within: tuple[str, ...]) -> tuple[pa.StructType, Convert]:
    name = descriptor.full_name
    if name in within:
        raise StepRefused(f"{name} holds itself: a column cannot be as deep as its value")
    if not descriptor.fields:
        raise StepRefused(f"{name} has no fields, so it has no columns")
    columns: list[tuple[str, pa.DataType]] = []
    members: list[tuple[str, bool, Convert]] = []
    for field in descriptor.fields:
        kind, convert = _field(field, (*within, name))
        columns.append((field.name, kind))
        members.append((field.name, field.has_presence, convert))

    def fields_of(found: Any) -> dict[str, Any]:
        return {
            name: None if may_lack and not found.HasField(name) else convert(getattr(found, name))
            for name, may_lack, convert in members
        }

    return pa.struct(columns), fields_of


def _field(field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Convert]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, key_of = _single(inner.fields_by_name["key"], within)
        value, value_of = _single(inner.fields_by_name["value"], within)
        return pa.map_(key, value), lambda found: [
            (key_of(one), value_of(found[one])) for one in found
        ]
    kind, convert = _single(field, within)
    if field.is_repeated:
        return pa.list_(kind), lambda found: [convert(one) for one in found]
    return kind, convert


def _single(field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Convert]:
    if field.type == FIELD.TYPE_ENUM:
        names = {one.number: one.name for one in field.enum_type.values}
        return pa.string(), lambda number: names.get(number, str(number))
    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return pa.timestamp("us", "UTC"), _micros
        return _message(field.message_type, within)
    return SCALARS[field.type], _same


def _same(value: Any) -> Any:
    return value


def _micros(found: Any) -> int:
    if not SECONDS_MIN <= found.seconds <= SECONDS_MAX:
        raise BadValue(f"a Timestamp of {found.seconds} seconds is no time of the years 1 to 9999")
    micros: int = found.seconds * 1_000_000 + found.nanos // 1_000
    return micros
