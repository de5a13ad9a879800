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

HEADERS: Final = ArrayType(
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
    "headers": HEADERS,
}


def spark_schema(columns: tuple[str, ...]) -> StructType:
    """Return the schema of these columns."""
    return StructType([StructField(name, TYPES[name]) for name in columns])


def check_schema(given: StructType, columns: tuple[str, ...]) -> None:
    """Refuse a schema that a user gave and that is not that of these columns."""
    wanted = spark_schema(columns)
    if given != wanted:
        raise OptionRefused(
            "the schema of this source is fixed: leave out .schema(...), and choose columns by the "
            f"option columns. It is {wanted.simpleString()}, not {given.simpleString():.300}"
        )
