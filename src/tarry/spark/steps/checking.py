"""Step `check`: rules that rows must keep, as expressions of Spark SQL."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tarry.spark.steps.columns import ERROR, OWN, RULE, check_decoded, column
from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("tarry.spark")

ANSI: Final = "spark.sql.ansi.enabled"


def check(df: DataFrame, rules: Mapping[str, str]) -> DataFrame:
    """Mark rows that break a rule: `_rule` is the rule's name.

    A rule is an expression such as `amount > 0`; a row breaks it where it is false or null, and
    what cannot be computed, such as a division by zero, is null.  Whole numbers that leave 64 bits
    go round; `try_add` and its like are null then.  The first broken rule counts.  Rows that an
    earlier step marked keep their mark.  Raises StepRefused for a rule that is no
    expression of true or false over the columns.
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
    with null_for_errors(df.sparkSession):
        marked = df.withColumn("_broken", mark)
    marked = marked.withColumn(ERROR, of.coalesce(of.col(ERROR), sentence))
    marked = marked.withColumn(RULE, of.coalesce(of.col(RULE), of.col("_broken")))
    return marked.select(*[column(name) for name in df.columns])


def check_expression(df: DataFrame, what: str, text: str, *, is_rule: bool = True) -> None:
    """Refuse a text that is no expression over the decoded columns with one value for each row; a
    rule's value is true or false."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as of

    def refusal(told: str) -> StepRefused:
        names = ", ".join(name for name in df.columns if name not in OWN)
        return StepRefused(
            f"{what} is no expression over the columns {names:.300}: {text!r:.200}: {told:.300}"
        )

    try:
        with quiet_context():
            # Beside the columns, so that a sum over all rows is refused here and not at the start.
            found = df.select("*", of.expr(text).alias("_asked"))
            kind = found.schema["_asked"].dataType.simpleString()
            if not is_rule or kind == "boolean":
                # Spark refuses what makes several rows, such as explode, inside an expression.
                df.select(of.when(of.lit(True), of.expr(text)).alias("_asked"))
    except PySparkException as flaw:
        raise refusal(first_line(flaw)) from None
    if is_rule and kind != "boolean":
        raise StepRefused(f"{what} is {kind}, and it must be boolean: {text!r:.200}")
    told = why_no_stream(found)
    if told:
        raise refusal(told)


def why_no_stream(df: DataFrame) -> str:
    """Return why Spark would refuse to start a stream of these rows; "" if it would not."""
    from pyspark.errors import AnalysisException

    plan = getattr(df, "_jdf", None)
    if plan is None or not df.isStreaming:
        return ""
    # Any: objects of Java's have no types.
    java: Any = df.sparkSession._jvm  # there is no other way to ask for it
    sql = java.org.apache.spark.sql
    try:
        with quiet_context():
            sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(
                plan.queryExecution().analyzed(), sql.streaming.OutputMode.Append()
            )
    except AnalysisException as flaw:
        return first_line(flaw)
    except Exception:
        # Of a Spark that has no such check: the start says it.
        log.debug("Spark does not tell what a stream can have", exc_info=True)
    return ""


def first_line(flaw: PySparkException) -> str:
    """Return what Spark says, without its plans."""
    return str(flaw.getMessage() or flaw).strip().splitlines()[0].rstrip(";")


@contextmanager
def null_for_errors(spark: SparkSession) -> Iterator[None]:
    """Let expressions that are made meanwhile be null where they cannot be computed: one record
    that no rule has thought of would else end a stream for ever."""
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(ANSI, before or "true")


@contextmanager
def quiet_context() -> Iterator[None]:
    """Keep PySpark from logging what the refusal says."""
    from pyspark.logger import PySparkLogger

    # By PySpark's own function: a logger of another class would fail when it is used later.
    context = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_disabled = context.disabled
    context.disabled = True
    try:
        yield
    finally:
        context.disabled = was_disabled
