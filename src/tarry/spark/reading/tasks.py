"""Tasks: what the driver hands to a worker, and the rows that the worker reads for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition
from tarry.spark.reading.plan import ReadRange
from tarry.spark.reading.read_options import ReadOptions
from tarry.spark.reading.rows import Ranges, RowReader

if TYPE_CHECKING:
    import pyarrow as pa


class RangeTwice(TarryError):
    """Error of a task with two ranges of one partition, one of which would not be read."""


class TaskPartition(InputPartition):
    """Ranges of one task by topic: partition, first offset, and the one behind the last.

    `topic_ids` has the id that each topic had when the task was planned, `epochs` the leader epoch
    of the last record of each partition that the micro-batch reads, as far as they are known.
    """

    def __init__(
        self,
        ranges: list[ReadRange],
        topic_ids: Mapping[str, str] | None = None,
        epochs: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        by_topic: dict[str, list[tuple[int, int, int]]] = {}
        for one in ranges:
            by_topic.setdefault(one.topic, []).append((one.partition, one.first, one.end))
        ranges_of(by_topic)
        super().__init__(by_topic)
        ids = topic_ids or {}
        self.topic_ids = {topic: ids[topic] for topic in by_topic if ids.get(topic)}
        places = [(one.topic, one.partition) for one in ranges]
        self.epochs = {place: epochs[place] for place in places if epochs and place in epochs}


class TaskReader:
    """Reader of tasks: all that a worker needs, which Spark pickles."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        ranges = ranges_of(partition.value)
        if ranges:
            options = self.options
            reader = RowReader(
                options.settings,
                options.columns,
                fails_on_loss=options.fail_on_data_loss,
                loss_file=options.loss_file,
                clips_times=options.clips_times,
            )
            assert isinstance(partition, TaskPartition)
            batches = reader.batches(ranges, partition.topic_ids, partition.epochs)
            yield from batches if options.values is None else options.values.batches(batches)


def ranges_of(by_topic: Mapping[str, list[tuple[int, int, int]]]) -> Ranges:
    """Return the ranges of a task by partition; raise where one would take the place of another,
    whose records nobody would miss."""
    ranges: Ranges = {}
    for topic, parts in by_topic.items():
        for partition, first, end in parts:
            if (topic, partition) in ranges:
                begin, stop = ranges[topic, partition]
                raise RangeTwice(
                    f"a task has two ranges of {topic} [{partition}], {begin} to {stop} and "
                    f"{first} to {end}, and would read one of them: nothing was read. This is a "
                    "fault of Tarry: please report it with this sentence and the query's options"
                )
            ranges[topic, partition] = first, end
    return ranges
