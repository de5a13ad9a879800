"""Records of a backfill: archived rows, and what the log has behind them, as one DataFrame.

Workers read the files themselves, so rows are those of the manifests whatever else lies beside
them, and each offset comes from one place: the archive, or the broker where the archive ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.manifest import ArchivedFile, OffsetSpan
from tarry.spark.archive.ordered_rows import ordered_rows
from tarry.spark.reading.columns.names import COLUMNS
from tarry.spark.reading.plan import ReadRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RecordTask:
    """Task of a worker: files of the archive at `path`, or ranges of the log; Spark pickles it."""

    path: str
    topic: str
    files: Sequence[tuple[ArchivedFile, OffsetSpan]] = ()
    ranges: Sequence[ReadRange] = ()
    # Of the topic that the archive holds; "" where the broker has none.
    topic_id: str = ""


class RecordReading:
    """Function that Spark's workers run on the numbers of tasks."""

    def __init__(self, tasks: Sequence[RecordTask], settings: Mapping[str, str]) -> None:
        self.tasks = tasks
        self.settings = settings

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self._rows(self.tasks[number])

    def _rows(self, task: RecordTask) -> Iterator[pa.RecordBatch]:
        from tarry.spark.reading.rows import RowReader

        for file, span in task.files:
            yield from _archived(Path(task.path), file, span)
        if task.ranges:
            reader = RowReader(self.settings, COLUMNS, fails_on_loss=True, clips_times=True)
            ranges = {(one.topic, one.partition): (one.first, one.end) for one in task.ranges}
            yield from reader.batches(ranges, {task.topic: task.topic_id} if task.topic_id else {})


def _archived(path: Path, file: ArchivedFile, span: OffsetSpan) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as the source gives them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from tarry.spark.reading.columns.schema import spark_schema
    from tarry.spark.reading.rows import CLIENT_NAMES, as_spark_has_it

    arrow = load_pyarrow()
    schema: Any = to_arrow_schema(spark_schema(COLUMNS), timezone="UTC")
    names = [CLIENT_NAMES.get(name, name) for name in COLUMNS]
    for rows in ordered_rows(path, [file], span.first, span.end):
        topics = arrow.repeat(arrow.scalar(file.topic, arrow.string()), rows.num_rows)
        records = rows.append_column("topic", topics).select(names)
        # As the stream has read them.
        yield as_spark_has_it(records, schema, clips_times=True)


def records_frame(
    spark: SparkSession, tasks: Sequence[RecordTask], settings: Mapping[str, str]
) -> DataFrame:
    """Return the records of all tasks, with the columns of the source."""
    from tarry.spark.reading.columns.schema import spark_schema

    schema = spark_schema(COLUMNS)
    if not tasks:
        return spark.createDataFrame([], schema)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(RecordReading(list(tasks), dict(settings)), schema)
