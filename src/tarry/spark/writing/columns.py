"""Columns of a write: what a DataFrame must have to become records, as Spark's Kafka sink has it,
and when these are due.

Other columns than these are left out, so that what was read from a topic can be written as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tarry.client.core.producer.due import DueNames
from tarry.spark.options import OptionRefused

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

TOPIC: Final = "topic"
VALUE: Final = "value"

# Columns of records that are due later (`due_rows`): the client's arguments as Spark writes names.
DUE_NAMES: Final = DueNames("deliverAt", "deliverAfter", "scheduleId")

# Names of Spark's types that each column may have.
TYPES: Final = {
    VALUE: ("string", "binary"),
    "key": ("string", "binary"),
    TOPIC: ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    # A due time without a zone is not guessed at.
    DUE_NAMES.deliver_at: ("timestamp", "bigint"),
    DUE_NAMES.deliver_after: ("bigint", "int", "string"),
    DUE_NAMES.schedule_id: ("string", "binary"),
}


def check_columns(schema: StructType, topic: str | None) -> list[str]:
    """Return the columns that are written.  Raises OptionRefused for what cannot be written."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if topic is None and TOPIC not in types:
        raise OptionRefused(
            "nothing says which topic the rows go to: give the option topic, such as "
            '.option("topic", "orders"), or a column topic'
        )
    if VALUE not in types:
        raise OptionRefused(
            f"there is no column value among {', '.join(types) or 'no columns'}: name the one that "
            'becomes the records\' values, such as df.selectExpr("to_json(struct(*)) AS value")'
        )
    for name, taken in TYPES.items():
        found = types.get(name)
        if found is not None and found not in taken:
            raise OptionRefused(
                f"column {name} is of type {found}, and it must be {' or '.join(taken)}: cast it, "
                "or leave it out"
            )
    return [name for name in TYPES if name in types and not (name == TOPIC and topic is not None)]


def by_topic(
    batch: pa.RecordBatch, columns: list[str], topic: str | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each topic, in their order, as columns of records."""
    if batch.num_rows == 0:
        return
    rows = batch.select(columns)
    if topic is not None:
        yield topic, rows
        return
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    topics = rows.column(TOPIC)
    if topics.null_count:
        raise OptionRefused(
            "a row has no topic (null): fill the column topic, or give the option topic, which all "
            "rows go to"
        )
    records = rows.drop_columns([TOPIC])
    names = compute.unique(topics).to_pylist()
    for name in names:
        if len(names) == 1:
            yield name, records
        else:
            yield name, records.filter(compute.equal(topics, name))
