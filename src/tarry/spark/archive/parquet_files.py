"""Parquet files of an archive, written by a worker from the ranges of its task."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tarry.base.ids import TopicPartition
from tarry.client.arrow import scan
from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.manifest import ArchivedFile
from tarry.spark.durable_files import flush_directory
from tarry.spark.reading.plan import ReadRange

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of a file; the topic is in its path.
COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp", "timestamp_type", "headers")

HOUR_MS: Final = 3_600_000
SLOT_MS: Final = {"hour": HOUR_MS, "day": 24 * HOUR_MS, "none": 0}

ROWS_MAX: Final = 65_536
# A row group is written when a file has so much waiting, in bytes of Arrow's buffers.
GROUP_BYTES: Final = 32 * 1024 * 1024
# What all files of a task may have waiting, and how many are open at a time.
WAITING_BYTES_MAX: Final = 256 * 1024 * 1024
OPEN_FILES_MAX: Final = 64
FILE_BYTES_MAX: Final = 512 * 1024 * 1024

# pyarrow, Spark and others pass over files whose names begin so, and say nothing.
HIDDEN: Final = ("_", ".")

# The first ms of the year 1000 and the last one of 9999: readers know dates of four digits.
FIRST_MS: Final = -30_610_224_000_000
LAST_MS: Final = 253_402_300_799_999

# Letters of a topic's name in that of a file, which has room for 255.
NAME_LETTERS_MAX: Final = 150

# Topic, partition, begin of the hour or day in ms.
Slot = tuple[str, int, int]


@dataclass(frozen=True)
class ArchiveTask:
    """Task of a worker: what it reads, and how and where it writes; Spark pickles it."""

    settings: Mapping[str, str]
    path: str
    run: str
    by: str
    compression: str
    # Topics that have got another id since the round was planned are not read.
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    # Leader epochs of the last records of the round: newer ones are of a log that was cut since.
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)


class HashedFile:
    """File that pyarrow writes to, with the SHA-256 of what was written."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("xb")
        self._digest = hashlib.sha256()
        self.size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Append bytes; nothing any more where the file was given up."""
        view = memoryview(data)
        if self._file.closed:
            return view.nbytes
        self._file.write(view)
        self._digest.update(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return the size so far."""
        return self.size

    def flush(self) -> None:
        """Hand over to the operating system."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Make the content durable."""
        if self.closed:
            return
        self.closed = True
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def give_up(self) -> None:
        """Close the file as it is: nobody will read it."""
        self.closed = True
        with suppress(OSError):
            # What waits for a full disk has no room now either.
            self._file.close()

    def hexdigest(self) -> str:
        """Return the digest of everything that was written."""
        return self._digest.hexdigest()


class SlotFile:
    """File of one slot that is being written."""

    def __init__(self, path: Path, schema: pa.Schema, compression: str) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._file = HashedFile(path)
        self._writer: Any = pq.ParquetWriter(self._file, schema, compression=compression)
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self.first = -1
        self.end = -1
        self.rows = 0

    @property
    def size(self) -> int:
        return self._file.size

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows, in the order of their offsets."""
        offsets = rows.column("offset")
        if self.first < 0:
            self.first = offsets[0].as_py()
        self.end = offsets[-1].as_py() + 1
        self.rows += rows.num_rows
        self._waiting.append(rows)
        self.waiting_bytes += rows.get_total_buffer_size()
        if self.waiting_bytes >= GROUP_BYTES:
            self.write()

    def write(self) -> None:
        """Write what waits, as one row group."""
        if self._waiting:
            table = load_pyarrow().Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting = []
        self.waiting_bytes = 0

    def give_up(self) -> None:
        """Let go of the file: the task failed."""
        self._file.give_up()
        with suppress(Exception):
            self._writer.close()

    def finish(self, place: TopicPartition, directory: str, run: str) -> ArchivedFile:
        """Make the file durable, and tell what it holds; readers will find it in `directory`."""
        self.write()
        self._writer.close()
        self._file.close()
        topic, partition = place
        name = f"{shown_name(topic)}-{partition}-{self.first:020}-{self.end:020}.parquet"
        return ArchivedFile(
            path=f"{directory}/{name}",
            staged=f"{run}/{self.path.name}",
            topic=topic,
            partition=partition,
            first=self.first,
            end=self.end,
            rows=self.rows,
            bytes=self._file.size,
            sha256=self._file.hexdigest(),
        )


def shown_name(topic: str) -> str:
    """Return what the name of a topic's file begins with, such that every reader takes it."""
    # The whole name is in that of the directory.
    short = topic[:NAME_LETTERS_MAX]
    return f"topic-{short}" if topic.startswith(HIDDEN) else short


