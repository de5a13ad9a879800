"""Expressions of a pipeline file: resolved by Spark before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.spark import steps
from tarry.spark.pipeline.file.mistakes import Mistake
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.queries import decoded_records, records_of
from tarry.spark.pipeline.stages import CLEAN, choose, stages_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def expression_mistakes(spark: SparkSession, pipeline: Pipeline) -> list[Mistake]:
    """Return what the schema and the expressions have that Spark cannot take."""
    if pipeline.clean is None:
        return []
    try:
        (stage,) = choose(stages_of(pipeline), CLEAN)
        decoded = decoded_records(pipeline, records_of(spark, pipeline, stage))
    except steps.StepRefused as refusal:
        return [pipeline.mistake(("decode",), str(refusal))]
    return [
        pipeline.mistake(("check", rule), sentence)
        for rule, text in pipeline.check.items()
        if (sentence := _refusal(decoded, rule, text))
    ]


def _refusal(decoded: DataFrame, rule: str, text: str) -> str:
    """Return why a rule cannot be taken; "" if it can."""
    try:
        steps.check(decoded, {rule: text})
    except steps.StepRefused as refusal:
        return str(refusal)
    return ""
