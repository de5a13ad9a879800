"""Workers: who does the tasks of a job, such as to read ranges and to write them to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """Workers that take tasks, which are known by their numbers from 0 on."""

    def count(self) -> int:
        """Return how many tasks run at a time."""
        ...

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        """Do the work of each task; return what each tells, in the order of their numbers."""
        ...


class OwnWorker:
    """Worker of no Spark: this process takes one task after the other."""

    def count(self) -> int:
        return 1

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        return [work(number) for number in range(count)]


class SparkWorkers:
    """Workers of a Spark session.  Rows never pass the JVM: only what a task tells does."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def count(self) -> int:
        try:
            return max(1, self._spark.sparkContext.defaultParallelism)
        except Exception:
            # Spark Connect has no context.
            return CORES

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield pyarrow.RecordBatch.from_pydict(
                        {"number": [number], "told": [work(number)]}
                    )

        numbers = self._spark.range(0, count, 1, count)
        rows = numbers.mapInArrow(tell, "number bigint, told binary").collect()
        return [bytes(row.told) for row in sorted(rows, key=lambda row: int(row.number))]


def archive_files(
    workers: Workers, task: ArchiveTask, tasks: list[list[ReadRange]]
) -> list[ArchivedFile]:
    """Let workers write the files of all tasks; return what the files hold."""
    if not tasks:
        # A round that notes lost records alone; Spark has no job of no tasks.
        return []
    told = workers.each(
        lambda number: msgspec.json.encode(write_files(task, number, tasks[number])), len(tasks)
    )
    return [file for one in told for file in msgspec.json.decode(one, type=list[ArchivedFile])]
