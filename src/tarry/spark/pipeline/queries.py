"""Queries of the stages that Spark runs: DataFrames from the steps, and their start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tarry.spark import steps
from tarry.spark.options import INT64_MAX, KAFKA_PREFIX
from tarry.spark.pipeline.file.sections import AggregateSection, Pipeline
from tarry.spark.pipeline.file.values import duration_ms
from tarry.spark.pipeline.left_out import loss_path
from tarry.spark.pipeline.progress import (
    OBSERVED,
    OBSERVED_BYTES,
    OBSERVED_RULE,
    OBSERVED_UNDECODED,
)
from tarry.spark.pipeline.stages import CLEAN, Stage
from tarry.spark.steps.columns import ORIGIN, OWN
from tarry.spark.steps.deriving import with_nested
from tarry.spark.steps.formats.decoders import value_decoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT: Final = "tarry"
SINK: Final = "tarry"
DECODE: Final = "decode"
# Rules of the step that deduplicates.
DUPLICATE: Final = "duplicate"
LATE: Final = "late"


# Columns of a decoded read: all fields, and all columns of the steps.
DECODED: Final = ", ".join(["*", *OWN])


def read_decoded(
    spark: SparkSession, pipeline: Pipeline, stage: Stage, *, skips_lost: bool = False
) -> DataFrame:
    """Read the topics of a stage, decoded; with `skips_lost`, what is there where records are lost.

    Values are decoded where they are fetched: they cross to Spark once.  Raises StepRefused.
    """
    source = pipeline.source
    reader = spark.readStream.format(FORMAT).options(**_kafka(pipeline.reading()))
    reader = reader.options(subscribe=",".join(stage.reads), includeHeaders="true")
    # A record without a usable time is rejected, or has a time of its own, and ends nothing.
    reader = reader.option("clipTimestamps", "true")
    reader = reader.option("failOnDataLoss", str(not skips_lost).lower())
    reader = reader.option("lossFile", str(loss_path(pipeline, stage.name)))
    # The source is asked in a process that does not know the cluster.
    reader = reader.option("cores", spark.sparkContext.defaultParallelism)
    if stage.kind != CLEAN:
        # What another stage has written is read from its begin.
        reader = reader.option("startingOffsets", "earliest")
    elif isinstance(source.start, int):
        reader = reader.option("startingTimestamp", source.start)
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    else:
        reader = reader.option("startingOffsets", source.start)
    if source.group is not None:
        group = source.group if stage.kind == CLEAN else f"{source.group}.{stage.name}"
        reader = reader.option("groupId", group)
    if source.rate is not None and stage.kind == CLEAN:
        records = source.rate * duration_ms(pipeline.every) // 1_000
        records = min(max(1, records), INT64_MAX)
        reader = reader.option("maxOffsetsPerTrigger", records)
    return reader.options(**_decoding(pipeline)).option("columns", DECODED).load()


def _decoding(pipeline: Pipeline) -> dict[str, str]:
    """Return the options by which the source decodes values.  Raises StepRefused."""
    decode, time = pipeline.decode, pipeline.source.time
    assert decode is not None
    # The source reads them in another process, whose refusals are stack traces here.
    value_decoding(decode.format, decode.schema, decode.message, decode.registry, time)
    options = {
        "valueFormat": decode.format,
        "valueSchema": decode.schema,
        "valueMessage": decode.message,
        "valueRegistry": decode.registry,
        "eventTime": time,
    }
    return {name: str(given) for name, given in options.items() if given is not None}


def derived_columns(pipeline: Pipeline, decoded: DataFrame) -> DataFrame:
    """Add the columns that the file derives, and those that it names by their paths.

    Raises StepRefused.
    """
    return with_nested(steps.derive(decoded, pipeline.derive), pipeline.columns())


def decoded_records(pipeline: Pipeline, records: DataFrame) -> DataFrame:
    """Decode the values of records that were read from elsewhere.  Raises StepRefused."""
    decode = pipeline.decode
    assert decode is not None
    return steps.decode(
        records,
        format=decode.format,
        schema=decode.schema,
        message=decode.message,
        registry=decode.registry,
        time=pipeline.source.time,
    )


def clean_frame(pipeline: Pipeline, frame: DataFrame) -> DataFrame:
    """Make the rows of the stage `clean`, as the sink takes them."""
    assert pipeline.clean is not None
    if pipeline.check:
        frame = steps.check(frame, pipeline.check)
    rules = [DECODE, *pipeline.check]
    if pipeline.deduplicate is not None:
        once = pipeline.deduplicate
        frame = steps.deduplicate(frame, by=once.by, within=once.within)
        rules += [DUPLICATE, LATE]
    frame = _observed(frame, rules)
    return steps.clean(frame, topic=pipeline.clean.topic, rejected=pipeline.clean.rejected)


def frame_of(pipeline: Pipeline, stage: Stage, decoded: DataFrame) -> DataFrame:
    """Make the rows of a stage, as the sink takes them."""
    decoded = derived_columns(pipeline, decoded)
    if stage.kind == CLEAN:
        return clean_frame(pipeline, decoded)
    decoded = _observed(decoded, [])
    for result in pipeline.aggregates:
        if result.name == stage.name:
            return aggregate_frame(result, decoded)
    (ended,) = [one for one in pipeline.waits if one.name == stage.name]
    return steps.wait(
        decoded,
        key=ended.key,
        start=ended.start,
        until=ended.until,
        within=ended.within,
        late=ended.late,
        topic=ended.topic,
    )


def aggregate_frame(result: AggregateSection, decoded: DataFrame) -> DataFrame:
    """Make the results of an aggregate.  Raises StepRefused."""
    return steps.aggregate(
        decoded,
        window=result.window,
        slide=result.slide,
        session=result.session,
        late=result.late,
        by=result.by,
        values=result.values,
        topic=result.topic,
    )


def _observed(frame: DataFrame, rules: list[str]) -> DataFrame:
    """Let Spark count bytes, and what each rule rejects."""
    from pyspark.sql import functions as sql

    read = sql.sum(sql.octet_length("_record.value")).alias(OBSERVED_BYTES)
    counts = [sql.count_if(sql.col("_rule") == rule).alias(OBSERVED_RULE + rule) for rule in rules]
    if DECODE not in rules:
        return frame.observe(OBSERVED, read, *counts)
    record = sql.col("_record")
    place = sql.format_string("%s [%d] offset %d", *[record[name] for name in ORIGIN])
    told = sql.concat(place, sql.lit(": "), sql.col("_error"))
    offset = sql.when(sql.col("_rule") == DECODE, record["offset"])
    first, last = OBSERVED_UNDECODED
    samples = [sql.min_by(told, offset).alias(first), sql.max_by(told, offset).alias(last)]
    return frame.observe(OBSERVED, read, *counts, *samples)


def start_query(
    pipeline: Pipeline, stage: Stage, frame: DataFrame, *, once: bool
) -> StreamingQuery:
    """Start the query of a stage."""
    writer = frame.writeStream.format(SINK).queryName(query_name(pipeline, stage))
    writer = writer.options(**_kafka(pipeline.writing()))
    writer = writer.option("checkpointLocation", str(stage.path))
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{duration_ms(pipeline.every)} milliseconds")
    return writer.start()


def query_name(pipeline: Pipeline, stage: Stage) -> str:
    """Return the name that Spark has for a stage's query."""
    return f"{pipeline.name}.{stage.name}"


def _kafka(settings: dict[str, str]) -> dict[str, Any]:
    return {KAFKA_PREFIX + key: text for key, text in settings.items()}
