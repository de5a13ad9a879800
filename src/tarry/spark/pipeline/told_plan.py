"""Plan as people read it: what a run of a pipeline will do, before it does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import AGGREGATE, ARCHIVE, CLEAN, WAIT, Stage
from tarry.spark.pipeline.topics import POLICY, PipelineTopics


def plan_lines(
    pipeline: Pipeline, stages: Sequence[Stage], topics: PipelineTopics | None
) -> Iterator[str]:
    """Yield the lines of the plan; `topics` is None if the cluster is away."""
    yield f"pipeline    {pipeline.name}"
    yield f"broker      {pipeline.source.bootstrap}"
    yield f"checkpoint  {pipeline.checkpoint}"
    for number, stage in enumerate(stages, 1):
        yield ""
        yield f"{number}. {stage.name}"
        yield f"   from  {', '.join(stage.reads)}"
        if stage.kind == ARCHIVE:
            yield f"   to    {stage.path}"
        else:
            yield f"   to    {', '.join(stage.writes)}"
        for line in _lines_of(pipeline, stage):
            yield f"   {line}"
    if topics is not None and topics.missing:
        yield ""
        for topic in topics.missing:
            how = ", compacted" if POLICY in topic.configs else ""
            yield f"makes topic {topic.name} with {topic.partition_count} partitions{how}"


def _lines_of(pipeline: Pipeline, stage: Stage) -> Iterator[str]:
    if stage.kind == CLEAN:
        yield from _lines_of_clean(pipeline)
    elif stage.kind == AGGREGATE:
        (one,) = [each for each in pipeline.aggregates if each.name == stage.name]
        span = f"window {one.window}" if one.window is not None else f"session {one.session}"
        slide = f" every {one.slide}" if one.slide is not None else ""
        group = f" by {', '.join(one.by)}" if one.by else ""
        yield f"{span}{slide}{group}, late {one.late}"
        for name, text in one.values.items():
            yield f"{name}: {text}"
    elif stage.kind == WAIT:
        (wait,) = [each for each in pipeline.waits if each.name == stage.name]
        yield f"of each {wait.key}, from {wait.start}"
        yield f"until {wait.until}, within {wait.within}, late {wait.late}"
    elif pipeline.archive is not None:
        kept = pipeline.archive
        yield f"{kept.table} by {kept.by}, a round in {kept.every}"


def _lines_of_clean(pipeline: Pipeline) -> Iterator[str]:
    source, decode = pipeline.source, pipeline.decode
    assert decode is not None
    schema = f" by {decode.schema}" if decode.schema is not None else ""
    yield f"decode {decode.format}{schema}; event time: {source.time or 'the time of the record'}"
    for name, text in pipeline.derive.items():
        yield f"derive {name}: {text}"
    for rule, text in pipeline.check.items():
        yield f"check {rule}: {text}"
    if pipeline.deduplicate is not None:
        once = pipeline.deduplicate
        yield f"one record of each {', '.join(once.by)} within {once.within}"
    if source.rate is not None:
        yield f"{source.rate} records a second at most"
    if source.group is not None:
        yield f"group {source.group} shows the lag"
