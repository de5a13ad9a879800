"""Step `decode`: values of records to columns, on batches of Arrow in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tarry.spark.steps.columns import ERROR, RECORD, RULE, TIME
from tarry.spark.steps.formats.decoders import ValueDecoding, decoder_of, value_decoding
from tarry.spark.steps.formats.values import (
    TIME_US_MAX,
    TIME_US_MIN,
    ValueDecoder,
)
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# What `_rule` says of a value that could not be decoded.
DECODE: Final = "decode"

# Times that Python can tell in every zone.
TIME_MS_MIN: Final = TIME_US_MIN // 1_000
TIME_MS_MAX: Final = TIME_US_MAX // 1_000

# An event may be this far ahead of its record: clocks differ, and zones are mistaken.
AHEAD_MAX: Final = timedelta(days=1)

TIMESTAMP: Final = pa.timestamp("us", "UTC")

TYPE_TEXTS: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "bool",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date32[day]",
    TIMESTAMP: "timestamp[us, tz=UTC]",
}


def decode(
    df: DataFrame,
    *,
    format: str,
    schema: str | Path | StructType | None = None,
    message: str | None = None,
    registry: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Decode the column `value` to columns.

    `format` is `json` (`schema` is a file of JSON Schema, or a StructType), `avro` (a schema,
    `.avsc`), `protobuf` (a descriptor set; `message` names the type) or `text` (one column,
    `text`).  `registry` is the address of a schema registry: values of Avro and Protobuf then begin
    with its frame, and Avro is read by its writer's schema; before JSON a frame is passed over
    always.
    `time` names the field that is the event time: a date-time, or an integer of milliseconds since
    1970, not more than a day ahead of the record's timestamp; without `time` it is that timestamp,
    which must lie between the years 1970 and 9998.
    A value that cannot be decoded is not dropped: its `_rule` is `decode` and its `_error` a
    sentence.  Raises StepRefused.
    """
    made = value_decoding(format, schema, message, registry, time)
    for needed in ("value", "timestamp"):
        if needed not in df.columns:
            raise StepRefused(
                f"decode needs the column {needed}, as the source of topics gives it, and there "
                f"are {', '.join(df.columns)}"
            )
    fields = decoder_of(made).fields
    return df.mapInArrow(BatchDecoding(made), decoded_schema(fields, df.schema))


def column_types(
    *, format: str, schema: str | Path | None, message: str | None, registry: str | None
) -> dict[str, pa.DataType]:
    """Return the types of the columns that `decode` makes of values.  Raises StepRefused."""
    decoder = decoder_of(value_decoding(format, schema, message, registry))
    return {field.name: field.type for field in decoder.fields}


def type_text(kind: pa.DataType) -> str:
    """Return the text of a column's type, which checkpoints keep: it never changes."""
    if pa.types.is_struct(kind):
        fields = (kind.field(place) for place in range(kind.num_fields))
        return f"struct<{', '.join(f'{one.name}: {type_text(one.type)}' for one in fields)}>"
    if pa.types.is_list(kind):
        return f"list<item: {type_text(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal128({kind.precision}, {kind.scale})"
    return TYPE_TEXTS[kind]


def decoded_schema(fields: pa.StructType, source: StructType) -> StructType:
    """Return the schema of what is decoded, and of the steps' own columns."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    decoded = [StructField(field.name, from_arrow_type(field.type)) for field in fields]
    own = [
        StructField(RECORD, source),
        StructField(TIME, TimestampType()),
        StructField(RULE, StringType()),
        StructField(ERROR, StringType()),
    ]
    return StructType(decoded + own)


class BatchDecoding:
    """Function that Spark's workers run on batches."""

    def __init__(self, decoding: ValueDecoding) -> None:
        self.decoding = decoding

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = decoder_of(self.decoding)
        for batch in batches:
            yield decode_batch(decoder, batch, self.decoding.time)


def decode_batch(decoder: ValueDecoder, batch: pa.RecordBatch, time: str) -> pa.RecordBatch:
    """Return the columns of a batch: decoded fields, then those of the steps."""
    columns, _ = decoded_columns(decoder, batch, batch.schema.names, time)
    return pa.RecordBatch.from_pydict(columns)


