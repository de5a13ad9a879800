"""Decoders of values: a format and its schema, as they go to Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tarry.spark.steps.columns import check_names
from tarry.spark.steps.formats.json_values import JsonDecoder, json_types
from tarry.spark.steps.formats.registry import registry_at
from tarry.spark.steps.formats.text_values import TextDecoder
from tarry.spark.steps.formats.values import ValueDecoder
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMATS: Final = ("json", "avro", "protobuf", "text")

# Library of a format that has an extra of its own.
LIBRARIES: Final = {"avro": "fastavro", "protobuf": "google.protobuf"}


@dataclass(frozen=True)
class ValueDecoding:
    """Way of decoding, as it goes to the workers: a schema by its text."""

    format: str
    schema: bytes = b""
    # Message of a descriptor set.
    message: str = ""
    # Address of a registry; empty: values have no frame, or need none.
    registry: str = ""
    # Field that is the event time; empty: the record's timestamp.
    time: str = ""
    # Whether the schema is a StructType of Spark's, as JSON.
    is_struct: bool = False


def value_decoding(
    format: str,
    schema: str | Path | StructType | None,
    message: str | None = None,
    registry: str | None = None,
    time: str | None = None,
) -> ValueDecoding:
    """Return the way of decoding, with the schema that is read now.

    Raises StepRefused for what does not go together, and for what cannot become columns.
    """
    is_struct = not isinstance(schema, str | Path | None)
    if is_struct and format != "json":
        raise StepRefused(f"the format {format} needs a schema of its own: name its file")
    text = _schema(format, schema, message, registry)
    made = ValueDecoding(
        format, text, message or "", registry or "", time or "", is_struct=is_struct
    )
    fields = decoder_of(made).fields
    check_names(fields.names)
    _check_time(fields, made.time)
    return made


def _check_time(fields: pa.StructType, name: str) -> None:
    if not name:
        return
    kind = field_type({field.name: field.type for field in fields}, name)
    if kind is None:
        names = ", ".join(fields.names)
        raise StepRefused(f"time={name!r:.60} is no field of the schema, which has {names:.300}")
    if not pa.types.is_timestamp(kind) and not pa.types.is_integer(kind):
        raise StepRefused(
            f"time={name!r:.60} is {kind}, and an event time is a date-time or an integer of "
            "milliseconds since 1970"
        )


def field_type(types: Mapping[str, pa.DataType], name: str) -> pa.DataType | None:
    """Return the type of a column, or of a field that a path names; None if there is none."""
    if name in types:
        return types[name]
    first, *rest = name.split(".")
    kind = types.get(first)
    for part in rest:
        place = kind.get_field_index(part) if kind is not None and pa.types.is_struct(kind) else -1
        kind = None if kind is None or place < 0 else kind.field(place).type
    return kind


def _schema(
    format: str,
    schema: str | Path | StructType | None,
    message: str | None,
    registry: str | None,
) -> bytes:
    """Return what the schema's file has."""
    if format not in FORMATS:
        raise StepRefused(f"there is no format {format!r:.60}; there are {', '.join(FORMATS)}")
    if (message is not None) != (format == "protobuf"):
        raise StepRefused(
            "the format protobuf needs message, such as shop.Order"
            if format == "protobuf"
            else f"the format {format} has no messages: leave out message={message!r:.60}"
        )
    if format == "text":
        if schema is not None or registry is not None:
            raise StepRefused("the format text has neither schema nor registry: leave them out")
        return b""
    if schema is None:
        raise StepRefused(f"the format {format} needs a schema: name its file")
    library = LIBRARIES.get(format)
    if library is not None and not _is_installed(library):
        raise StepRefused(f'the format {format} needs {library}: pip install "tarry[{format}]"')
    if not isinstance(schema, str | Path):
        return schema.json().encode()
    try:
        # Absolute: the sentence tells where it was looked for.
        return Path(schema).absolute().read_bytes()
    except OSError as flaw:
        raise StepRefused(f"the schema {schema} cannot be read: {flaw}") from None


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


@lru_cache(maxsize=16)
def decoder_of(decoding: ValueDecoding) -> ValueDecoder:
    """Make the decoder; a worker makes it once."""
    if decoding.format == "text":
        return TextDecoder()
    if decoding.is_struct:
        from pyspark.sql.types import StructType

        from tarry.spark.steps.formats.spark_types import read_struct

        return JsonDecoder(read_struct(StructType.fromJson(json.loads(decoding.schema))))
    if decoding.format == "protobuf":
        from tarry.spark.steps.formats.protobuf_values import ProtobufDecoder

        return ProtobufDecoder(decoding.schema, decoding.message, is_framed=bool(decoding.registry))
    try:
        text = decoding.schema.decode()
    except UnicodeDecodeError as flaw:
        raise StepRefused(f"the schema is no UTF-8 at byte {flaw.start}") from None
    if decoding.format == "avro":
        from tarry.spark.steps.formats.avro_values import AvroDecoder

        return AvroDecoder(text, registry_at(decoding.registry) if decoding.registry else None)
    return JsonDecoder(json_types(text))
