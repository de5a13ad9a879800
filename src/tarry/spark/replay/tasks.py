"""Tasks of a replay: a worker reads archived rows in order and writes finished batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.manifest import ArchivedFile
from tarry.spark.archive.ordered_rows import ordered_rows
from tarry.spark.reading.plan import ReadRange
from tarry.spark.replay.plan import AskedReplay
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.plan import TaskOutput
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ReplayPart:
    """Offsets of one partition, and the files that have them."""

    read: ReadRange
    files: list[ArchivedFile]


@dataclass(frozen=True)
class ReplayTask:
    """Task of a worker; Spark pickles it."""

    path: str
    asked: AskedReplay
    options: WriteOptions
    number: int
    parts: list[ReplayPart]


def write_batches(task: ReplayTask) -> TaskOutput:
    """Write the records of a task as finished batches, each partition in its order."""
    columns = ["key", "value", "headers", "timestamp"]
    if task.asked.keep_partitions:
        columns.append("partition")
    return TaskWriter(task.options, columns, task.number).write(_rows(task))


def _rows(task: ReplayTask) -> Iterator[pa.RecordBatch]:
    for part in task.parts:
        for rows in ordered_rows(Path(task.path), part.files, part.read.first, part.read.end):
            yield _of_times(rows, task.asked)


def _of_times(rows: pa.RecordBatch, asked: AskedReplay) -> pa.RecordBatch:
    """Return the rows of the times that are asked for; those without a time get that of now."""
    import pyarrow.compute as pc

    arrow = load_pyarrow()
    times: Any = rows.column("timestamp").cast(arrow.int64())
    mask: Any = None
    if asked.from_ms is not None:
        mask = pc.greater_equal(times, asked.from_ms)
    if asked.until_ms is not None:
        before = pc.less(times, asked.until_ms)
        mask = before if mask is None else pc.and_(mask, before)
    index = rows.schema.names.index("timestamp")
    # Kafka's "no time" is -1, which no producer may send.
    known = pc.if_else(pc.less(times, 0), arrow.scalar(None, arrow.int64()), times)
    rows = rows.set_column(index, "timestamp", known)
    return rows if mask is None else rows.filter(mask)