def decoded_columns(
    decoder: ValueDecoder, batch: pa.RecordBatch, record: Sequence[str], time: str | None
) -> tuple[dict[str, pa.Array], list[str | None]]:
    """Return the columns of a batch by name, and the reason why a row could not be decoded.

    `record` are the columns that go into `_record`.  `time` names the field of the event time; ""
    is the record's timestamp, and with None no event times are made.
    """
    decoded = decoder.decode_all(batch.column("value").to_pylist())
    errors = decoded.errors
    # Flattened: a row without fields is null in each of them.
    columns = dict(zip(decoder.fields.names, decoded.columns.flatten(), strict=True))
    if record:
        parts = batch.select(record)
        columns[RECORD] = pa.StructArray.from_arrays(parts.columns, fields=list(parts.schema))
    if time is not None:
        columns[TIME], errors = event_times(columns, batch, errors, time)
    rules = [None if error is None else DECODE for error in errors]
    columns[RULE] = pa.array(rules, pa.string())
    columns[ERROR] = pa.array(errors, pa.string())
    return columns, errors


def event_times(
    columns: Mapping[str, pa.Array], batch: pa.RecordBatch, errors: list[str | None], time: str
) -> tuple[pa.Array, list[str | None]]:
    """Return the event times, by the field `time` or by records' timestamps, and the errors: a row
    without one has another."""
    written = batch.column("timestamp")
    if not time:
        times = _known_times(written)
        if times.null_count:
            errors = [
                "the record's time is the event time, and it has none that lies between the years "
                "1970 and 9998"
                if error is None and not is_there
                else error
                for error, is_there in zip(errors, times.is_valid().to_pylist(), strict=True)
            ]
        return times, errors
    given = _field_at(columns, time)
    times = _event_times(given)
    if times.null_count:
        errors = [
            f"field {time} is the event time, and it is {_no_time(given[row].as_py())}"
            if error is None and not is_there
            else error
            for row, (error, is_there) in enumerate(
                zip(errors, times.is_valid().to_pylist(), strict=True)
            )
        ]
    return _without_future(times, written, errors, time)


def _field_at(columns: Mapping[str, pa.Array], name: str) -> pa.Array:
    """Return a column, or the field that a path names."""
    if name in columns:
        return columns[name]
    compute: Any = import_module("pyarrow.compute")
    first, *rest = name.split(".")
    column = columns[first]
    for part in rest:
        column = compute.struct_field(column, part)
    return column


def _known_times(written: pa.Array) -> pa.Array:
    """Return records' times, null where a record has none (-1) or one that Python cannot tell."""
    compute: Any = import_module("pyarrow.compute")
    times = written.cast(TIMESTAMP)
    micros = times.cast(pa.int64())
    is_known = compute.and_(
        compute.greater_equal(micros, 0), compute.less_equal(micros, TIME_US_MAX)
    )
    return compute.if_else(is_known, times, pa.scalar(None, TIMESTAMP))


def _event_times(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.cast(TIMESTAMP)
    micros = [
        one * 1_000 if one is not None and TIME_MS_MIN <= one <= TIME_MS_MAX else None
        for one in column.to_pylist()
    ]
    return pa.array(micros, pa.int64()).cast(TIMESTAMP)


def _without_future(
    times: pa.Array, written: pa.Array, errors: list[str | None], name: str
) -> tuple[pa.Array, list[str | None]]:
    """Take times that lie ahead of their record for wrong.

    One wrong clock would else move the watermark of a stream, and make all others late.
    """
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    # A record without a time says nothing of its event's.
    limit = compute.add(_known_times(written), pa.scalar(AHEAD_MAX))
    is_ahead = compute.fill_null(compute.greater(times, limit), False)
    if not is_ahead.true_count:
        return times, errors
    told = [
        f"field {name} is the event time, and it is more than a day ahead of the record's time"
        if ahead and error is None
        else error
        for ahead, error in zip(is_ahead.to_pylist(), errors, strict=True)
    ]
    return compute.if_else(is_ahead, pa.scalar(None, TIMESTAMP), times), told


def _no_time(value: object) -> str:
    return "null" if value is None else f"{value}, which is no time between the years 2 and 9998"