def write_files(task: ArchiveTask, number: int, ranges: Sequence[ReadRange]) -> list[ArchivedFile]:
    """Read the ranges of a task, write their rows to files, and tell what the files hold.

    `number` is that of the task: names of its files are its own.
    """
    directory = Path(task.path) / task.run
    files: list[ArchivedFile] = []
    opened: dict[Slot, SlotFile] = {}
    try:
        for slot, rows in _rows_by_slot(task, ranges):
            file = opened.pop(slot, None)
            if file is None:
                if len(opened) >= OPEN_FILES_MAX:
                    oldest = next(iter(opened))
                    files.append(_finish(opened[oldest], oldest, task))
                    del opened[oldest]
                file = SlotFile(
                    directory / new_name(number, len(files) + len(opened)),
                    rows.schema,
                    task.compression,
                )
            # The file that was written to last stands at the end.
            opened[slot] = file
            file.add(rows)
            if file.size >= FILE_BYTES_MAX:
                files.append(_finish(opened[slot], slot, task))
                del opened[slot]
            elif sum(one.waiting_bytes for one in opened.values()) > WAITING_BYTES_MAX:
                for one in opened.values():
                    one.write()
        files += [_finish(file, slot, task) for slot, file in opened.items()]
    except BaseException:
        # A worker of Spark lives on for other tasks.
        for one in opened.values():
            one.give_up()
        raise
    flush_directory(directory)
    return files


def _finish(file: SlotFile, slot: Slot, task: ArchiveTask) -> ArchivedFile:
    return file.finish(slot[:2], slot_directory(slot, task.by), task.run)


def new_name(task_number: int, file_number: int) -> str:
    """Return a name that no other file has, also where Spark repeats a task."""
    return f"{task_number:06}-{file_number:06}-{os.urandom(4).hex()}.parquet"


def _rows_by_slot(
    task: ArchiveTask, ranges: Sequence[ReadRange]
) -> Iterator[tuple[Slot, pa.RecordBatch]]:
    """Yield rows of one partition and one hour or day each."""
    places = {(one.topic, one.partition): (one.first, one.end) for one in ranges}
    columns = ("topic", *COLUMNS)
    ids = {one.topic: task.topic_ids[one.topic] for one in ranges if task.topic_ids.get(one.topic)}
    epochs = {place: task.epochs[place] for place in places if place in task.epochs}
    scanned = scan(
        places, task.settings, columns=columns, max_rows=ROWS_MAX, topic_ids=ids, epochs=epochs
    )
    for batch in scanned:
        for topic, partition, rows in _runs(batch):
            for begin_ms, slotted in _slots(rows, SLOT_MS[task.by]):
                yield (topic, partition, begin_ms), slotted


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the rows of one partition each; those of one are together in a batch."""
    import pyarrow.compute as pc

    names = batch.column("topic")
    partitions = batch.column("partition")
    rows = batch.drop_columns(["topic"]).replace_schema_metadata(None)
    ends = {
        *pc.run_end_encode(names).run_ends.to_pylist(),
        *pc.run_end_encode(partitions).run_ends.to_pylist(),
    }
    begin = 0
    for end in sorted(ends):
        yield names[begin].as_py(), partitions[begin].as_py(), rows.slice(begin, end - begin)
        begin = end


def _slots(rows: pa.RecordBatch, slot_ms: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of one hour or day each, with its begin in ms.

    Times that no date tells, such as one in microseconds, lie in the first or the last slot.
    """
    import pyarrow.compute as pc

    if slot_ms == 0:
        yield 0, rows
        return
    pa = load_pyarrow()
    times = rows.column("timestamp").cast(pa.int64())
    times = pc.max_element_wise(pc.min_element_wise(times, LAST_MS), FIRST_MS)
    # Rounded down, before 1970 too.
    slots = pc.floor(pc.divide(times.cast(pa.float64()), float(slot_ms))).cast(pa.int64())
    lowest_highest = pc.min_max(slots).as_py()
    if lowest_highest["min"] == lowest_highest["max"]:
        yield lowest_highest["min"] * slot_ms, rows
        return
    for slot in pc.unique(slots).to_pylist():
        yield slot * slot_ms, rows.filter(pc.equal(slots, slot))


def slot_directory(slot: Slot, by: str) -> str:
    """Return where readers find the files of a slot, counted from the archive's path."""
    from datetime import UTC, datetime, timedelta

    topic, _, begin_ms = slot
    parts = [f"topic={topic}"]
    if by != "none":
        # Not by `fromtimestamp`, which refuses times before 1970 on some systems.
        begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=begin_ms)
        parts.append(f"date={begin:%Y-%m-%d}")
        if by == "hour":
            parts.append(f"hour={begin:%H}")
    return "/".join(parts)
