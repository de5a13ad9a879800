"""Workers: who reads the ranges of a round and writes its files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from tarry.spark.archive.manifest import ArchivedFile
from tarry.spark.archive.parquet_files import ArchiveTask, write_files
from tarry.spark.reading.plan import ReadRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

# Where Spark does not tell how many tasks run at a time.
CORES: Final = 2


class Workers(Protocol):
    """Workers that take the tasks of a round."""

    def count(self) -> int:
        """Return how many tasks run at a time."""
        ...

    def run(self, task: ArchiveTask, tasks: list[list[ReadRange]]) -> list[ArchivedFile]:
        """Write the files of all tasks, and tell what they hold."""
        ...


class OwnWorker:
    """Worker of no Spark: this process takes one task after the other."""

    def count(self) -> int:
        return 1

    def run(self, task: ArchiveTask, tasks: list[list[ReadRange]]) -> list[ArchivedFile]:
        return [
            file
            for number, ranges in enumerate(tasks)
            for file in write_files(task, number, ranges)
        ]


class SparkWorkers:
    """Workers of a Spark session.  Rows never pass the JVM: only what the files hold is told."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def count(self) -> int:
        try:
            return max(1, self._spark.sparkContext.defaultParallelism)
        except Exception:
            # Spark Connect has no context.
            return CORES

    def run(self, task: ArchiveTask, tasks: list[list[ReadRange]]) -> list[ArchivedFile]:
        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    told = msgspec.json.encode(write_files(task, number, tasks[number]))
                    yield pyarrow.RecordBatch.from_pydict({"files": [told]})

        numbers = self._spark.range(0, len(tasks), 1, len(tasks))
        rows = numbers.mapInArrow(write, "files binary").collect()
        return [
            file
            for row in rows
            for file in msgspec.json.decode(bytes(row.files), type=list[ArchivedFile])
        ]
