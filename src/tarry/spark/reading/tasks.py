"""Tasks: what the driver hands to a worker, and the rows that the worker reads for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from tarry.spark.reading.plan import ReadRange
from tarry.spark.reading.rows import read_rows

if TYPE_CHECKING:
    import pyarrow as pa


class TaskPartition(InputPartition):
    """Ranges of one task by topic: partition, first offset, and the one behind the last."""

    def __init__(self, ranges: list[ReadRange]) -> None:
        by_topic: dict[str, list[tuple[int, int, int]]] = {}
        for one in ranges:
            by_topic.setdefault(one.topic, []).append((one.partition, one.first, one.end))
        super().__init__(by_topic)


class TaskReader:
    """Reader of tasks: all that a worker needs, which Spark pickles."""

    def __init__(self, settings: Mapping[str, str], columns: tuple[str, ...]) -> None:
        self.settings = settings
        self.columns = columns

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        ranges = {
            (topic, index): (first, end)
            for topic, parts in partition.value.items()
            for index, first, end in parts
        }
        if ranges:
            yield from read_rows(ranges, self.settings, self.columns)
