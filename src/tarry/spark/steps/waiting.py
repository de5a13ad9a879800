"""Step `wait`: waits that an event begins and another one completes, or that expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.spark.steps.aggregation import JSON_OPTIONS
from tarry.spark.steps.checking import check_expression, null_for_errors
from tarry.spark.steps.columns import RULE, TIME, check_decoded, column
from tarry.spark.steps.refused import StepRefused, duration_ms
from tarry.spark.steps.states import BUCKETS, MILLISECOND_US, check_columns, check_state
from tarry.spark.steps.wait_outcomes import ENDS, KINDS, STARTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def wait(
    df: DataFrame, *, key: str, start: str, until: str, within: str, late: str, topic: str
) -> DataFrame:
    """Return a record for each wait that ended: how, and when.

    An event for which `start` is true begins a wait of its `key`, unless one is open; the first one
    for which `until` is true completes it.  A wait that nothing completes `within` of event time
    expires.  A wait ends once, when the watermark has passed its end: the newest event time less
    `late`, of events of all kinds and keys.  The record's key is the wait's, its value JSON with
    key, outcome (`completed` or `expired`), began, ended and waited_ms.  Rows that an earlier step
    marked, and rows whose key is null, are left out; an expression that cannot be computed is not
    true.  Raises StepRefused.
    """
    from pyspark.sql import functions as of

    within_us = duration_ms("within", within) * MILLISECOND_US
    late_ms = duration_ms("late", late)
    check_decoded(df, "wait")
    check_columns(df, "wait", [key])
    check_expression(df, "start", start)
    check_expression(df, "until", until)
    if not df.isStreaming:
        raise StepRefused(
            "wait needs a stream: read it with readStream; a query with the trigger availableNow "
            "goes through what is there and ends"
        )
    check_state(df, "wait")
    from tarry.spark.steps.buckets.chunks import BUCKET
    from tarry.spark.steps.waits_on_events import OUTCOME_SCHEMA, WaitsOnEvents

    coded = _coded(df, key, start, until, late_ms)
    ended = coded.groupBy(BUCKET).transformWithState(
        WaitsOnEvents(within_us), OUTCOME_SCHEMA, "append", "eventTime"
    )
    told = of.struct(
        "key",
        "outcome",
        of.timestamp_micros("began").alias("began"),
        of.timestamp_micros("ended").alias("ended"),
        of.floor((of.col("ended") - of.col("began")) / MILLISECOND_US).alias("waited_ms"),
    )
    return ended.select(
        of.lit(topic).alias("topic"), "key", of.to_json(told, JSON_OPTIONS).alias("value")
    )


def _coded(df: DataFrame, key: str, start: str, until: str, late_ms: int) -> DataFrame:
    """Return the events that begin or complete waits, as numbers."""
    from pyspark.sql import functions as of

    from tarry.spark.steps.buckets.chunks import BUCKET

    kind = of.when(of.expr(start), STARTS).otherwise(0) + of.when(of.expr(until), ENDS).otherwise(0)
    text = _text_of(df, key)
    well = df.filter(of.col(RULE).isNull() & of.col(TIME).isNotNull())
    with null_for_errors(df.sparkSession):
        named = well.select(
            text.alias("key"), TIME, of.when(text.isNull(), 0).otherwise(kind).alias("kind")
        )
    # Every event moves the watermark, also one that begins and completes nothing.
    watched = named.withWatermark(TIME, f"{late_ms} milliseconds")
    coded = watched.select(
        of.pmod(of.xxhash64("key"), of.lit(BUCKETS)).cast("int").alias(BUCKET),
        "key",
        # By it Spark drops what comes behind the watermark.
        TIME,
        (of.unix_micros(TIME) * KINDS + of.col("kind")).alias("code"),
    )
    # By the code, which the time is a part of: Spark filters by anything else before the watermark.
    return coded.filter(of.pmod("code", of.lit(KINDS)) > 0)


def _text_of(df: DataFrame, key: str) -> Column:
    """Return a key as text; that of bytes is base64, as in the JSON of other steps."""
    from pyspark.sql import functions as of

    text = column(key)
    is_binary = df.schema[key].dataType.typeName() == "binary"
    return of.base64(text) if is_binary else text.cast("string")
