"""Outgoing rows: a table of pyarrow is checked, and then split into parts that are plain buffers.

The whole table is checked before the first row is taken, and all but the largest partition before
the topic is known.  A part is so small that 32 bits count its bytes, however large a column is.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tarry.client.arrow.installed import load_pyarrow
from tarry.client.core.producer.due import ARGUMENT_NAMES
from tarry.records.from_columns import BY_KEY, BytesColumn, RecordRows, RowHeaders

if TYPE_CHECKING:
    import pyarrow as pa

KEY: Final = "key"
VALUE: Final = "value"
HEADERS: Final = "headers"
PARTITION: Final = "partition"
TIMESTAMP: Final = "timestamp"
COLUMNS: Final = (KEY, VALUE, HEADERS, PARTITION, TIMESTAMP)

# Columns that say when rows are due: they become others of these columns before rows are encoded.
DUE_COLUMNS: Final = tuple(ARGUMENT_NAMES)

# Largest number of a partition: a signed number of 4 bytes.
PARTITION_MAX: Final = 2**31 - 1

# Bounds on one part of a table.
PART_ROWS_MAX: Final = 65_536
PART_BYTES_MAX: Final = 64 * 1024 * 1024


class OutgoingRows:
    """Rows of a table, in the types that records are made of."""

    def __init__(self, table: object) -> None:
        self._pa = load_pyarrow()
        self._compute: Any = import_module("pyarrow.compute")
        made = as_table(table)
        check_names(made.column_names)
        given = {name: made[name] for name in made.column_names}
        self._keys = as_bytes(KEY, given[KEY]) if KEY in given else None
        self._values = as_bytes(VALUE, given[VALUE])
        self._headers = checked_headers(given[HEADERS]) if HEADERS in given else None
        # Lowest and highest partition that a row names; None if no row names one.
        self._partition_limits: tuple[int, int] | None = None
        self._partitions = self._checked_partitions(given.get(PARTITION))
        self._timestamps = self._checked_timestamps(given.get(TIMESTAMP))
        self.row_count = int(made.num_rows)

    def check_partitions(self, partition_count: int) -> None:
        """Raise ValueError if a row names a partition that the topic does not have."""
        limits = self._partition_limits
        if limits is not None and limits[1] >= partition_count:
            raise ValueError(
                f"column partition goes from {limits[0]} to {limits[1]}, and the topic has "
                f"the partitions 0 to {partition_count - 1}; null lets the key decide"
            )

    def _checked_partitions(self, column: Any) -> Any:
        pa = self._pa
        if column is None or pa.types.is_null(column.type):
            return None
        if not pa.types.is_integer(column.type):
            raise TypeError(f"column partition is of type {column.type}, not of integers")
        limits = self._compute.min_max(column).as_py()
        if limits["min"] is not None:
            for limit in limits.values():
                if not 0 <= limit <= PARTITION_MAX:
                    raise ValueError(
                        f"column partition has {limit}, and partitions go from 0 to "
                        f"{PARTITION_MAX}; null lets the key decide"
                    )
            self._partition_limits = limits["min"], limits["max"]
        return column.cast(pa.int32()).fill_null(BY_KEY)

    def _checked_timestamps(self, column: Any) -> Any:
        pa = self._pa
        if column is None or pa.types.is_null(column.type):
            return None
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        elif not pa.types.is_integer(column.type):
            raise TypeError(
                f"column timestamp is of type {column.type}, neither a timestamp nor milliseconds"
            )
        column = column.cast(pa.int64())
        least = self._compute.min(column).as_py()
        if least is not None and least < 0:
            raise ValueError(f"column timestamp has {least}, which is before 1970; null means now")
        return column

    def parts(self, now_wall_ms: int) -> Iterator[RecordRows]:
        """Yield the rows in their order, as buffers; a row without a timestamp gets
        `now_wall_ms`."""
        first = 0
        while first < self.row_count:
            count = self._count_of_part(first)
            yield self._part(first, count, now_wall_ms)
            first += count

    def _count_of_part(self, first: int) -> int:
        count = min(PART_ROWS_MAX, self.row_count - first)
        columns = [one for one in (self._keys, self._values, self._headers) if one is not None]
        while count > 1:
            if sum(one.slice(first, count).nbytes for one in columns) <= PART_BYTES_MAX:
                break
            count //= 2
        return count

    def _part(self, first: int, count: int, now_wall_ms: int) -> RecordRows:
        keys = None if self._keys is None else self._column(self._keys, first, count)
        headers = None
        if self._headers is not None:
            headers = self._row_headers(self._whole(self._headers, first, count))
        partitions = None
        if self._partitions is not None:
            partitions = self._fixed(self._whole(self._partitions, first, count), 4)
        if self._timestamps is None:
            timestamps = now_wall_ms.to_bytes(8, "little") * count
        else:
            times = self._whole(self._timestamps, first, count).fill_null(now_wall_ms)
            timestamps = self._fixed(times, 8)
        values = self._column(self._values, first, count)
        return RecordRows(count, keys, values, headers, timestamps, partitions)

    def _whole(self, column: Any, first: int, count: int) -> pa.Array:
        """Return some rows of a column as one array."""
        return self._joined(column.slice(first, count).chunks, column.type)

    def _joined(self, chunks: list[Any], kind: Any) -> pa.Array:
        pa = self._pa
        if len(chunks) == 1:
            return chunks[0]
        return pa.concat_arrays(chunks) if chunks else pa.array([], kind)

    @staticmethod
    def _fixed(array: pa.Array, width: int) -> bytes:
        data = array.buffers()[1]
        size = len(array) * width
        return bytes(data.slice(array.offset * width, size).to_pybytes()) if size else b""

    def _column(self, column: Any, first: int, count: int) -> BytesColumn:
        return self._bytes_column(self._whole(column, first, count))

    def _bytes_column(self, array: pa.Array) -> BytesColumn:
        """Return the buffers of a `large_binary` array, which may begin at any place in them."""
        count, offset = len(array), array.offset
        if count == 0:
            return BytesColumn(b"", bytes(8), 0, None, 0)
        validity, ends, data = array.buffers()
        places = ends.slice(offset * 8, (count + 1) * 8).to_pybytes()
        base = int.from_bytes(places[:8], "little")
        size = int.from_bytes(places[-8:], "little") - base
        content = data.slice(base, size).to_pybytes() if data is not None and size else b""
        bits = None
        if validity is not None and array.null_count:
            byte = offset // 8
            bits = validity.slice(byte, (offset % 8 + count + 7) // 8).to_pybytes()
        return BytesColumn(content, places, base, bits, offset % 8)

    def _row_headers(self, array: pa.Array) -> RowHeaders:
        pa = self._pa
        lists = array.cast(pa.large_list(array.type.value_type))
        # Pairs of null rows are left out, so that ends and pairs agree.
        pairs = lists.flatten()
        counts = self._compute.list_value_length(lists).fill_null(0).cast(pa.int64())
        ends = pa.concat_arrays([pa.array([0], pa.int64()), self._compute.cumulative_sum(counts)])
        keys, values = (
            as_bytes(f"headers.{name}", pa.chunked_array([pairs.field(number)]))
            for number, name in enumerate(("key", "value"))
        )
        kind = pa.large_binary()
        return RowHeaders(
            self._fixed(ends, 8),
            self._bytes_column(self._joined(keys.chunks, kind)),
            self._bytes_column(self._joined(values.chunks, kind)),
        )


# --- Columns as users give them


def as_table(table: object) -> pa.Table:
    """Return a table, a record batch or a data frame of another library as a table."""
    pa = load_pyarrow()
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise TypeError(
        f"send takes a pyarrow.Table, a RecordBatch or a data frame that gives Arrow's columns,"
        f" not {type(table).__name__}"
    )


def check_names(names: list[str], taken: tuple[str, ...] = COLUMNS) -> None:
    """Raise ValueError for a column that is not `taken`, or is there twice."""
    known = ", ".join([*COLUMNS, *DUE_COLUMNS])
    for name in names:
        if name not in taken:
            raise ValueError(
                f"column {name!r:.60} is no part of a record: rename it, or leave it out with "
                f"table.select([...]); the columns are {known}"
            )
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} is there {names.count(name)} times")
    if VALUE not in names:
        raise ValueError(f"a table needs a column value; the columns are {known}")


def as_bytes(name: str, column: Any) -> Any:
    """Return a column as `large_binary`.  Raises TypeError if it does not hold bytes."""
    pa = load_pyarrow()
    column = decoded(column)
    _check_bytes(name, column.type)
    if is_text(column.type):
        column = column.cast(pa.large_string())
    return column.cast(pa.large_binary())


def decoded(column: Any) -> Any:
    """Return the values of a column that may be encoded by a dictionary."""
    is_encoded = load_pyarrow().types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_encoded else column


def is_text(kind: Any) -> bool:
    """Return true for the types of strings."""
    types = load_pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: Any) -> bool:
    """Return true for the types of bytes."""
    types = load_pyarrow().types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def _check_bytes(name: str, kind: Any) -> None:
    """Raise TypeError for a column type that does not hold bytes."""
    types = load_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (is_text(kind) or is_binary(kind) or types.is_null(kind)):
        raise TypeError(
            f"column {name} is of type {kind}, and records hold bytes: cast it to binary or "
            "string first"
        )


def checked_headers(column: Any) -> Any:
    """Return a column of headers as lists of a key and a value; None if all rows are null by its
    type.  Raises TypeError for other types."""
    pa = load_pyarrow()
    types = pa.types
    kind = column.type
    if types.is_null(kind):
        return None
    pair = kind.value_type if types.is_list(kind) or types.is_large_list(kind) else None
    if types.is_map(kind):
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        column = column.cast(pa.large_list(pair))
    elif (
        pair is None or not types.is_struct(pair) or [one.name for one in pair] != ["key", "value"]
    ):
        raise TypeError(
            f"column headers is of type {kind}, not list<struct<key: string, value: binary>>"
        )
    for field in column.type.value_type:
        _check_bytes(f"headers.{field.name}", field.type)
    return column


def plain_headers(column: Any) -> Any:
    """Return a column of headers as lists of pairs of `large_binary`; None if all rows are null by
    its type."""
    pa = load_pyarrow()
    column = checked_headers(column)
    if column is None:
        return None
    # Texts become bytes in two steps, as in `as_bytes`.
    pair = [
        (one.name, pa.large_string() if is_text(one.type) else pa.large_binary())
        for one in column.type.value_type
    ]
    texts = column.cast(pa.large_list(pa.struct(pair)))
    plain = [(name, pa.large_binary()) for name, _ in pair]
    return texts.cast(pa.large_list(pa.struct(plain)))
