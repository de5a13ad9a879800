"""Step `check`: rules that rows must keep, as expressions of Spark SQL."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tarry.spark.steps.columns import ERROR, OWN, RULE, check_decoded
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check(df: DataFrame, rules: Mapping[str, str]) -> DataFrame:
    """Mark rows that break a rule: `_rule` is the rule's name.

    A rule is an expression such as `amount > 0`; a row breaks it where it is false or null.  The
    first broken rule counts.  Rows that an earlier step marked keep their mark.  Raises StepRefused
    for a rule that is no expression of true or false over the columns.
    """
    from pyspark.sql import functions as of

    check_decoded(df, "check")
    for name, text in rules.items():
        check_expression(df, f"the rule {name!r:.60}", text)
    if not rules:
        return df
    broken = of.lit(None).cast("string")
    for name, text in reversed(list(rules.items())):
        keeps = of.coalesce(of.expr(text), of.lit(False))
        broken = of.when(~keeps, of.lit(name)).otherwise(broken)
    mark = of.when(of.col(RULE).isNull(), broken)
    texts = of.create_map(*[of.lit(part) for rule in rules.items() for part in rule])
    sentence = of.concat(of.lit("not true: "), texts[of.col("_broken")])
    marked = df.withColumn("_broken", mark)
    marked = marked.withColumn(ERROR, of.coalesce(of.col(ERROR), sentence))
    marked = marked.withColumn(RULE, of.coalesce(of.col(RULE), of.col("_broken")))
    return marked.select(*df.columns)


def check_expression(df: DataFrame, what: str, text: str, kind: str = "boolean") -> None:
    """Refuse a text that is no expression of a type over the decoded columns."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as of

    try:
        with quiet_context():
            # Beside the columns, so that a sum over all rows is refused here and not at the start.
            found = df.select("*", of.expr(text).alias("_asked")).schema
    except PySparkException as flaw:
        told = str(flaw.getMessage() or flaw).strip().splitlines()[0]
        names = ", ".join(name for name in df.columns if name not in OWN)
        raise StepRefused(
            f"{what} is no expression over the columns {names:.300}: {text!r:.200}: {told:.300}"
        ) from None
    is_of = found["_asked"].dataType.simpleString()
    if is_of != kind:
        raise StepRefused(f"{what} is {is_of}, and it must be {kind}: {text!r:.200}")


@contextmanager
def quiet_context() -> Iterator[None]:
    """Keep PySpark from logging what the refusal says."""
    context = logging.getLogger("SQLQueryContextLogger")
    was_disabled = context.disabled
    context.disabled = True
    try:
        yield
    finally:
        context.disabled = was_disabled
