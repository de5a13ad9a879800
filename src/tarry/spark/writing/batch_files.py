"""Batch files: a task's rows become finished record batches in a file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from tarry.base.limits import SCHEDULE_PLACES_MAX
from tarry.client.arrow.finished_batches import BatchPacker, FinishedBatch
from tarry.client.face.clock import wall_ms
from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.columns import by_topic
from tarry.spark.writing.directory import SinkDirectory, local_path, refusal
from tarry.spark.writing.due_rows import DueRows
from tarry.spark.writing.plan import PlannedBatch, PlannedFile, TaskOutput, TaskPart
from tarry.spark.writing.topic_limits import TaskTopics, TopicLimits
from tarry.spark.writing.write_options import WriteOptions
from tarry.wire.crc32c import crc32c

if TYPE_CHECKING:
    import pyarrow as pa

# Part of a topic's max.message.bytes that a batch is filled to: compression may add to it.
FILLED_TENTHS: Final = 9


class BatchFile:
    """File that batches are appended to; made with the first of them."""

    def __init__(self, directory: SinkDirectory) -> None:
        self._directory = directory
        self._name = directory.new_task_file()
        self._file: BinaryIO | None = None
        self._size = 0
        self._crc = 0
        self._parts: dict[tuple[str, int], list[PlannedBatch]] = {}

    @property
    def path(self) -> Path:
        return self._directory.path / self._name

    def append(self, topic: str, batch: FinishedBatch) -> None:
        size = len(batch.data)
        try:
            if self._file is None:
                self._directory.make()
                self._file = open(self.path, "xb")  # noqa: SIM115  # `finish` or `drop` closes it
            self._file.write(batch.data)
        except OSError as error:
            raise refusal(self.path.parent, "cannot be written by a task", error) from error
        planned = PlannedBatch(0, self._size, size, batch.record_count)
        self._parts.setdefault((topic, batch.partition), []).append(planned)
        self._size += size
        self._crc = crc32c(batch.data, self._crc)

    def finish(self) -> TaskOutput:
        """Make the file durable and say what it holds."""
        if self._file is None:
            return TaskOutput()
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._directory.flush_names()
        except OSError as error:
            raise refusal(self.path.parent, "cannot be written by a task", error) from error
        parts = [TaskPart(*place, tuple(batches)) for place, batches in self._parts.items()]
        return TaskOutput(PlannedFile(self._name, self._size, self._crc), tuple(parts))

    def drop(self) -> None:
        """Remove the file: the task failed."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._directory.remove([self._name])


class TaskWriter:
    """Writer of one task's rows; `first_partition` is where rows without a key begin."""

    def __init__(self, options: WriteOptions, columns: list[str], first_partition: int) -> None:
        assert options.location is not None
        self._options = options
        self._columns = columns
        self._first_partition = first_partition
        # By topic, and whether their batches may wait.
        self._packers: dict[tuple[str, bool], BatchPacker] = {}
        self._file = BatchFile(SinkDirectory(local_path(options.location)))

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskOutput:
        """Write all rows to the file."""
        try:
            with Publisher(self._options.client_settings) as publisher:
                topics = TaskTopics(publisher)
                due_rows = DueRows(topics, self._options)
                for batch in batches:
                    self._write_rows(batch, due_rows, topics)
                for packer in self._packers.values():
                    self._append(topics.limits(packer.topic), packer.drain())
            return self._file.finish()
        except BaseException:
            self._file.drop()
            raise

    def _write_rows(self, batch: pa.RecordBatch, due_rows: DueRows, topics: TaskTopics) -> None:
        for topic, rows in by_topic(batch, self._columns, self._options.topic):
            now_ms = wall_ms()
            for part in due_rows.parts(topic, rows, now_ms):
                packer = self._packer(topic, topics, is_due=part.is_due)
                limits = topics.limits(topic)
                limits.check_rows(part.rows, now_ms, is_due=part.is_due)
                self._append(limits, packer.pack(part.rows, now_ms))
                if part.is_alone:
                    self._append(limits, packer.drain())
                    packer.any_partition = (packer.any_partition + 1) % packer.partition_count

    def _append(self, limits: TopicLimits, batches: Iterator[FinishedBatch]) -> None:
        for batch in batches:
            limits.check_batch(batch, wall_ms())
            self._file.append(limits.topic, batch)

    def _packer(self, topic: str, topics: TaskTopics, *, is_due: bool) -> BatchPacker:
        """Return the packer of a topic's rows that are due at once, or of the others."""
        packer = self._packers.get((topic, is_due))
        if packer is not None:
            return packer
        count = topics.partition_count(topic)
        limits = topics.limits(topic)
        settings, batch_bytes = self._options.producer_settings, self._options.batch_bytes
        if limits.batch_bytes_max is not None:
            # The topic decides: what a producer takes unless it is told otherwise is less.
            settings = self._options.settings_of_any_size()
            batch_bytes = min(batch_bytes, limits.batch_bytes_max * FILLED_TENTHS // 10)
        packer = self._packers[topic, is_due] = BatchPacker(topic, count, settings, batch_bytes)
        if "compression.type" not in self._options.settings:
            # It may have come compressed, from a topic that takes as much.
            packer.plain_bytes_max = limits.batch_bytes_max
        if is_due:
            packer.records_max = SCHEDULE_PLACES_MAX
        packer.any_partition = self._first_partition % count
        return packer
