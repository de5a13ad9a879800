"""Schema of what is read: that of Spark's Kafka source."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
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
