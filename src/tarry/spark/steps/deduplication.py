"""Step `deduplicate`: events that came before are marked, never dropped.

An event is a double of one that came earlier and whose event time is at most `within` away.  On a
stream an event older than `within` behind the newest is marked `late`: what came before is no
longer known, and a double that passed is worse than an event that is rejected and can be replayed.

On a stream what was seen is kept in buckets, see `steps.buckets.tree`: a micro-batch of M events
among N live ones reads and writes the roots of 64 buckets and at most min(M, 64 + N / 128) leaves,
each of at most 256 events and ten kilobytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tarry.spark.steps.columns import (
    ERROR,
    ORIGIN,
    RECORD,
    RULE,
    TIME,
    check_decoded,
    column,
    plain_names,
)
from tarry.spark.steps.refused import duration_ms
from tarry.spark.steps.states import BUCKETS, MILLISECOND_US, check_columns, check_state

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Column of the times that move the watermark of a stream.
WATCHED: Final = "_tarry_watched"


def deduplicate(df: DataFrame, *, by: Sequence[str], within: str) -> DataFrame:
    """Mark events whose columns `by` are those of an earlier one: `_rule` is `duplicate`.

    `within` is a time such as `24h`, of event time.  Rows that an earlier step marked, and events
    with a null in `by`, pass as they are.  Raises StepRefused.
    """
    from pyspark.sql import functions as of

    within_ms = duration_ms("within", within)
    check_decoded(df, "deduplicate", ("timestamp", *ORIGIN))
    check_columns(df, "deduplicate", list(by))
    told = f"an event with the same {', '.join(by)} came before, within {within}"
    if not df.isStreaming:
        return _mark_batch(df, list(by), within_ms * MILLISECOND_US, told)
    from pyspark.sql.types import StructField, StructType

    from tarry.spark.steps.buckets.chunks import BUCKET, CHUNK, CHUNK_SCHEMA, pack, unpack
    from tarry.spark.steps.event_marks import DIGEST, MICROS
    from tarry.spark.steps.seen_events import SeenEvents

    check_state(df, "deduplicate")
    # Of well events only: a rule may have rejected one for its time.
    well = of.when(of.col(RULE).isNull(), of.col(TIME))
    watched = df.withColumn(WATCHED, well).withWatermark(WATCHED, f"{within_ms} milliseconds")
    named = watched.drop(WATCHED).withColumns({DIGEST: _digest(_event(by)), MICROS: _micros()})
    # Spark takes names with dots and backticks apart on their way to Python.
    plain = plain_names(df.columns)
    named = named.toDF(*plain, DIGEST, MICROS)
    # Rows that need no state are shared out evenly.
    shared = of.coalesce(of.crc32(of.col(DIGEST)), of.col(RECORD)["offset"], of.lit(0))
    bucket = of.pmod(shared, of.lit(BUCKETS)).cast("int")
    chunks = named.withColumn(BUCKET, bucket).mapInArrow(pack, CHUNK_SCHEMA)
    processor = SeenEvents(plain, within_ms * MILLISECOND_US, told)
    marked = chunks.groupBy(BUCKET).transformWithState(
        processor, f"{CHUNK} binary", "append", "eventTime"
    )
    fields = zip(plain, df.schema.fields, strict=True)
    schema = StructType(
        [StructField(name, one.dataType, one.nullable, one.metadata) for name, one in fields]
    )
    return marked.mapInArrow(unpack, schema).toDF(*df.columns)


def _event(by: Sequence[str]) -> Column:
    """Name the event of a row; null for a row that needs no state."""
    from pyspark.sql import functions as of

    is_event = of.col(RULE).isNull() & of.col(TIME).isNotNull()
    for name in by:
        is_event &= column(name).isNotNull()
    exact = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
    event = of.to_json(of.struct(*[column(name) for name in by]), exact)
    return of.when(is_event, event)


def _digest(event: Column) -> Column:
    """Return 16 bytes that no two events share."""
    from pyspark.sql import functions as of

    return of.unhex(of.substring(of.sha2(event, 256), 1, 32))


def _micros() -> Column:
    from pyspark.sql import functions as of

    return of.unix_micros(of.col(TIME))


def _mark_batch(df: DataFrame, by: Sequence[str], within_us: int, told: str) -> DataFrame:
    """Mark the rows of a batch: the order in which they came is that of records' timestamps."""
    from pyspark.sql import Window, functions as of

    from tarry.spark.steps.event_marks import DUPLICATE, MICROS

    record = of.col(RECORD)
    arrival = of.struct(*[record[name] for name in ("timestamp", *ORIGIN)])
    # Rows without an event are shared out by their partition.
    group = of.coalesce(of.col("_tarry_event"), record["partition"].cast("string"))
    near = Window.partitionBy(group).orderBy(MICROS).rangeBetween(-within_us, within_us)
    keyed = df.withColumns({"_tarry_event": _event(by), MICROS: _micros(), "_tarry_came": arrival})
    seen = keyed.withColumn("_tarry_first", of.min("_tarry_came").over(near))
    is_double = of.col("_tarry_event").isNotNull() & (
        of.col("_tarry_first") < of.col("_tarry_came")
    )
    marked = seen.withColumns(
        {
            RULE: of.when(is_double, of.lit(DUPLICATE)).otherwise(of.col(RULE)),
            ERROR: of.when(is_double, of.lit(told)).otherwise(of.col(ERROR)),
        }
    )
    return marked.select(*[column(name) for name in df.columns])
