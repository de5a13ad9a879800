"""Step `aggregate`: results of windows of event time, one record each.

On a stream a window's result is written once, when the watermark has passed the window's end: the
newest event time less `late`.  What comes later is left out.  Spark drops it after each task has
summed up its events of each window and group, and counts these sums: not zero says that events were
late, not how many.  The job `backfill` mends the results, under the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tarry.spark.steps.checking import first_line, quiet_context, why_no_stream
from tarry.spark.steps.columns import RULE, TIME, check_decoded, column
from tarry.spark.steps.refused import StepRefused, duration_ms
from tarry.spark.steps.states import check_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

START: Final = "start"
END: Final = "end"
# Column of the window, with `start` and `end`, before it becomes JSON.
WINDOW: Final = "_window"

# Times in results, whatever the session's zone.
JSON_OPTIONS: Final = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "ignoreNullFields": "false",
}


def aggregate(
    df: DataFrame,
    *,
    window: str | None = None,
    slide: str | None = None,
    session: str | None = None,
    late: str,
    by: Sequence[str] = (),
    values: Mapping[str, str],
    topic: str,
) -> DataFrame:
    """Return a record for each window and group: key and value are JSON.

    `window` is the length of tumbling windows, or of sliding ones with `slide`; `session` is the
    gap that ends a session.  `values` are expressions such as `sum(amount)`.  Rows that an earlier
    step marked are left out.  Raises StepRefused.
    """
    from pyspark.sql import functions as of

    made = windows_of(
        df, window=window, slide=slide, session=session, late=late, by=by, values=values
    )
    return made.select(of.lit(topic).alias("topic"), *result_columns(by, values))


def windows_of(
    df: DataFrame,
    *,
    window: str | None,
    slide: str | None,
    session: str | None,
    late: str,
    by: Sequence[str],
    values: Mapping[str, str],
) -> DataFrame:
    """Return a row for each window and group: `_window`, the columns of the group, the values."""
    from pyspark.sql import functions as of

    check_decoded(df, "aggregate")
    late_ms = duration_ms("late", late)
    span = _span(window, slide, session)
    _check_values(df, by, values)
    well = df.filter(of.col(RULE).isNull() & of.col(TIME).isNotNull())
    if df.isStreaming:
        well = well.withWatermark(TIME, f"{late_ms} milliseconds")
    groups = [_group(df, name) for name in by]
    made = well.groupBy(span.alias(WINDOW), *groups).agg(
        *[of.expr(text).alias(name) for name, text in values.items()]
    )
    told = why_no_stream(made)
    if told:
        texts = ", ".join(values.values())
        raise StepRefused(f"a stream cannot have {texts:.200}: {told:.300}")
    return made


def _group(df: DataFrame, name: str) -> Column:
    """Return a column of the group; times are of one group as far as its key tells them apart."""
    from pyspark.sql import functions as of

    group = column(name)
    if df.schema[name].dataType.typeName() != "timestamp":
        return group
    return of.date_trunc("millisecond", group).alias(name)


def result_columns(by: Sequence[str], values: Mapping[str, str]) -> tuple[Column, Column]:
    """Return the columns `key` and `value` of the rows that `windows_of` makes."""
    from pyspark.sql import functions as of

    names = [column(name) for name in by]
    ends = [of.col(f"{WINDOW}.start").alias(START), of.col(f"{WINDOW}.end").alias(END)]
    results = [column(name) for name in values]
    return (
        of.to_json(of.struct(*ends, *names), JSON_OPTIONS).alias("key"),
        of.to_json(of.struct(*ends, *names, *results), JSON_OPTIONS).alias("value"),
    )


def _span(window: str | None, slide: str | None, session: str | None) -> Column:
    from pyspark.sql import functions as of

    if (window is None) == (session is None):
        raise StepRefused("aggregate needs either a window, such as 5m, or a session, such as 30m")
    if session is not None:
        if slide is not None:
            raise StepRefused("a session does not slide: leave out slide, or name a window")
        return of.session_window(TIME, f"{duration_ms('session', session)} milliseconds")
    assert window is not None
    length_ms = duration_ms("window", window)
    if slide is None:
        return of.window(TIME, f"{length_ms} milliseconds")
    slide_ms = duration_ms("slide", slide)
    if slide_ms > length_ms:
        raise StepRefused(
            f"slide={slide!r:.60} is longer than window={window!r:.60}, so that events between two "
            "windows would be in none"
        )
    return of.window(TIME, f"{length_ms} milliseconds", f"{slide_ms} milliseconds")


def _check_values(df: DataFrame, by: Sequence[str], values: Mapping[str, str]) -> None:
    """Refuse expressions that are no aggregates, and names that are taken."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as of

    if by:
        check_columns(df, "aggregate", list(by))
    if not values:
        raise StepRefused('aggregate needs values, such as {"orders": "count(*)"}')
    names = [name.lower() for name in (START, END, *by, *values)]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise StepRefused(f"the result would have the field {double!r:.60} twice: rename one")
    for name, text in values.items():
        try:
            with quiet_context():
                df.groupBy(*[column(one) for one in by]).agg(of.expr(text)).schema  # noqa: B018
        except PySparkException as flaw:
            raise StepRefused(
                f"the value {name!r:.60} is no aggregate, such as sum(amount): {text!r:.200}: "
                f"{first_line(flaw):.300}"
            ) from None
