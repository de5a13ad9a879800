"""Writers as Spark has them: of a stream, exactly once, and of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tarry.spark.options import OptionRefused
from tarry.spark.writing.columns import by_topic, check_columns
from tarry.spark.writing.plan import TaskOutput
from tarry.spark.writing.write_options import TASK_BATCH_BYTES, WriteOptions, parse_write_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TaskMessage(WriterCommitMessage):
    """Message of a task to the driver."""

    def __init__(self, output: TaskOutput) -> None:
        self.output = output


def _outputs_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskOutput]:
    return [one.output for one in messages if isinstance(one, TaskMessage)]


def _write_file(
    options: WriteOptions, columns: list[str], batches: Iterator[pa.RecordBatch]
) -> TaskMessage:
    from pyspark import TaskContext

    from tarry.spark.writing.batch_files import TaskWriter

    context = TaskContext.get()
    first = 0 if context is None else context.partitionId()
    return TaskMessage(TaskWriter(options, columns, first).write(batches))


def _drop(
    options: WriteOptions, batch_id: int, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Remove the files of tasks if one of them failed.  If none did, a commit was begun, and may
    have frozen them, or still do so: its process may live on."""
    from tarry.spark.writing.commit import drop

    if any(message is None for message in messages):
        drop(options, batch_id, _outputs_of(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writer of a stream."""

    def __init__(self, options: WriteOptions, columns: list[str]) -> None:
        self.options = options
        self.columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task to a file."""
        return _write_file(self.options, self.columns, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Freeze the micro-batch, publish and mark it."""
        from tarry.spark.writing.commit import commit, query_id_of

        assert self.options.checkpoint is not None
        query_id = query_id_of(self.options.checkpoint)
        commit(self.options, query_id, batchId, _outputs_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the files of tasks of a micro-batch that failed."""
        _drop(self.options, batchId, messages)


class ExactBatchWriter(DataSourceArrowWriter):
    """Writer of a batch with delivery=exactly-once."""

    def __init__(self, options: WriteOptions, columns: list[str]) -> None:
        self.options = options
        self.columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task to a file."""
        return _write_file(self.options, self.columns, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Freeze the write, publish and mark it."""
        from tarry.spark.writing.commit import commit_batch

        commit_batch(self.options, _outputs_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of tasks of a write that failed."""
        from tarry.spark.writing.commit import BATCH_ID

        _drop(self.options, BATCH_ID, messages)


class BatchWriter(DataSourceArrowWriter):
    """Writer of a batch: idempotent within a task, at least once over tasks that are repeated."""

    def __init__(self, options: WriteOptions, columns: list[str]) -> None:
        self.options = options
        self.columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task, and wait until all are acknowledged."""
        from tarry.client.arrow import ArrowProducer
        from tarry.client.face.clock import wall_ms
        from tarry.client.sync.publisher import Publisher
        from tarry.spark.writing.due_rows import DueRows
        from tarry.spark.writing.topic_limits import TaskTopics

        # A task has its rows at hand: requests of 16 KiB would cost the brokers most of the time.
        settings = {"batch.size": str(TASK_BATCH_BYTES), **self.options.settings}
        client_settings = self.options.client_settings
        with Publisher(client_settings) as publisher, ArrowProducer(settings) as producer:
            due_rows = DueRows(TaskTopics(publisher), self.options)
            for batch in iterator:
                for topic, rows in by_topic(batch, self.columns, self.options.topic):
                    for part in due_rows.parts(topic, rows, wall_ms()):
                        if not part.is_due:
                            producer.send(topic, part.rows)
                            continue
                        # No other rows wait with these in a batch.
                        producer.flush()
                        producer.send(topic, part.rows)
                        producer.flush()
            producer.flush()
        return WriterCommitMessage()


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> StreamWriter:
    """Make the writer of a stream.  Raises OptionRefused for what cannot be written."""
    if overwrite:
        raise OptionRefused(
            "the output mode complete would write every row again with each micro-batch: use "
            '"append" or "update"'
        )
    parsed = parse_write_options(options, is_stream=True)
    return StreamWriter(parsed, check_columns(schema, parsed.topic))


def make_batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceArrowWriter:
    """Make the writer of a batch.  Raises OptionRefused for what cannot be written."""
    if overwrite:
        raise OptionRefused('records of a topic cannot be overwritten: write with .mode("append")')
    parsed = parse_write_options(options, is_stream=False)
    columns = check_columns(schema, parsed.topic)
    if parsed.is_exactly_once:
        return ExactBatchWriter(parsed, columns)
    return BatchWriter(parsed, columns)
