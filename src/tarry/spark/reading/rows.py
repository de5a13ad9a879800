"""Rows: what a task reads, as Arrow batches in Spark's types; a record is never an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

from tarry.base.ids import TopicPartition
from tarry.client.arrow import scan
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.core.consumer.scan import OffsetRange
from tarry.spark.reading.schema import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa

# Columns that the client calls otherwise.
CLIENT_NAMES: Final = {"timestampType": "timestamp_type"}


def read_rows(
    ranges: Mapping[TopicPartition, OffsetRange],
    settings: Mapping[str, str],
    columns: tuple[str, ...],
) -> Iterator[pa.RecordBatch]:
    """Yield the records of these ranges as batches that Spark takes as they are."""
    schema = to_arrow_schema(spark_schema(columns), timezone="UTC")
    names = [CLIENT_NAMES.get(name, name) for name in columns]
    for batch in scan(ranges, settings, columns=names):
        yield as_spark_has_it(batch, schema)


def as_spark_has_it(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with Spark's names and types: a timestamp is in microseconds there."""
    pa = load_pyarrow()
    arrays: list[Any] = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
