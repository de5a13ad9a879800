"""Results of a backfill: windows computed in one go, beside what their topic has now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.backfill.plan import WindowSpan
from tarry.spark.backfill.state import ResultCounts
from tarry.spark.options import KAFKA_PREFIX
from tarry.spark.steps.aggregation import END, JSON_OPTIONS, START, WINDOW, result_columns
from tarry.spark.steps.columns import quoted
from tarry.spark.steps.formats.values import TIME_US_MAX, TIME_US_MIN
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.plan import TaskOutput
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from tarry.spark.pipeline.file.sections import AggregateSection

# What becomes of a result; the same ones are not written.
KIND: Final = "kind"
SAME: Final = "same"
NEW: Final = "new"
CHANGED: Final = "changed"
REMOVED: Final = "removed"

OLD_KEY: Final = "old_key"
OLD_VALUE: Final = "old_value"


class WrittenResults(msgspec.Struct, frozen=True):
    """Message of a task: the file of its batches, and its counts."""

    output: TaskOutput
    counts: ResultCounts


def within(windows: DataFrame, span: WindowSpan) -> DataFrame:
    """Return the windows that share time with a span and that the stream is done with."""
    from pyspark.sql import functions as of

    found = windows.filter(of.col(f"{WINDOW}.{END}") <= _time(span.closed_ms))
    if span.from_ms is not None:
        found = found.filter(of.col(f"{WINDOW}.{END}") > _time(span.from_ms))
    if span.until_ms is not None:
        found = found.filter(of.col(f"{WINDOW}.{START}") < _time(span.until_ms))
    return found


def _time(time_ms: int) -> Column:
    from pyspark.sql import functions as of

    return of.lit(moment_of(time_ms))


def moment_of(time_ms: int) -> datetime:
    """Return a time; one that no event has is the first one or the last one."""
    time_us = min(max(time_ms * 1_000, TIME_US_MIN), TIME_US_MAX)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)


def newest_results(spark: SparkSession, topic: str, settings: Mapping[str, str]) -> DataFrame:
    """Return the newest value of each key that the topic of the results has."""
    from pyspark.sql import functions as of

    reader = spark.read.format("tarry").options(
        **{KAFKA_PREFIX + key: text for key, text in settings.items()}
    )
    rows = reader.options(subscribe=topic, columns="key,value,partition,offset").load()
    newest = of.max_by("value", "offset").cast("string").alias(OLD_VALUE)
    # A key has one partition; where that was changed the offsets cannot be compared.
    return rows.groupBy(of.col("key").cast("string").alias(OLD_KEY)).agg(newest)


def compared(windows: DataFrame, one: AggregateSection, old: DataFrame) -> DataFrame:
    """Return `key`, `value` and what becomes of each result."""
    from pyspark.sql import functions as of

    results = windows.select(*result_columns(one.by, one.values))
    joined = results.join(old, results["key"] == old[OLD_KEY], "left")
    kind = (
        of.when(of.col(OLD_VALUE).isNull(), NEW)
        .when(of.col(OLD_VALUE) == of.col("value"), SAME)
        .otherwise(CHANGED)
    )
    found = joined.select("key", "value", kind.alias(KIND))
    return found if one.session is None else found.union(_swallowed(windows, results, one, old))


def _swallowed(
    windows: DataFrame, results: DataFrame, one: AggregateSection, old: DataFrame
) -> DataFrame:
    """Return a row without a value for each session that has become a part of another one.

    An event that comes late may join two sessions; their results have other keys than the new one.
    """
    from pyspark.sql import functions as of
    from pyspark.sql.types import StructField, StructType, TimestampType

    times = [StructField(name, TimestampType()) for name in (START, END)]
    schema = StructType([*times, *[windows.schema[name] for name in one.by]])
    key = of.from_json(OLD_KEY, schema, JSON_OPTIONS).alias("at")
    known = old.filter(of.col(OLD_VALUE).isNotNull()).select(OLD_KEY, key)

    def group(prefix: str) -> Column:
        names = [of.col(prefix + quoted(name)) for name in one.by]
        return of.to_json(of.struct(*names), JSON_OPTIONS) if names else of.lit("")

    before = known.select(OLD_KEY, "at.start", "at.end", group("at.").alias("group"))
    now = windows.select(
        of.col(f"{WINDOW}.{START}").alias("begin"),
        of.col(f"{WINDOW}.{END}").alias("finish"),
        group("").alias("of"),
    )
    is_part = (
        (of.col("group") == of.col("of"))
        & (of.col(START) < of.col("finish"))
        & (of.col("begin") < of.col(END))
    )
    parts = before.join(now, is_part, "left_semi")
    gone = parts.join(results, of.col(OLD_KEY) == of.col("key"), "left_anti")
    return gone.select(
        of.col(OLD_KEY).alias("key"),
        of.lit(None).cast("string").alias("value"),
        of.lit(REMOVED).alias(KIND),
    )


class ResultWriting:
    """Function that Spark's workers run on results: those that differ become finished batches."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        counted: dict[str, int] = {}
        writer = TaskWriter(self.options, ["key", "value"], number)
        output = writer.write(_different(batches, counted))
        counts = ResultCounts(
            windows=sum(counted.values()) - counted.get(REMOVED, 0),
            new=counted.get(NEW, 0),
            changed=counted.get(CHANGED, 0),
            removed=counted.get(REMOVED, 0),
        )
        told = msgspec.json.encode(WrittenResults(output, counts))
        yield load_pyarrow().RecordBatch.from_pydict({"told": [told]})


def _different(
    batches: Iterable[pa.RecordBatch], counted: dict[str, int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are to be written, and count all."""
    import pyarrow.compute as pc

    for batch in batches:
        kinds = batch.column(KIND)
        for found in pc.value_counts(kinds).to_pylist():
            counted[found["values"]] = counted.get(found["values"], 0) + found["counts"]
        rows = batch.filter(pc.not_equal(kinds, SAME))
        if rows.num_rows:
            yield rows


def write_results(results: DataFrame, options: WriteOptions) -> list[WrittenResults]:
    """Let workers write the results that differ as finished batches."""
    rows: list[Any] = results.mapInArrow(ResultWriting(options), "told binary").collect()
    return [msgspec.json.decode(bytes(row.told), type=WrittenResults) for row in rows]
