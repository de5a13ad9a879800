"""Step `clean`: rows to records of two topics, the good ones and the rejected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.spark.steps.columns import ERROR, ORIGIN, RECORD, RULE, check_decoded
from tarry.spark.steps.formats.values import TIME_US_MAX
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Headers that a rejected record gets besides its own.
ERROR_RULE_HEADER: Final = "x-error-rule"
ERROR_HEADER: Final = "x-error"
# Topic, partition and offset that the record came from, as `orders/3/1200`.
ORIGIN_HEADER: Final = "x-origin"

NEEDS: Final = ("key", "value", "headers", "timestamp", *ORIGIN)


def clean(df: DataFrame, *, topic: str, rejected: str) -> DataFrame:
    """Return each record as it came, for the topic that it belongs to.

    The columns are those that the format `tarry` writes: topic, key, value, headers, timestamp.  A
    record that an earlier step marked goes to `rejected`, with headers that say the rule
    (`x-error-rule`), the reason (`x-error`) and where it came from (`x-origin`).  A record without
    a time, or with one behind the year 9998, gets that of its writing.
    """
    from pyspark.sql import functions as of

    check_decoded(df, "clean", NEEDS)
    if topic == rejected:
        raise StepRefused(
            f"good and rejected records go to one topic, {topic!r:.60}: name another for rejected"
        )
    record = of.col(RECORD)

    def header(name: str, text: Column) -> Column:
        return of.struct(of.lit(name).alias("key"), of.encode(text, "UTF-8").alias("value"))

    origin = of.concat_ws("/", *[record[name].cast("string") for name in ORIGIN])
    told = of.array(
        header(ERROR_RULE_HEADER, of.col(RULE)),
        header(ERROR_HEADER, of.coalesce(of.col(ERROR), of.lit(""))),
        header(ORIGIN_HEADER, origin),
    )
    headers = df.schema[RECORD].dataType["headers"].dataType.simpleString()  # type: ignore[index]
    own = of.coalesce(record["headers"], of.array().cast(headers))
    is_well = of.col(RULE).isNull()
    time = record["timestamp"]
    # -1 ms is that of a record without a time; no topic takes it, nor one that is far away.
    is_time = time.between(of.timestamp_micros(of.lit(0)), of.timestamp_micros(of.lit(TIME_US_MAX)))
    return df.select(
        of.when(is_well, of.lit(topic)).otherwise(of.lit(rejected)).alias("topic"),
        record["key"].alias("key"),
        record["value"].alias("value"),
        of.when(is_well, record["headers"]).otherwise(of.concat(own, told)).alias("headers"),
        of.when(is_time, time).alias("timestamp"),
    )
