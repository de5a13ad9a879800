"""Rows: what a task reads, as Arrow batches in Spark's types; a record is never an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

from tarry.base.ids import TopicPartition
from tarry.client import ClientError, LogTruncated, OffsetOutOfRange, TopicRecreated, UnknownTopic
from tarry.client.arrow import scan
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.tables import positions_behind
from tarry.client.core.consumer.scan import OffsetRange
from tarry.spark.options import OptionRefused
from tarry.spark.reading.advance import why_gone
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.columns.schema import spark_schema
from tarry.spark.reading.loss import LostRange, raise_or_tell, within_logs
from tarry.spark.reading.plan import ReadRange

if TYPE_CHECKING:
    import pyarrow as pa

Ranges = dict[TopicPartition, OffsetRange]

# Columns that the client calls otherwise.
CLIENT_NAMES: Final = {"timestampType": "timestamp_type"}

# Times that are 64 bits in microseconds.
TIME_MS_MAX: Final = (2**63 - 1) // 1_000
TIME_MS_MIN: Final = -TIME_MS_MAX

# What a log says that is no longer what it was when the task was planned.
LOSSES: Final = (OffsetOutOfRange, LogTruncated, TopicRecreated, UnknownTopic)


class RowReader:
    """Reader of ranges into batches that Spark takes as they are."""

    def __init__(
        self,
        settings: Mapping[str, str],
        columns: tuple[str, ...],
        *,
        fails_on_loss: bool,
        loss_file: str = "",
        clips_times: bool = False,
    ) -> None:
        self._settings = settings
        self._names = [CLIENT_NAMES.get(name, name) for name in columns]
        self._schema: Any = to_arrow_schema(spark_schema(columns), timezone="UTC")
        self._fails_on_loss = fails_on_loss
        self._loss_file = loss_file
        self._clips_times = clips_times

    def batches(
        self,
        ranges: Ranges,
        topic_ids: Mapping[str, str] | None = None,
        epochs: Mapping[TopicPartition, int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of these ranges.

        What is lost while a task waits or reads fails it, or is left out: then reading goes on
        behind it.  Of a topic that was made anew, and has not the id that `topic_ids` has for it,
        nothing is read: its offsets are those of another log.  A log that was cut and written anew
        has records of a newer leader epoch than `epochs` has for it, and fails the task: where the
        query goes on there is for the driver to find.
        """
        left = dict(ranges)
        ids = dict(topic_ids or {})
        while left:
            try:
                yield from self._scanned(left, ids, epochs or {})
            except LOSSES as error:
                if self._fails_on_loss:
                    raise
                left = self._still_there(left, ids, error)
            else:
                return

    def _scanned(
        self, left: Ranges, ids: dict[str, str], epochs: Mapping[TopicPartition, int]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is left, and note how far that is."""
        meant = {topic: ids[topic] for topic, _ in left if topic in ids}
        newest = {place: epochs[place] for place in left if place in epochs}
        scanned = scan(left, self._settings, columns=self._names, topic_ids=meant, epochs=newest)
        for batch in scanned:
            for place, offset in positions_behind(batch).items():
                left[place] = (offset, max(offset, left[place][1]))
            yield as_spark_has_it(batch, self._schema, clips_times=self._clips_times)

    def _still_there(self, left: Ranges, ids: dict[str, str], error: ClientError) -> Ranges:
        """Return what the logs have of these ranges now; the error where nothing else is left."""
        wanted = [ReadRange(*place, first, end) for place, (first, end) in left.items()]
        with closing(LiveCluster(self._settings)) as cluster:
            names = tuple(dict.fromkeys(one.topic for one in wanted))
            topics = cluster.topics(TopicChoice(names=names))
            there: list[ReadRange] = []
            gone: list[LostRange] = []
            for one in wanted:
                reason = why_gone(one.topic, one.partition, ids.get(one.topic, ""), topics)
                if reason:
                    gone.append(LostRange(one.topic, one.partition, one.first, one.end, reason))
                else:
                    there.append(one)
            places = [(one.topic, one.partition) for one in there]
            readable, lost = within_logs(there, cluster.starts(places), cluster.ends(places))
        if not lost and not gone:
            # The logs have it all, so going on would fail in the same way.
            raise error
        raise_or_tell([*gone, *lost], is_failure=False, file=self._loss_file)
        return {(one.topic, one.partition): (one.first, one.end) for one in readable if one.size}


def as_spark_has_it(
    batch: pa.RecordBatch, schema: Any, *, clips_times: bool = False
) -> pa.RecordBatch:
    """Return a batch of these columns, in their order, with Spark's names and types.

    A time that Spark's type cannot hold is refused, or becomes the nearest one that it can.
    """
    arrays: list[Any] = []
    for column, field in zip(batch.columns, schema, strict=True):
        if field.name == "headers":
            arrays.append(_null_where_empty(column).cast(field.type))
        else:
            # A timestamp is in microseconds there.
            is_equal = column.type.equals(field.type)
            if clips_times and field.name == "timestamp":
                column = _clipped(column)  # noqa: PLW2901  # the column from now on
            arrays.append(column if is_equal else _cast(column, field))
    return load_pyarrow().RecordBatch.from_arrays(arrays, schema=schema)


def _clipped(times: Any) -> Any:
    """Return times in ms, none of which leaves 64 bits in microseconds."""
    compute: Any = import_module("pyarrow.compute")
    numbers = times.cast(load_pyarrow().int64())
    numbers = compute.max_element_wise(compute.min_element_wise(numbers, TIME_MS_MAX), TIME_MS_MIN)
    return numbers.cast(times.type)


def _cast(column: Any, field: Any) -> Any:
    try:
        return column.cast(field.type)
    except load_pyarrow().ArrowInvalid as error:
        raise OptionRefused(
            f"a record's {field.name} is not one that Spark's type can hold ({error}): read the "
            f"other columns alone, by the option columns without {field.name}, or give "
            "clipTimestamps=true"
        ) from None


def _null_where_empty(headers: Any) -> Any:
    """Return headers as Spark's Kafka source has them: a record without any has null."""
    compute: Any = import_module("pyarrow.compute")
    mask = compute.equal(compute.list_value_length(headers), 0)
    return type(headers).from_arrays(headers.offsets, headers.values, mask=mask)
