"""Expressions of a pipeline file: resolved by Spark before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tarry.spark import steps
from tarry.spark.pipeline.file.mistakes import Mistake
from tarry.spark.pipeline.file.sections import AggregateSection, Pipeline
from tarry.spark.pipeline.file.toml_lines import KeyPath
from tarry.spark.pipeline.queries import aggregate_frame, read_decoded
from tarry.spark.pipeline.stages import CLEAN, choose, stages_of
from tarry.spark.steps.checking import check_expression
from tarry.spark.steps.columns import OWN
from tarry.spark.steps.deriving import with_nested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def expression_mistakes(spark: SparkSession, pipeline: Pipeline) -> list[Mistake]:
    """Return what the schema and the expressions have that Spark cannot take."""
    if pipeline.clean is None:
        return []
    try:
        (stage,) = choose(stages_of(pipeline), CLEAN)
        decoded = read_decoded(spark, pipeline, stage)
    except steps.StepRefused as refusal:
        return [pipeline.mistake(("decode",), str(refusal))]
    found: list[tuple[KeyPath, str]] = []
    for name, text in pipeline.derive.items():
        sentence = _refusal(steps.derive, decoded, {name: text})
        found.append((("derive", name), sentence))
        if not sentence:
            decoded = steps.derive(decoded, {name: text})
    decoded = with_nested(decoded, pipeline.columns())
    for rule, text in pipeline.check.items():
        found.append((("check", rule), _refusal(steps.check, decoded, {rule: text})))
    if pipeline.deduplicate is not None:
        for place, name in enumerate(pipeline.deduplicate.by):
            found.append((("deduplicate", "by", place), _missing(decoded, name)))
    for place, one in enumerate(pipeline.aggregates):
        found += _of_aggregate(decoded, ("aggregate", place), one)
    for place, wait in enumerate(pipeline.waits):
        at: KeyPath = ("wait", place)
        found.append(((*at, "key"), _missing(decoded, wait.key)))
        for key, text in (("from", wait.start), ("until", wait.until)):
            found.append(((*at, key), _refusal(check_expression, decoded, key, text)))
    return [pipeline.mistake(at, sentence) for at, sentence in found if sentence]


def _of_aggregate(
    decoded: DataFrame, at: KeyPath, one: AggregateSection
) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with the columns, and then with each value of an aggregate."""
    missing = [((*at, "by", place), _missing(decoded, name)) for place, name in enumerate(one.by)]
    if any(sentence for _, sentence in missing):
        yield from missing
        return
    for name, text in one.values.items():
        alone = replace(one, values={name: text})
        yield (*at, "values", name), _refusal(aggregate_frame, alone, decoded)


def _missing(decoded: DataFrame, name: str) -> str:
    """Return that there is no such column; "" if there is."""
    if name in decoded.columns:
        return ""
    names = ", ".join(each for each in decoded.columns if each not in OWN)
    return f"there is no column {name!r:.60} among {names:.300}"


def _refusal(make: Callable[..., object], *arguments: object) -> str:
    """Return why a step cannot be made; "" if it can."""
    try:
        make(*arguments)
    except steps.StepRefused as refusal:
        return str(refusal)
    return ""
