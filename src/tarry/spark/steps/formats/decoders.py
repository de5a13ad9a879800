"""Decoders of values: a format and its schema, as they go to Spark's Python workers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarry.spark.steps.formats.json_values import JsonDecoder, json_types
from tarry.spark.steps.formats.registry import registry_at
from tarry.spark.steps.formats.text_values import TextDecoder
from tarry.spark.steps.formats.values import ValueDecoder
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMATS: Final = ("json", "avro", "protobuf", "text")

# What a format needs besides, by the name of its extra.
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
    """Read the schema.  Raises StepRefused for what does not go together."""
    is_struct = not isinstance(schema, str | Path | None)
    if is_struct and format != "json":
        raise StepRefused(f"the format {format} needs a schema of its own: name its file")
    text = _schema(format, schema, message, registry)
    return ValueDecoding(
        format, text, message or "", registry or "", time or "", is_struct=is_struct
    )


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
