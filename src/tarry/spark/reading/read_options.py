"""Options of a reader: Spark's, with Spark's defaults and refusals, and some of ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tarry.base.errors import InvalidSetting
from tarry.client.settings import ConsumerSettings
from tarry.spark.option_table import (
    BATCH_ONLY,
    BOTH,
    OURS,
    REFUSED_SETTINGS,
    STRATEGIES,
    STREAM_ONLY,
    TYPED,
    names_of,
)
from tarry.spark.options import KAFKA_PREFIX, OptionRefused, OptionTexts
from tarry.spark.reading.bounds import (
    AT_EARLIEST,
    AT_LATEST,
    AT_OFFSETS,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    Bound,
    TopicChoice,
    parse_assigned,
    parse_bound,
    parse_time,
    parse_times,
)
from tarry.spark.reading.columns.names import COLUMNS, HEADERS
from tarry.spark.reading.columns.schema import columns_by_schema, spark_schema
from tarry.spark.reading.columns.value_columns import ValueColumns
from tarry.spark.reading.columns.value_options import typed_schema, value_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = logging.getLogger("tarry.spark")

STRATEGY_NAMES: Final = names_of(STRATEGIES)
STREAM_NAMES: Final = names_of(STREAM_ONLY)
BATCH_NAMES: Final = names_of(BATCH_ONLY)
NAMES: Final = names_of(BOTH, BATCH_ONLY, STREAM_ONLY, OURS, TYPED)

# Spark's options for what this source does by other means, and these means.
WITHOUT_EFFECT: Final = {
    "groupIdPrefix": "no group is joined to read; groupId names one that offsets are committed to",
    "kafka.group.id": "no group is joined to read; groupId names one that offsets are committed to",
    "kafkaConsumer.pollTimeoutMs": "kafka.default.api.timeout.ms is how long rows may take",
    "fetchOffset.numRetries": "the client asks again until kafka.default.api.timeout.ms is over",
    "fetchOffset.retryIntervalMs": "kafka.retry.backoff.ms is the pause before asking again",
}

TRIGGER_DELAY_MS: Final = 15 * 60_000

STRATEGY_ERROR: Final = "error"
STRATEGY_LATEST: Final = "latest"


@dataclass(frozen=True)
class ReadOptions:
    """Wishes of a user, checked."""

    settings: Mapping[str, str]
    choice: TopicChoice
    starting: Bound
    ending: Bound
    # What a start by time is where no record is that young: an error, or the end.
    is_late_start_latest: bool
    fail_on_data_loss: bool
    # What gets a line for each range that is left out; "": nothing.
    loss_file: str
    partitions_min: int | None
    partition_records_max: int | None
    trigger_offsets_max: int | None
    trigger_offsets_min: int | None
    trigger_delay_ms_max: int
    # Columns of records that are fetched.
    columns: tuple[str, ...]
    # Columns that are made of values; None: values stay bytes.
    values: ValueColumns | None
    clips_times: bool
    group_id: str
    has_filters: bool
    # Tasks that run at a time; None: as many as the driver has cores.
    cores: int | None
    tasks: int | None


def parse_read_options(
    given: Mapping[str, str], *, is_stream: bool, schema: StructType | None = None
) -> ReadOptions:
    """Return the options of a batch or of a stream; refuse what cannot be meant.

    `schema` is what a user gave by `.schema(...)`, or that of the options.
    """
    texts = OptionTexts(given)
    texts.check_known((*NAMES, *WITHOUT_EFFECT))
    if is_stream:
        _refuse_ends(texts)
    default = AT_LATEST if is_stream else AT_EARLIEST
    starting = _bound(texts, "starting", default)
    ending = _bound(texts, "ending", AT_LATEST)
    if not is_stream:
        _check_batch_bounds(starting, ending)
    choice = _choice(texts)
    least, most = texts.count("minOffsetsPerTrigger"), texts.count("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionRefused(
            f"minOffsetsPerTrigger={least} is more than maxOffsetsPerTrigger={most}"
        )
    _warn(texts, is_stream=is_stream)
    strategy = (texts.text("startingOffsetsByTimestampStrategy") or STRATEGY_ERROR).strip().lower()
    if strategy not in (STRATEGY_ERROR, STRATEGY_LATEST):
        raise OptionRefused(
            f"startingOffsetsByTimestampStrategy={strategy!r:.60} is neither error nor latest"
        )
    values = value_columns(texts, schema)
    return ReadOptions(
        settings=_settings(texts),
        choice=choice,
        starting=starting,
        ending=ending,
        is_late_start_latest=strategy == STRATEGY_LATEST,
        fail_on_data_loss=texts.flag("failOnDataLoss", True),
        loss_file=(texts.text("lossFile") or "").strip(),
        partitions_min=texts.count("minPartitions"),
        partition_records_max=texts.count("maxRecordsPerPartition"),
        trigger_offsets_max=most,
        trigger_offsets_min=least,
        trigger_delay_ms_max=texts.duration_ms("maxTriggerDelay", TRIGGER_DELAY_MS),
        columns=_plain_columns(texts, schema) if values is None else values.fetched,
        values=values,
        clips_times=texts.flag("clipTimestamps", False),
        group_id=(texts.text("groupId") or "").strip(),
        has_filters=texts.flag("filters", False),
        cores=texts.count("cores"),
        tasks=texts.count("tasks"),
    )


def columns_of(texts: OptionTexts) -> tuple[str, ...]:
    """Return the columns that are read, in their order."""
    has_headers = texts.flag("includeHeaders", False)
    wanted = texts.text("columns")
    if wanted is None:
        return COLUMNS if has_headers else COLUMNS[:-1]
    by_word = {name.lower(): name for name in COLUMNS}
    columns: list[str] = []
    for word in wanted.split(","):
        name = by_word.get(word.strip().lower())
        if name is None or name in columns:
            raise OptionRefused(
                f"columns={wanted!r:.100} takes each of these names once: {', '.join(COLUMNS)}"
            )
        columns.append(name)
    if has_headers and HEADERS not in columns:
        columns.append(HEADERS)
    return tuple(columns)


def schema_of(texts: OptionTexts) -> StructType:
    """Return the schema of a read by its options alone."""
    values = value_columns(texts, None)
    return spark_schema(columns_of(texts)) if values is None else typed_schema(values)


def _plain_columns(texts: OptionTexts, schema: StructType | None) -> tuple[str, ...]:
    columns = columns_of(texts)
    if schema is None or schema == spark_schema(columns):
        return columns
    if texts.text("columns") is not None:
        raise OptionRefused("choose columns by .schema(...) or by the option columns, not by both")
    return columns_by_schema(schema, COLUMNS)


def _choice(texts: OptionTexts) -> TopicChoice:
    given = [name for name in STRATEGY_NAMES if texts.text(name) is not None]
    if len(given) != 1:
        found = " and ".join(given) + " are given" if given else "none is given"
        raise OptionRefused(f"give one of the options {', '.join(STRATEGY_NAMES)}; {found}")
    name = given[0]
    text = texts.text(name) or ""
    if name == "assign":
        return TopicChoice(assigned=parse_assigned(name, text))
    if name == "subscribe":
        topics = [part.strip() for part in text.split(",") if part.strip()]
        if not topics:
            raise OptionRefused(f"subscribe={text!r:.60} names no topic")
        return TopicChoice(names=tuple(sorted(dict.fromkeys(topics))))
    pattern = text.strip()
    if not pattern:
        raise OptionRefused("subscribePattern is empty")
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionRefused(
            f"subscribePattern={pattern!r:.100} is no regular expression: {error}"
        ) from None
    return TopicChoice(pattern=pattern)


def _bound(texts: OptionTexts, side: str, default: str) -> Bound:
    """Return a bound; of several options one time goes before times, and times before offsets."""
    name = f"{side}Timestamp"
    text = texts.text(name)
    if text is not None:
        return parse_time(name, text)
    name = f"{side}OffsetsByTimestamp"
    text = texts.text(name)
    if text is not None:
        return parse_times(name, text)
    name = f"{side}Offsets"
    text = texts.text(name)
    return Bound(default) if text is None else parse_bound(name, text)


def _refuse_ends(texts: OptionTexts) -> None:
    for name in BATCH_NAMES:
        if texts.text(name) is not None:
            raise OptionRefused(
                f"{name} is no option of a stream, which has no end; read a batch, or stop the "
                "query with trigger(availableNow=True)"
            )


def _check_batch_bounds(starting: Bound, ending: Bound) -> None:
    if starting.kind == AT_LATEST:
        raise OptionRefused("startingOffsets=latest would read nothing in a batch")
    if ending.kind == AT_EARLIEST:
        raise OptionRefused("endingOffsets=earliest would read nothing in a batch")
    sides = (("starting", starting, LATEST_OFFSET), ("ending", ending, EARLIEST_OFFSET))
    for side, bound, wrong in sides:
        for (topic, partition), offset in bound.numbers.items():
            if bound.kind == AT_OFFSETS and offset == wrong:
                word = AT_LATEST if wrong == LATEST_OFFSET else AT_EARLIEST
                raise OptionRefused(
                    f"{side}Offsets has {offset} ({word}) for {topic} [{partition}], which would "
                    "read nothing in a batch"
                )


def _settings(texts: OptionTexts) -> dict[str, str]:
    settings = texts.kafka_settings()
    for key, instead in REFUSED_SETTINGS.items():
        if key in settings:
            raise OptionRefused(f"{KAFKA_PREFIX}{key} is not taken: {instead}")
    settings.pop("group.id", None)
    try:
        ConsumerSettings(settings)
    except InvalidSetting as error:
        raise OptionRefused(f"an option that begins with {KAFKA_PREFIX}: {error}") from None
    return settings


def _warn(texts: OptionTexts, *, is_stream: bool) -> None:
    if is_stream and texts.flag("filters", False):
        log.warning("the option filters has no effect in a stream")
    for name in () if is_stream else (*STREAM_NAMES, "groupId"):
        if texts.text(name) is not None:
            log.warning("the option %s has no effect in a batch", name)
    for name, instead in WITHOUT_EFFECT.items():
        if texts.text(name) is not None:
            log.warning("the option %s has no effect: %s", name, instead)
