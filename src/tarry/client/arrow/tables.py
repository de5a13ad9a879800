"""Tables: buffers of columns become Arrow's record batches.

This module looks at no single record.  Views refer to the fetched bytes, which live as long as a
batch refers to them, even after the client is closed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tarry.client.arrow.installed import load_pyarrow
from tarry.client.core.consumer.column_taker import ColumnTaker, RowRun
from tarry.client.core.group.offsets.what import OffsetsBehindRows
from tarry.records import columns
from tarry.records.columns import ColumnBuffers, ViewColumn

if TYPE_CHECKING:
    import pyarrow as pa

# Metadata key under which a batch keeps the offsets behind its rows, for a commit.
POSITIONS_KEY: Final = b"tarry.positions"

# Columns in their order, each with the decoder's flag for it; 0 if it is not decoded.
COLUMNS: Final = {
    "topic": 0,
    "partition": 0,
    "offset": columns.OFFSETS,
    "timestamp": columns.TIMESTAMPS,
    "timestamp_type": columns.TIMESTAMP_TYPES,
    "key": columns.KEYS,
    "value": columns.VALUES,
    "headers": columns.HEADERS,
    "leader_epoch": columns.LEADER_EPOCHS,
}


class Choice:
    """Columns that a user has chosen, and whether binary ones are views of the fetched bytes."""

    def __init__(self, names: Iterable[str] | None, *, views: bool) -> None:
        self.names = list(COLUMNS) if names is None else _names_of(names)
        self.are_views = views
        self.flags = 0
        for name in self.names:
            self.flags |= COLUMNS[name]
        self._pa = load_pyarrow()

    def taker(self, rows_max: int) -> ColumnTaker:
        return ColumnTaker(self.flags, rows_max)

    def batch(self, taker: ColumnTaker) -> pa.RecordBatch:
        """Return a record batch of the rows that the taker has."""
        pa = self._pa
        buffers, runs = taker.buffers, taker.runs
        arrays = [self._array(name, buffers, runs) for name in self.names]
        metadata = {POSITIONS_KEY: _encode_positions(buffers.row_count, runs)}
        return pa.RecordBatch.from_arrays(arrays, names=self.names, metadata=metadata)

    def _array(self, name: str, buffers: ColumnBuffers, runs: Sequence[RowRun]) -> pa.Array:
        pa = self._pa
        if name == "topic":
            return self._runs([(run.topic, run.row_count) for run in runs], pa.string())
        if name == "partition":
            return self._runs([(run.partition, run.row_count) for run in runs], pa.int32())
        if name == "offset":
            return self._fixed(pa.int64(), buffers, buffers.offsets())
        if name == "timestamp":
            return self._fixed(pa.timestamp("ms", "UTC"), buffers, buffers.timestamps())
        if name == "timestamp_type":
            return self._fixed(pa.int32(), buffers, buffers.timestamp_types())
        if name == "leader_epoch":
            return self._fixed(pa.int32(), buffers, buffers.leader_epochs())
        if name == "headers":
            return self._headers(buffers)
        return self._binary(buffers.keys if name == "key" else buffers.values, buffers)

    def _runs(self, runs: list[tuple[Any, int]], kind: pa.DataType) -> pa.Array:
        pa = self._pa
        parts = [pa.repeat(pa.scalar(value, kind), count) for value, count in runs]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _fixed(self, kind: pa.DataType, buffers: ColumnBuffers, data: bytes) -> pa.Array:
        pa = self._pa
        return pa.Array.from_buffers(kind, buffers.row_count, [None, pa.py_buffer(data)], 0)

    def _binary(self, column: ViewColumn, buffers: ColumnBuffers) -> pa.Array:
        pa = self._pa
        made = self._views(pa.binary_view(), column, buffers)
        return made if self.are_views else made.cast(pa.binary())

    def _views(self, kind: pa.DataType, column: ViewColumn, buffers: ColumnBuffers) -> pa.Array:
        pa = self._pa
        validity = column.validity()
        parts = [
            None if validity is None else pa.py_buffer(validity),
            pa.py_buffer(column.views()),
            *(pa.py_buffer(source) for source in buffers.sources),
        ]
        return pa.Array.from_buffers(kind, column.count, parts, column.null_count)

    def _headers(self, buffers: ColumnBuffers) -> pa.Array:
        pa = self._pa
        keys = self._views(pa.string_view(), buffers.header_keys, buffers).cast(pa.string())
        values = self._binary(buffers.header_values, buffers)
        pairs = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
        kind = pa.list_(pairs.type)
        ends = pa.py_buffer(buffers.header_ends())
        return pa.Array.from_buffers(kind, buffers.row_count, [None, ends], 0, children=[pairs])


def _names_of(names: object) -> list[str]:
    known = ", ".join(COLUMNS)
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f'columns takes names, such as ["offset", "value"], not {names!r:.60}')
    found = list(names)
    for name in found:
        if name not in COLUMNS:
            raise ValueError(f"there is no column {name!r:.60}; the columns are {known}")
    if not found or len(dict.fromkeys(found)) < len(found):
        raise ValueError(f"columns takes each name once, and one at least; they are {known}")
    return found


def check_rows_max(rows_max: object) -> None:
    """Raise an error for an invalid bound on the rows."""
    if type(rows_max) is not int:
        raise TypeError(f"max_rows takes an int, not {rows_max!r:.60}")
    if rows_max < 1:
        raise ValueError(f"max_rows={rows_max}: a batch has one row at the least")


def check_no_codecs(face: str, arguments: Mapping[str, object]) -> None:
    """Raise TypeError for codecs: they are called for each record, and columns hold bytes as they
    are."""
    for name in ("key", "value"):
        if arguments.get(name) is not None:
            raise TypeError(
                f"{face} takes no codec ({name}=...), because its columns hold bytes as they are: "
                "encode or decode the columns with pyarrow, or use the client for single records"
            )


def _encode_positions(row_count: int, runs: Sequence[RowRun]) -> bytes:
    offsets: dict[str, dict[str, int]] = {}
    for run in runs:
        offsets.setdefault(run.topic, {})[str(run.partition)] = run.next_offset
    return json.dumps({"rows": row_count, "offsets": offsets}).encode()


def positions_behind(batch: pa.RecordBatch) -> OffsetsBehindRows:
    """Return the offsets behind the rows of a batch that a consumer has yielded."""
    encoded = (batch.schema.metadata or {}).get(POSITIONS_KEY)
    if encoded is None:
        raise ValueError(
            "this batch does not say where it ends: commit one that ArrowConsumer.batches gave, or "
            'offsets such as {("orders", 0): 42}'
        )
    kept = json.loads(encoded)
    if kept["rows"] != batch.num_rows:
        raise ValueError(
            f"this batch has {batch.num_rows} of the {kept['rows']} rows that were read: commit "
            'the whole batch, or offsets such as {("orders", 0): 42}'
        )
    return OffsetsBehindRows(
        ((topic, int(partition)), offset)
        for topic, partitions in kept["offsets"].items()
        for partition, offset in partitions.items()
    )
