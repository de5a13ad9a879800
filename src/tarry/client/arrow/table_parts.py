"""Table parts: a table is checked whole, and its rows part by when they are due.

Rows that are due later, or have an id, leave in batches of their own: a batch that waits takes
ordinary rows along otherwise, and by timestamps it waits as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tarry.client.arrow.due_rows import (
    DelayedTopic,
    DueRowRefused,
    due_mask,
    dues_of,
    records_of,
)
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.outgoing_rows import (
    COLUMNS,
    DUE_COLUMNS,
    HEADERS,
    KEY,
    PART_ROWS_MAX,
    VALUE,
    OutgoingRows,
    as_bytes,
    as_table,
    check_names,
    decoded,
    is_binary,
    is_text,
    plain_headers,
)
from tarry.client.core.delays import BY_TIMESTAMP
from tarry.client.core.producer.due import ARGUMENT_NAMES
from tarry.client.core.producer.row_intake import APART, APART_BY_TIME, WITH_OTHERS

if TYPE_CHECKING:
    import pyarrow as pa


class TablePart(NamedTuple):
    """Rows of a table, and what they share their batches with (`row_intake`)."""

    rows: OutgoingRows
    company: int


class DueTable:
    """Table whose columns have been checked, and whether some of its rows are due later."""

    def __init__(self, table: object) -> None:
        made = as_table(table)
        check_names(made.column_names, (*COLUMNS, *DUE_COLUMNS))
        # Columns that say when rows are due, and the table without them.
        self._dues: dict[str, Any] = {}
        for name in DUE_COLUMNS:
            if name in made.column_names:
                column = decoded(made[name])
                _check_due_type(name, column.type)
                self._dues[name] = _without_view(column)
        self._records = made.drop_columns([*self._dues]) if self._dues else made
        # All rows, without what is said of when they are due.
        self.rows = OutgoingRows(self._records)
        self._is_due = due_mask(load_pyarrow().table(self._dues), ARGUMENT_NAMES)
        # Any: pyarrow's compute functions have no types.
        self._compute: Any = import_module("pyarrow.compute")
        # True if some rows are due later or have ids.
        self.has_due = self._is_due is not None and bool(self._compute.any(self._is_due).as_py())

    def check_partitions(self, partition_count: int) -> None:
        """Raise ValueError if a row names a partition that the topic does not have."""
        self.rows.check_partitions(partition_count)

    def parts(self, topic: DelayedTopic | None, now_ms: int) -> list[TablePart]:
        """Return the rows that are due at once, and then the others as their topic takes them; None
        stands for any topic if no row is due later.

        Raises TypeError or ValueError for a row that cannot be meant, and SchedulingUnsupported for
        an id in a topic that delays by timestamps.
        """
        if topic is None:
            return [TablePart(self.rows, WITH_OTHERS)]
        records = _without_views(self._records)
        parts: list[TablePart] = []
        ordinary = records.filter(self._compute.invert(self._is_due))
        if ordinary.num_rows:
            parts.append(TablePart(OutgoingRows(ordinary), WITH_OTHERS))
        for name, column in self._dues.items():
            records = records.append_column(name, column)
        due = records.filter(self._is_due).combine_chunks()
        later = load_pyarrow().Table.from_batches([*self._later(due, topic, now_ms)])
        company = APART_BY_TIME if topic.source == BY_TIMESTAMP else APART
        parts.append(TablePart(OutgoingRows(later), company))
        return parts

    def _later(self, due: pa.Table, topic: DelayedTopic, now_ms: int) -> Iterator[pa.RecordBatch]:
        """Yield due rows as records.  The values of a share of them are Python's objects at a
        time."""
        first = 0
        for rows in due.to_batches(max_chunksize=PART_ROWS_MAX):
            try:
                dues = dues_of(rows, ARGUMENT_NAMES)
                yield records_of(topic, rows, dues, ARGUMENT_NAMES, now_ms)
            except DueRowRefused as error:
                places = self._compute.indices_nonzero(self._is_due)
                row = places[first + error.row].as_py()
                raise ValueError(f"row {row} of the table: {error.sentence}") from None
            first += rows.num_rows


def _check_due_type(name: str, kind: Any) -> None:
    """Raise an error for a column type that does not say when a record is due, or is no id."""
    types = load_pyarrow().types
    if types.is_null(kind):
        return
    if name == ARGUMENT_NAMES.deliver_at:
        if types.is_timestamp(kind) and kind.tz is None:
            raise ValueError(
                f"column {name} is of type {kind}, which has no time zone: give it one, such as "
                f'pyarrow.timestamp("{kind.unit}", "UTC")'
            )
        is_fit = types.is_timestamp(kind) or types.is_integer(kind)
        needed = "a timestamp with a time zone, or integers of milliseconds since 1970"
    elif name == ARGUMENT_NAMES.deliver_after:
        is_fit = types.is_duration(kind) or is_text(kind) or types.is_integer(kind)
        needed = 'a duration, texts such as "1h30m", or integers of milliseconds'
    else:
        is_fit = is_text(kind) or is_binary(kind)
        needed = "string or binary"
    if not is_fit:
        raise TypeError(f"column {name} is of type {kind}, and it must be {needed}")


def _without_view(column: Any) -> Any:
    arrow = load_pyarrow()
    if is_text(column.type):
        return column.cast(arrow.large_string())
    return column.cast(arrow.large_binary()) if is_binary(column.type) else column


def _without_views(records: pa.Table) -> pa.Table:
    """Return columns of records that can be filtered, which views cannot."""
    columns = {name: records[name] for name in records.column_names}
    for name in (KEY, VALUE):
        if name in columns:
            columns[name] = as_bytes(name, columns[name])
    headers = plain_headers(columns.pop(HEADERS)) if HEADERS in columns else None
    if headers is not None:
        columns[HEADERS] = headers
    return load_pyarrow().table(columns)
