"""Page about the format `tarry` of Spark, from the tables of its options and columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tarry.spark import option_table as options
from tarry.spark.option_table import SourceOption
from tarry.spark.reading.columns.names import COLUMNS
from tarry.spark.reading.read_options import WITHOUT_EFFECT
from tarry.spark.writing.columns import TYPES as WRITTEN_TYPES
from tarry.spark.writing.write_options import DECIDED

INTRODUCTION: Final = """\
# The format `tarry` of Spark

{notice}

Options and columns of `spark.read`, `readStream`, `write` and `writeStream` with \
`format("tarry")`. How to: [read](../how-to/read-with-spark.md), \
[write](../how-to/write-with-spark.md), [move from Spark's Kafka \
connector](../how-to/move-from-sparks-kafka-connector.md).

Names of options may be in any case. An option that is not known is an error, and so is a value \
that cannot be meant. `kafka.bootstrap.servers` must be given. Every other option that begins with \
`kafka.` is a [setting of our client](settings.md#clients): of a consumer in a read, of a producer \
in a write."""

# What a column of a read holds.
READ_COLUMNS: Final = {
    "key": ("binary", "Key of the record, or null."),
    "value": ("binary", "Value of the record, or null (a tombstone)."),
    "topic": ("string", "Topic of the record."),
    "partition": ("int", "Its partition."),
    "offset": ("long", "Its offset."),
    "timestamp": ("timestamp", "Its time."),
    "timestampType": ("int", "0: the producer gave the time; 1: the broker did."),
    "headers": (
        "array of struct of key (string) and value (binary)",
        "Its headers; only with `includeHeaders`, or where `columns` names it.",
    ),
}

# What a column of a write means.
# Columns of a read that decodes values.
TYPED_COLUMNS: Final = {
    "each field of the schema": ("its type", "Null where the value could not be decoded."),
    "_record": ("struct", "The record's own columns, as above."),
    "_error": ("string", "Why the value could not be decoded; null where it could."),
    "_rule": ("string", "`decode` where `_error` says something; only where `columns` names it."),
    "_time": ("timestamp", "The event time; only where `columns` names it."),
}

WRITTEN_COLUMNS: Final = {
    "value": "Must be there. Null is a tombstone.",
    "key": "Rows of a key go to the partition that Java's producer chooses.",
    "topic": "Where the row goes, unless the option `topic` says it for all.",
    "partition": "Null, or no such column: the key decides.",
    "headers": "As a read gives them.",
    "timestamp": "Null, or no such column: now. One without a zone is taken for UTC.",
    "deliverAt": "When the record is due: a time, or milliseconds since 1970.",
    "deliverAfter": "How long the record waits: milliseconds, or a text such as `1h30m`.",
    "scheduleId": "Id by which the record is cancelled or replaced while it waits.",
}

# Text about the columns deliverAt, deliverAfter and scheduleId, the last three of the table.
DUE_COLUMNS: Final = """
A row with `deliverAt`, `deliverAfter` or `scheduleId` needs a topic \
[that delays its records](../how-to/delay-a-record.md); one in which they are null is an ordinary \
record. [Rows that are due later](../how-to/write-with-spark.md#rows-that-are-due-later) has the \
rules."""


TYPED_VALUES: Final = """\
How to: [read values as typed columns](../how-to/read-with-spark.md#values-as-typed-columns)."""


def spark_options_page(notice: str) -> str:
    """Write the page."""
    assert tuple(READ_COLUMNS) == COLUMNS
    assert sorted(WRITTEN_COLUMNS) == sorted(WRITTEN_TYPES)
    lines = [INTRODUCTION.format(notice=notice), "", "## Reading", ""]
    lines += ["Exactly one of `assign`, `subscribe` and `subscribePattern` is given.", ""]
    lines += option_rows(options.BOTH)
    lines += ["", "### Of a batch only", "", *option_rows(options.BATCH_ONLY)]
    lines += ["", "### Of a stream only", "", *option_rows(options.STREAM_ONLY)]
    lines += ["", "### Of ours", "", "Spark's own Kafka source does not have these.", ""]
    lines += option_rows(options.OURS)
    lines += ["", "### Of values as typed columns", "", TYPED_VALUES, ""]
    lines += option_rows(options.TYPED)
    lines += ["", "### Taken without an effect", "", "A warning says so.", ""]
    lines += ["| option | what takes its place |", "|---|---|"]
    lines += [f"| `{name}` | {instead} |" for name, instead in WITHOUT_EFFECT.items()]
    lines += ["", "### Refused", "", "| option | reason |", "|---|---|"]
    lines += [f"| `kafka.{key}` | {reason} |" for key, reason in options.REFUSED_SETTINGS.items()]
    lines += ["", "### Columns of a read", "", "| column | type | |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind} | {about} |" for name, (kind, about) in READ_COLUMNS.items()]
    lines += ["", "With `valueFormat` they are:", "", "| column | type | |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind} | {about} |" for name, (kind, about) in TYPED_COLUMNS.items()]
    lines += ["", "## Writing", "", "The mode of a batch is always `append`.", ""]
    lines += option_rows(options.WRITING)
    lines += ["", "### Settings that the sink decides", "", "| option | reason |", "|---|---|"]
    lines += [f"| `kafka.{key}` | {reason} |" for key, reason in DECIDED.items()]
    lines += ["", "### Columns of a write", "", "Other columns are left out.", ""]
    lines += ["| column | type | |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {' or '.join(f'`{kind}`' for kind in kinds)} | {WRITTEN_COLUMNS[name]} |"
        for name, kinds in WRITTEN_TYPES.items()
    ]
    lines += DUE_COLUMNS.splitlines()
    return "\n".join(lines) + "\n"


def option_rows(rows: Iterable[SourceOption]) -> list[str]:
    """Write a table of options."""
    return [
        "| option | value | default | |",
        "|---|---|---|---|",
        *(f"| `{row.name}` | {row.value} | {row.default or '-'} | {row.about} |" for row in rows),
    ]
