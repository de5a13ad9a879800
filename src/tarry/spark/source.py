"""Source: the format `tarry` as Spark asks for it.

What a user gives is checked here; all else is loaded when it is needed, because Spark imports this
module in every session that looks for formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class TarrySource(DataSource):
    """Format `tarry`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tarry"

    def schema(self) -> StructType:
        """Return the columns that the options choose."""
        from tarry.spark.installed import check_pyspark
        from tarry.spark.options import OptionTexts
        from tarry.spark.reading.read_options import schema_of

        check_pyspark()
        return schema_of(OptionTexts(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        from tarry.spark.reading.batch import BatchReader
        from tarry.spark.reading.read_options import parse_read_options

        options = parse_read_options(self.options, is_stream=False, schema=schema)
        if options.has_filters:
            from tarry.spark.reading.filters import FilteringBatchReader

            return FilteringBatchReader(options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        from tarry.spark.reading.read_options import parse_read_options
        from tarry.spark.reading.stream import StreamReader

        return StreamReader(parse_read_options(self.options, is_stream=True, schema=schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        from tarry.spark.writing.writers import make_batch_writer

        return make_batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream."""
        from tarry.spark.writing.writers import make_stream_writer

        return make_stream_writer(self.options, schema, overwrite=overwrite)
