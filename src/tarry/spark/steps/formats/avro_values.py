"""Values that are Avro: a schema file says the columns, a registry each writer's schema."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro
import pyarrow as pa

from tarry.spark.steps.columns import check_names
from tarry.spark.steps.formats.broken_schemas import BrokenSchemas
from tarry.spark.steps.formats.framing import read_frame
from tarry.spark.steps.formats.registry import SchemaRegistry
from tarry.spark.steps.formats.values import BadValue, Decoded, decode_rows
from tarry.spark.steps.refused import StepRefused

PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: Final[dict[tuple[str, str], pa.DataType]] = {
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("int", "date"): pa.date32(),
}
DECIMAL_DIGITS_MAX: Final = 38


class AvroDecoder:
    """Decoder of Avro."""

    def __init__(
        self,
        schema_text: str,
        registry: SchemaRegistry | None,
        broken: BrokenSchemas | None = None,
    ) -> None:
        try:
            given = json.loads(schema_text)
            self._reader: Any = fastavro.parse_schema(given)
        except Exception as flaw:
            raise StepRefused(f"the Avro schema cannot be read: {flaw}") from None
        fields = _Columns().of(given, "the Avro schema", ())
        if not pa.types.is_struct(fields):
            raise StepRefused("the Avro schema must be a record: each of its fields is a column")
        check_names(field.name for field in fields)
        self.fields = fields
        self._registry = registry
        self._writers: dict[int, Any] = {}
        self._broken = broken or BrokenSchemas()

    def decode_all(self, values: Sequence[bytes | str | None]) -> Decoded:
        """Decode the values of a batch."""
        return decode_rows(self, values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a record."""
        if self._registry is None:
            return self._read(value, self._reader)
        schema_id, body = read_frame(value)
        writer = self._writers.get(schema_id)
        if writer is None:
            found = self._registry.find(schema_id)
            try:
                writer = self._writers[schema_id] = _writer_of(found, schema_id)
            except BadValue as flaw:
                self._broken.tell(schema_id, str(flaw))
                raise
        try:
            return self._read(body, writer)
        except fastavro.read.SchemaResolutionError as flaw:
            told = f"schema {schema_id} of its writer does not fit the reader's: {flaw!s:.200}"
            self._broken.tell(schema_id, told)
            raise BadValue(told) from None

    def _read(self, value: bytes, writer: Any) -> dict[str, Any]:
        source = io.BytesIO(value)
        try:
            found: Any = fastavro.schemaless_reader(source, writer, self._reader)
        except fastavro.read.SchemaResolutionError:
            raise
        except Exception as flaw:
            # What fastavro raises depends on which bytes are wrong.
            name = type(flaw).__name__
            raise BadValue(f"the value is not of the Avro schema: {name} {flaw!s:.200}") from None
        left = len(value) - source.tell()
        if left:
            raise BadValue(f"the value is not of the Avro schema: {left} bytes behind the record")
        row: dict[str, Any] = found
        return row


def _writer_of(found: Mapping[str, Any], schema_id: int) -> Any:
    kind = found.get("schemaType") or "AVRO"
    if kind != "AVRO":
        raise BadValue(f"schema {schema_id} is {kind!s:.60} and not Avro")
    if found.get("references"):
        raise BadValue(f"schema {schema_id} refers to other schemas, which are not followed")
    try:
        return fastavro.parse_schema(json.loads(found["schema"]))
    except Exception as flaw:
        raise BadValue(f"schema {schema_id} of its writer cannot be read: {flaw!s:.200}") from None


class _Columns:
    """Types of columns by a schema; named types are kept for where they are named again."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Any, str]] = {}

    def of(self, given: Any, place: str, within: tuple[str, ...], space: str = "") -> pa.DataType:
        """Return the type of a column."""
        if isinstance(given, list):
            others = [one for one in given if one != "null"]
            if len(others) != 1:
                raise StepRefused(f"{place} is a union: a column has one type, and null beside it")
            return self.of(others[0], place, within, space)
        if isinstance(given, str):
            return self._by_name(given, place, within, space)
        kind, logical = given["type"], given.get("logicalType")
        if isinstance(kind, dict | list):
            return self.of(kind, place, within, space)
        if (kind, logical) in LOGICAL:
            return LOGICAL[kind, logical]
        if kind in ("record", "enum", "fixed"):
            space = given.get("namespace", given["name"].rpartition(".")[0] or space)
            name = given["name"].rpartition(".")[2]
            self._named[f"{space}.{name}" if space else name] = given, space
        if logical == "decimal":
            if given["precision"] > DECIMAL_DIGITS_MAX:
                raise StepRefused(f"{place} has more than {DECIMAL_DIGITS_MAX} digits")
            return pa.decimal128(given["precision"], given.get("scale", 0))
        if logical in ("uuid", "time-millis", "time-micros", "duration") or (
            logical is not None and logical.startswith("local-timestamp")
        ):
            raise StepRefused(
                f"{place} has the logical type {logical}, which no column has: "
                "leave logicalType out"
            )
        return self._complex(kind, given, place, within, space)

    def _complex(
        self, kind: str, given: dict[str, Any], place: str, within: tuple[str, ...], space: str
    ) -> pa.DataType:
        if kind == "array":
            return pa.list_(self.of(given["items"], f"{place}.items", within, space))
        if kind == "map":
            return pa.map_(pa.string(), self.of(given["values"], f"{place}.values", within, space))
        if kind == "enum":
            return pa.string()
        if kind == "fixed":
            return pa.binary()
        if kind != "record":
            return self._by_name(kind, place, within, space)
        if not given["fields"]:
            raise StepRefused(f"{place} has no fields, so it has no columns")
        inner = (*within, given["name"])
        return pa.struct(
            [
                (field["name"], self.of(field["type"], f"{place}.{field['name']}", inner, space))
                for field in given["fields"]
            ]
        )

    def _by_name(self, name: str, place: str, within: tuple[str, ...], space: str) -> pa.DataType:
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        full = name if "." in name or not space else f"{space}.{name}"
        if full not in self._named:
            raise StepRefused(f"{place} is {name}, which no column has")
        given, named_space = self._named[full]
        if given["name"] in within:
            raise StepRefused(f"{place} holds itself: a column cannot be as deep as its value")
        return self.of(given, place, within, named_space)
