"""Step `derive`: columns that are computed from others of their row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tarry.spark.steps.checking import check_expression, null_for_errors, quiet_context
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
        names = [one for one in df.columns if one not in OWN]
        check_names([*names, name])
        if name in names:
            raise StepRefused(
                f"there is a column {name!r:.60} already: give the derived one another name"
            )
        check_expression(df, f"the derived column {name!r:.60}", text, is_rule=False)
        with null_for_errors(df.sparkSession):
            derived = df.withColumn(name, of.expr(text))
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
