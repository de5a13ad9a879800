"""Options of the format `tarry`: the table that parsers and the reference are made from.

What begins with `kafka.` is no row: it is a setting of our client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class SourceOption(NamedTuple):
    """Option of a read or of a write."""

    name: str
    # What its value looks like.
    value: str
    # Empty: none.
    default: str
    about: str


# Exactly one of them is given.
STRATEGIES: Final = (
    SourceOption(
        "assign",
        "JSON",
        "",
        'Partitions that are read, by topic: `{"orders": [0, 2]}`.',
    ),
    SourceOption("subscribe", "topics", "", "Topics that are read, with commas between."),
    SourceOption(
        "subscribePattern",
        "regular expression",
        "",
        "All topics in whose name this is found; a stream finds new ones while it runs.",
    ),
)

BOTH: Final = (
    *STRATEGIES,
    SourceOption(
        "startingOffsets",
        "earliest, latest, JSON",
        "batch `earliest`, stream `latest`",
        'Where a batch or a new stream begins. JSON is `{"orders": {"0": 12}}`, with -2 for '
        "earliest and -1 for latest. A stream that is started again goes on where it was.",
    ),
    SourceOption(
        "startingTimestamp",
        "milliseconds since 1970",
        "",
        "The same, by the time of records; it goes before `startingOffsetsByTimestamp`, and that "
        "before `startingOffsets`.",
    ),
    SourceOption(
        "startingOffsetsByTimestamp",
        "JSON",
        "",
        'The same by partition: `{"orders": {"0": 1763800000000}}`.',
    ),
    SourceOption(
        "startingOffsetsByTimestampStrategy",
        "error, latest",
        "`error`",
        "What a start by time is where no record is that young: an error, or the end.",
    ),
    SourceOption(
        "failOnDataLoss",
        "true, false",
        "`true`",
        "Whether a query fails where records are gone that it has not read.",
    ),
    SourceOption("minPartitions", "number", "", "Least number of tasks."),
    SourceOption("maxRecordsPerPartition", "number", "", "Most records of one task."),
    SourceOption("includeHeaders", "true, false", "`false`", "Adds the column `headers`."),
)

BATCH_ONLY: Final = (
    SourceOption(
        "endingOffsets",
        "latest, JSON",
        "`latest`",
        "Where a batch ends, before this offset. In JSON -1 is latest.",
    ),
    SourceOption("endingOffsetsByTimestamp", "JSON", "", "The same by times, by partition."),
    SourceOption("endingTimestamp", "milliseconds since 1970", "", "The same by one time."),
)

STREAM_ONLY: Final = (
    SourceOption(
        "maxOffsetsPerTrigger",
        "number",
        "",
        "Most records of a micro-batch, shared by what is left of each partition.",
    ),
    SourceOption(
        "minOffsetsPerTrigger",
        "number",
        "",
        "Records that a micro-batch waits for, `maxTriggerDelay` at most.",
    ),
    SourceOption(
        "maxTriggerDelay",
        "time such as 30s or 15m",
        "`15m`",
        "How long a micro-batch waits for `minOffsetsPerTrigger`.",
    ),
)

# Of reading; Spark's own source does not have them.
OURS: Final = (
    SourceOption(
        "groupId",
        "group",
        "",
        "Group to which a stream commits its offsets, so that lag can be seen. Nobody joins it, "
        "and nothing is read from it. A batch warns that it commits nothing.",
    ),
    SourceOption(
        "lossFile",
        "path",
        "",
        "File to which driver and tasks append a line of JSON for each range of offsets that is "
        "left out with `failOnDataLoss=false`.",
    ),
    SourceOption(
        "clipTimestamps",
        "true, false",
        "`false`",
        "Whether a record's time that Spark's type cannot hold (of the year 294,247 or later) "
        "becomes the last one, or the first one, that it can hold, instead of failing the query.",
    ),
    SourceOption(
        "columns",
        "names with commas between",
        "all",
        "Columns that are decoded. Spark does not tell a Python source which ones a query uses. "
        "`includeHeaders` adds `headers` to them. With `valueFormat` they are fields (`*`: all), "
        "`_record`, single ones of its columns such as `_record.offset`, `_time`, `_rule` and "
        "`_error`.",
    ),
    SourceOption(
        "filters",
        "true, false",
        "`false`",
        "Lets conditions on `topic`, `partition`, `offset` and a least `timestamp` narrow a batch; "
        "needs `spark.sql.python.filterPushdown.enabled`. A stream warns that it takes none.",
    ),
    SourceOption(
        "cores",
        "number",
        "cores of the driver",
        "How many tasks run at a time: there are as many, or fewer where there is little to read.",
    ),
    SourceOption("tasks", "number", "", "Number of tasks, however little there is to read."),
)

# Of reading values as typed columns.
TYPED: Final = (
    SourceOption(
        "valueFormat",
        "json, avro, protobuf, text",
        "",
        "Decodes values to columns in the task that fetches them: the fields, then `_record`, a "
        "struct of the record's own columns, and `_error`, the reason where a value could not be "
        "decoded.",
    ),
    SourceOption(
        "valueSchema",
        "path",
        "",
        "File that the driver reads: JSON Schema, an Avro schema or a descriptor set of Protobuf. "
        "A relative path counts from the directory in which Spark was started. "
        "For JSON, `.schema(...)` may give the fields' types instead.",
    ),
    SourceOption("valueMessage", "name", "", "Type of Protobuf, such as `shop.Order`."),
    SourceOption(
        "valueRegistry",
        "address",
        "",
        "Schema registry: values of Avro and Protobuf begin with its frame. Before JSON a frame is "
        "passed over always.",
    ),
    SourceOption(
        "eventTime",
        "field",
        "the record's timestamp",
        "Field that the column `_time` has: a date-time, or milliseconds since 1970.",
    ),
    SourceOption(
        "mode",
        "permissive, dropMalformed, failFast",
        "`permissive`",
        "What becomes of a value that cannot be decoded: null in all fields and a sentence in "
        "`_error`; nothing; or a failed query. As in Spark's readers.",
    ),
)

WRITING: Final = (
    SourceOption(
        "topic",
        "topic",
        "",
        "Topic of all rows. Without it a column `topic` says where each row goes.",
    ),
    SourceOption(
        "delivery",
        "exactly-once, at-least-once",
        "stream `exactly-once`, batch `at-least-once`",
        "What a batch promises: `exactly-once` needs `sinkLocation`. A stream is always written "
        "exactly once.",
    ),
    SourceOption(
        "sinkLocation",
        "directory",
        "stream `CHECKPOINT/sink`",
        "Directory of plans and files, which driver and workers share. The same directory means "
        "the same write. A batch takes it with `delivery=exactly-once` only.",
    ),
    SourceOption(
        "checkpointLocation",
        "directory",
        "",
        "Checkpoint of a stream; it must be an option of the writer itself. A batch warns that it "
        "has none.",
    ),
    SourceOption(
        "includeHeaders",
        "true, false",
        "",
        "Taken, since Spark's sink has it; headers are written where there is a column `headers`.",
    ),
)

# Settings of a client that a source decides itself, and what a user wants instead.
REFUSED_SETTINGS: Final = {
    "auto.offset.reset": "the option startingOffsets says where a new query begins, and a query "
    "that is started again goes on where it was",
    "key.deserializer": "keys are bytes; cast the column: col('key').cast('string')",
    "value.deserializer": "values are bytes; cast the column: col('value').cast('string')",
    "enable.auto.commit": "Spark's checkpoint says how far a query is; the option groupId commits "
    "offsets beside it",
    "interceptor.classes": "rows are changed by DataFrame operations",
}


def names_of(*tables: Iterable[SourceOption]) -> tuple[str, ...]:
    """Return the names of the options of these tables."""
    return tuple(option.name for table in tables for option in table)
