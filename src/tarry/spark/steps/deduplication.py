"""Step `deduplicate`: events that came before are marked, never dropped.

An event is a double of one that came earlier and whose event time is at most `within` away.  On a
stream an event older than `within` behind the newest is marked `late`: what came before is no
longer known, and a double that passed is worse than an event that is rejected and can be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarry.spark.steps.columns import ERROR, ORIGIN, RECORD, RULE, TIME, check_decoded
from tarry.spark.steps.refused import duration_ms
from tarry.spark.steps.states import MILLISECOND_US, check_columns, check_state

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def deduplicate(df: DataFrame, *, by: Sequence[str], within: str) -> DataFrame:
    """Mark events whose columns `by` are those of an earlier one: `_rule` is `duplicate`.

    `within` is a time such as `24h`, of event time.  Rows that an earlier step marked, and events
    with a null in `by`, pass as they are.  Raises StepRefused.
    """
    from tarry.spark.steps.seen_events import KEY_COLUMN, MICROS_COLUMN

    within_ms = duration_ms("within", within)
    check_decoded(df, "deduplicate", ("timestamp", *ORIGIN))
    check_columns(df, "deduplicate", list(by))
    told = f"an event with the same {', '.join(by)} came before, within {within}"
    keyed = df.withColumns({KEY_COLUMN: _key(by), MICROS_COLUMN: _micros()})
    if not df.isStreaming:
        return _mark_batch(keyed, within_ms * MILLISECOND_US, told).select(*df.columns)
    from tarry.spark.steps.seen_events import SeenEvents

    check_state(df, "deduplicate")
    # Spark drops late rows where it sees the watermark's column: it is hidden by a computed copy.
    watched = df.withWatermark(TIME, f"{within_ms} milliseconds")
    hidden = watched.withColumns(
        {KEY_COLUMN: _key(by), MICROS_COLUMN: _micros(), TIME: _unwatched()}
    )
    processor = SeenEvents(df.columns, within_ms * MILLISECOND_US, told)
    return hidden.groupBy(KEY_COLUMN).transformWithState(
        processor, df.schema, "append", "eventTime"
    )


def _key(by: Sequence[str]) -> Column:
    """Name the group of a row; rows that need no state are shared out by their partition."""
    from pyspark.sql import functions as of

    from tarry.spark.steps.seen_events import EVENT, PASSES

    is_event = of.col(RULE).isNull() & of.col(TIME).isNotNull()
    for name in by:
        is_event &= of.col(f"`{name}`").isNotNull()
    exact = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
    event = of.to_json(of.struct(*[of.col(f"`{name}`") for name in by]), exact)
    other = of.col(RECORD)["partition"].cast("string")
    return of.when(is_event, of.concat(of.lit(EVENT), event)).otherwise(
        of.concat(of.lit(PASSES), of.coalesce(other, of.lit("")))
    )


def _micros() -> Column:
    from pyspark.sql import functions as of

    return of.unix_micros(of.col(TIME))


def _unwatched() -> Column:
    from pyspark.sql import functions as of

    return of.timestamp_micros(of.unix_micros(of.col(TIME)))


def _mark_batch(keyed: DataFrame, within_us: int, told: str) -> DataFrame:
    """Mark the rows of a batch: the order in which they came is that of records' timestamps."""
    from pyspark.sql import Window, functions as of

    from tarry.spark.steps.seen_events import DUPLICATE, EVENT, KEY_COLUMN, MICROS_COLUMN

    record = of.col(RECORD)
    arrival = of.struct(*[record[name] for name in ("timestamp", *ORIGIN)])
    near = Window.partitionBy(KEY_COLUMN).orderBy(MICROS_COLUMN).rangeBetween(-within_us, within_us)
    seen = keyed.withColumn("_came", arrival).withColumn("_first", of.min("_came").over(near))
    is_double = of.col(KEY_COLUMN).startswith(EVENT) & (of.col("_first") < of.col("_came"))
    return seen.withColumns(
        {
            RULE: of.when(is_double, of.lit(DUPLICATE)).otherwise(of.col(RULE)),
            ERROR: of.when(is_double, of.lit(told)).otherwise(of.col(ERROR)),
        }
    )
