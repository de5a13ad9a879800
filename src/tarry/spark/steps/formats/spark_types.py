"""Types of JSON values by types of Spark's: a schema that is DDL or a StructType."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import types as spark

from tarry.spark.steps.columns import check_names
from tarry.spark.steps.formats.json_columns import MEMBER, object_type
from tarry.spark.steps.formats.json_schema import JsonType
from tarry.spark.steps.refused import StepRefused

# The largest number of 32 bits.
FLOAT_MAX: Final = 2.0**128 - 2.0**104


def _whole(bits: int, column: pa.DataType) -> JsonType:
    limit = 2 ** (bits - 1)
    return JsonType(Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)], column)


SIMPLE: Final = {
    spark.ByteType: _whole(8, pa.int8()),
    spark.ShortType: _whole(16, pa.int16()),
    spark.IntegerType: _whole(32, pa.int32()),
    spark.LongType: _whole(64, pa.int64()),
    # A larger number would be infinite.
    spark.FloatType: JsonType(
        Annotated[float, msgspec.Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)], pa.float32()
    ),
    spark.DoubleType: JsonType(float, pa.float64()),
    spark.StringType: JsonType(str, pa.string()),
    # Base64, as msgspec and Spark have it.
    spark.BinaryType: JsonType(bytes, pa.binary()),
    spark.BooleanType: JsonType(bool, pa.bool_()),
    spark.DateType: JsonType(date, pa.date32()),
    spark.TimestampType: JsonType(
        Annotated[datetime, msgspec.Meta(tz=True)], pa.timestamp("us", "UTC")
    ),
    spark.TimestampNTZType: JsonType(
        Annotated[datetime, msgspec.Meta(tz=False)], pa.timestamp("us")
    ),
}


def read_struct(schema: spark.StructType) -> JsonType:
    """Return the types of records.  Raises StepRefused for what JSON has no values of."""
    check_names(schema.names)
    return _struct(schema, "")


def _struct(schema: spark.StructType, path: str) -> JsonType:
    if not schema.fields:
        raise StepRefused(f"the schema's struct {path or 'itself'} has no fields")
    members: list[Any] = []
    columns: list[pa.Field] = []
    names: dict[str, str] = {}
    for number, field in enumerate(schema.fields):
        found = _type_of(field.dataType, f"{path}.{field.name}" if path else field.name)
        columns.append(pa.field(field.name, found.column))
        member = MEMBER.format(number)
        names[member] = field.name
        members.append(
            (member, found.checked | None, None) if field.nullable else (member, found.checked)
        )
    return JsonType(object_type(members, names), pa.struct(columns))


def _type_of(kind: spark.DataType, path: str) -> JsonType:
    if isinstance(kind, spark.StructType):
        return _struct(kind, path)
    if isinstance(kind, spark.ArrayType):
        column, item = _item(kind.elementType, path, may_be_null=kind.containsNull)
        return JsonType(list[item], pa.list_(column))  # type: ignore[valid-type]
    if isinstance(kind, spark.MapType):
        if not isinstance(kind.keyType, spark.StringType):
            raise StepRefused(f"the keys of the map {path} are no strings: JSON has no other keys")
        column, item = _item(kind.valueType, path, may_be_null=kind.valueContainsNull)
        checked = dict[str, item]  # type: ignore[valid-type]
        return JsonType(checked, pa.map_(pa.string(), column))
    if isinstance(kind, spark.DecimalType):
        return JsonType(Decimal, pa.decimal128(kind.precision, kind.scale))
    found = SIMPLE.get(type(kind))
    if found is None:
        raise StepRefused(
            f"the column {path} is {kind.simpleString()}, and no value of JSON is: take string"
        )
    return found


def _item(kind: spark.DataType, path: str, *, may_be_null: bool) -> tuple[pa.DataType, Any]:
    found = _type_of(kind, path)
    return found.column, found.checked | None if may_be_null else found.checked
