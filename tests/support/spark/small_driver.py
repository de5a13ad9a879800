"""A driver without Spark: micro-batches from a topic through the product's sink, then the archive.

    python -m tests.support.spark.small_driver BOOTSTRAP FOLDER STEP MISTAKE

It keeps its offsets and commits as Spark does: the end of a micro-batch is durable before the rows
are read, its commit behind the sink's.  Rows of the topic `in` go to `in.clean` or `in.rejected`;
the first two are archived.  STEP is JSON: an effect of the sink or a method of the archive's
directory, whether the process is killed behind it or before, and which one of the process it is.
MISTAKE is "" or one of `small_mistakes`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.support.spark.small_mistakes import ENDS_LATE, MISTAKES

from tarry.base.ids import TopicPartition
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.durable_files import create_if_absent, make_directories
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.rows import RowReader
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.commit import commit
from tarry.spark.writing.plan import TaskOutput
from tarry.spark.writing.publishing import Publishing
from tarry.spark.writing.write_options import parse_write_options

SOURCE = "in"
CLEAN = "in.clean"
REJECTED = "in.rejected"
PARTITIONS = 2
# Records of a partition that one micro-batch reads at most.
RECORDS_MAX = 60

# How long a driver whose mistake makes it stand still does so.
STANDS_MS_MAX = 5_000

Offsets = dict[TopicPartition, int]


def is_clean(value: bytes) -> bool:
    return not value.endswith(b"7")


def trap(step: tuple[str, bool, int] | None) -> None:
    """Kill this process at a step."""
    if step is None:
        return
    name, is_behind, nth = step
    count = 0

    def die(is_here: bool) -> None:
        if is_here:
            os.kill(os.getpid(), signal.SIGKILL)

    def trapped(plain: Any, is_wanted: Any) -> Any:
        def call(self: object, *arguments: Any) -> object:
            nonlocal count
            count += is_wanted(*arguments)
            is_here = is_wanted(*arguments) and count == nth
            die(is_here and not is_behind)
            told = plain(self, *arguments)
            die(is_here and is_behind)
            return told

        return call

    owner: Any = Publishing if name[0].isupper() else ArchiveDirectory
    method = "_carry_out" if owner is Publishing else name

    def is_wanted(*arguments: object) -> bool:
        return owner is not Publishing or type(arguments[0]).__name__ == name

    setattr(owner, method, trapped(getattr(owner, method), is_wanted))


class SmallDriver:
    """Driver of one query."""

    def __init__(self, bootstrap: str, folder: Path, limit_ms: int | None = None) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.folder = folder
        self.log = folder / "offsets"
        make_directories(self.log)
        given = {
            "kafka.bootstrap.servers": bootstrap,
            # Some ten batches of a partition and micro-batch: more than brokers remember.
            "kafka.batch.size": "100",
            "checkpointLocation": str(folder / "checkpoint"),
        }
        if limit_ms is not None:
            given["kafka.delivery.timeout.ms"] = given["kafka.request.timeout.ms"] = str(limit_ms)
            given["kafka.linger.ms"] = "0"
        self.options = parse_write_options(given, is_stream=True)

    def run(self) -> None:
        with_places = [(SOURCE, index) for index in range(PARTITIONS)]
        cluster = LiveCluster(self.settings)
        ends = cluster.ends(with_places)
        cluster.close()
        done = len(list(self.log.glob("commit-*")))
        begun = self.begin_of(done)
        while begun != ends:
            reached = {place: min(begun[place] + RECORDS_MAX, ends[place]) for place in begun}
            told = json.dumps([[*place, offset] for place, offset in reached.items()])
            # One that is there counts.
            create_if_absent(self.log / f"batch-{done}", told.encode())
            reached = self._end_of(done)
            commit(self.options, "query", done, self._tasks(begun, reached))
            create_if_absent(self.log / f"commit-{done}", b"")
            self.tell(begun)
            done, begun = done + 1, reached
        choice = TopicChoice(names=(SOURCE, CLEAN))
        options = ArchiveOptions(self.settings, by="none", round_records_max=100)
        for _ in archive(None, choice, self.folder / "archive", options):
            pass

    def begin_of(self, batch_id: int) -> Offsets:
        """Return where a micro-batch begins, by what is durable."""
        if batch_id:
            return self._end_of(batch_id - 1)
        return dict.fromkeys(((SOURCE, index) for index in range(PARTITIONS)), 0)

    def tell(self, offsets: Offsets) -> None:
        """Hear where a micro-batch began that is done; nobody needs it."""

    def _end_of(self, batch_id: int) -> Offsets:
        told = json.loads((self.log / f"batch-{batch_id}").read_text())
        return {(topic, index): offset for topic, index, offset in told}

    def _tasks(self, begun: Offsets, reached: Offsets) -> list[TaskOutput]:
        """Write the rows by tasks, shared out in another way each time."""
        ranges = {place: (begun[place], end) for place, end in reached.items()}
        reader = RowReader(self.settings, ("key", "value"), fails_on_loss=True)
        rows = pa.Table.from_batches(list(reader.batches(ranges)), reader._schema)
        clean = [is_clean(value) for value in rows["value"].to_pylist()]
        topics = pc.if_else(pa.array(clean, pa.bool_()), CLEAN, REJECTED)
        rows = rows.append_column("topic", topics)
        order = list(range(rows.num_rows))
        random.shuffle(order)
        tasks = random.randint(1, 3)
        columns = ["value", "key", "topic"]
        return [
            TaskWriter(self.options, columns, task).write(
                rows.take(order[task::tasks]).to_batches()
            )
            for task in range(tasks)
        ]


def main(arguments: list[str]) -> None:
    bootstrap, folder, step, mistake = arguments
    trap(json.loads(step))
    # Around the trap: the process dies in the middle of what is mistaken.
    if mistake:
        MISTAKES[mistake]()
    # One that can only stand still does not do so for long.
    limit_ms = STANDS_MS_MAX if mistake == ENDS_LATE else None
    SmallDriver(bootstrap, Path(folder), limit_ms).run()


if __name__ == "__main__":
    main(sys.argv[1:])
