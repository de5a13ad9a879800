"""Batch: what `spark.read` reads, planned once when the query is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tarry.spark.options import OptionRefused
from tarry.spark.reading.cluster import FoundTopic, LiveCluster, TopicLogs
from tarry.spark.reading.loss import raise_or_tell, within_logs
from tarry.spark.reading.plan import ReadRange, TaskLimits, plan_tasks
from tarry.spark.reading.read_options import ReadOptions
from tarry.spark.reading.resolve import find_chosen, places_of, resolve_end, resolve_start
from tarry.spark.reading.tasks import TaskPartition, TaskReader

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Reader of one batch."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.tasks = TaskReader(options)

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks."""
        with closing(LiveCluster(self.options.settings)) as cluster:
            topics = find_chosen(cluster, self.options.choice)
            ranges = self.narrowed(batch_ranges(self.options, cluster, topics), cluster)
        tasks = plan_tasks(ranges, task_limits(self.options))
        ids = {name: topic.topic_id for name, topic in topics.items()}
        # Spark makes a partition of its own where there is none.
        return [TaskPartition(task, ids) for task in tasks or [[]]]

    def narrowed(self, ranges: list[ReadRange], logs: TopicLogs) -> list[ReadRange]:
        """Return what is read of these ranges: all of it."""
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return self.tasks.read(partition)


def batch_ranges(
    options: ReadOptions, cluster: TopicLogs, topics: dict[str, FoundTopic]
) -> list[ReadRange]:
    """Return the ranges that a batch reads of these topics, all of which are there."""
    places = places_of(topics)
    if not places:
        return []
    firsts = resolve_start(options, places, cluster)
    ends = resolve_end(options.ending, places, cluster)
    ranges = [ReadRange(*place, firsts[place], ends[place]) for place in places]
    inverted = [one for one in ranges if one.size < 0]
    if inverted:
        told = ", ".join(
            f"{one.topic} [{one.partition}] from {one.first} to {one.end}" for one in inverted[:10]
        )
        raise OptionRefused(f"the start lies behind the end: {told}")
    readable, lost = within_logs(ranges, cluster.starts(places), cluster.ends(places))
    raise_or_tell(lost, options.fail_on_data_loss, file=options.loss_file)
    return readable


def task_limits(options: ReadOptions) -> TaskLimits:
    """Return what options and machine say about the number of tasks."""
    return TaskLimits(
        cores=options.cores or os.cpu_count() or 1,
        tasks=options.tasks,
        partitions_min=options.partitions_min,
        partition_records_max=options.partition_records_max,
    )
