"""Schema of what is read: that of Spark's Kafka source."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tarry.spark.options import OptionRefused
from tarry.spark.reading.columns.names import HEADERS

HEADERS_TYPE: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)

TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: HEADERS_TYPE,
}


def spark_schema(columns: tuple[str, ...]) -> StructType:
    """Return the schema of these columns."""
    return StructType([StructField(name, TYPES[name]) for name in columns])


def columns_by_schema(given: StructType, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that a given schema chooses of these.  Raises OptionRefused."""
    check_nullable(given)
    by_name = {field.name: field.dataType.simpleString() for field in spark_schema(columns)}
    names = tuple(given.names)
    for field in given:
        kind = field.dataType.simpleString()
        if by_name.get(field.name) != kind or names.count(field.name) > 1:
            raise OptionRefused(
                f".schema(...) has {field.name:.60} {kind:.100}, and a record has "
                f"{spark_schema(columns).simpleString()}: choose some of them. Fields of values "
                "are columns with the option valueFormat"
            )
    return names


def check_nullable(given: StructType) -> None:
    """Refuse a given schema where something must not be null.

    Spark compares it with the batches of a task, whose columns may all have nulls, and would fail
    each task with a sentence of its own.
    """
    for field in given:
        if not _may_be_null(field):
            raise OptionRefused(
                f".schema(...) has {field.name:.60} as not null, or something inside of it, and "
                "columns of this source may be null: leave NOT NULL out"
            )


def _may_be_null(field: StructField) -> bool:
    """Tell whether a field and all inside of it may be null."""
    return field.nullable and _has_nulls(field.dataType)


def _has_nulls(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(map(_may_be_null, kind))
    if isinstance(kind, ArrayType):
        return kind.containsNull and _has_nulls(kind.elementType)
    return not isinstance(kind, MapType) or (kind.valueContainsNull and _has_nulls(kind.valueType))
