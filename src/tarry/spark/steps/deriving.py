"""Step `derive`: columns that are computed from others of their row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tarry.spark.steps.checking import first_line, null_for_errors, quiet_context, why_no_stream
from tarry.spark.steps.columns import OWN, check_decoded, check_names, column, quoted
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def derive(df: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Add columns by expressions of Spark SQL, such as `price * count` or `customer.country`.

    They are added in their order, so an expression may use those before it.  What cannot be
    computed is null.  The record itself stays as it came.  Raises StepRefused for a name that is
    taken, and for an expression that has not one value for each row.
    """
    from pyspark.sql import functions as of

    check_decoded(df, "derive")
    for name, text in columns.items():
        check_names([*(one for one in df.columns if one not in OWN), name])
        _check_free(df, name)
        _check_expression(df, name, text)
        with null_for_errors(df.sparkSession):
            derived = df.withColumn(name, of.expr(text))
        names = [one for one in df.columns if one not in OWN]
        df = derived.select(*[column(one) for one in (*names, name, *OWN)])
    return df


def with_nested(df: DataFrame, names: Iterable[str]) -> DataFrame:
    """Add a column for each name that is the path of a field inside another one, such as
    `customer.country`; other names change nothing."""
    from pyspark.errors import AnalysisException

    for name in names:
        # Spark takes names that differ in the case of their letters for one.
        if "." not in name or name.lower() in (one.lower() for one in df.columns):
            continue
        text = ".".join(quoted(part) for part in name.split("."))
        try:
            with quiet_context():
                df.selectExpr(text)
        except AnalysisException:
            # No such field: the step that needs the column says so.
            continue
        df = derive(df, {name: text})
    return df


def _check_free(df: DataFrame, name: str) -> None:
    if name in df.columns:
        raise StepRefused(
            f"there is a column {name!r:.60} already: give the derived one another name"
        )


def _check_expression(df: DataFrame, name: str, text: str) -> None:
    """Refuse a text that has not one value for each row."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as of

    try:
        with quiet_context():
            # Beside the columns, so that a sum over all rows is refused.
            found = df.select("*", of.expr(text).alias("_asked"))
            # As a part of another one, which what makes several rows cannot be.
            df.select(of.when(of.lit(True), of.expr(text)).alias("_asked"))
        told = why_no_stream(found)
    except PySparkException as flaw:
        told = first_line(flaw)
    if told:
        names = ", ".join(one for one in df.columns if one not in OWN)
        raise StepRefused(
            f"the derived column {name!r:.60} is no expression over the columns {names:.300}: "
            f"{text!r:.200}: {told:.300}"
        )
