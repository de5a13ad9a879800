"""Values of records to columns: what cannot be decoded gets a sentence instead.

A value that its format cannot read is the record's fault and never fails a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa


class BadValue(Exception):
    """Value that is not what its schema says; the text is a sentence without its full stop."""


class Decoded(NamedTuple):
    """Columns of a batch, and for each row why it has none (None: it has)."""

    columns: pa.StructArray
    errors: list[str | None]


class ValueDecoder(Protocol):
    """Decoder of one format and one schema."""

    # The columns that it makes.
    fields: pa.StructType

    def decode_all(self, values: Sequence[bytes | str | None]) -> Decoded:
        """Decode the values of a batch."""
        ...


class RowDecoder(Protocol):
    """Decoder that knows one value at a time."""

    fields: pa.StructType

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a value.  Raises BadValue."""
        ...


NO_VALUE: Final = "the record has no value (null)"

# Letters of a sentence: it may name what the record has, and goes along with it in a header.
ERROR_LETTERS_MAX: Final = 500

# The years 2 to 9998: in every zone these are times of Python's.
TIME_US_MIN: Final = -62_104_060_800_000_000
TIME_US_MAX: Final = 253_370_764_799_999_999


def decode_rows(decoder: RowDecoder, values: Sequence[bytes | str | None]) -> Decoded:
    """Decode the values of a batch, one after the other."""
    rows: list[dict[str, Any] | None] = []
    errors: list[str | None] = []
    decode = decoder.decode
    for value in values:
        row, error = None, None
        if value is None:
            error = NO_VALUE
        else:
            try:
                row = decode(value.encode() if isinstance(value, str) else value)
            except BadValue as flaw:
                error = shortened(str(flaw))
        rows.append(row)
        errors.append(error)
    try:
        columns = pa.array(rows, decoder.fields)
        if not is_extreme(columns):
            return Decoded(columns, errors)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        pass
    names = decoder.fields.names

    def members_of(row: dict[str, Any]) -> list[Any]:
        return [row.get(name) for name in names]

    return fitting_rows(decoder.fields, rows, errors, members_of, pa.array)


def shortened(error: str) -> str:
    """Return a sentence that is not longer than a header should be."""
    if len(error) <= ERROR_LETTERS_MAX:
        return error
    return f"{error[: ERROR_LETTERS_MAX - 3]}..."


def is_extreme(column: pa.Array) -> bool:
    """Tell whether a column has a time that Python, in some zone, cannot tell.

    Steps that keep state hand rows to Python as objects: such a time would fail the query.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Any: pyarrow's compute functions have no types.
        compute: Any = import_module("pyarrow.compute")
        found = compute.min_max(column.cast(pa.int64())).as_py()
        return found["min"] is not None and not (
            found["min"] >= TIME_US_MIN and found["max"] <= TIME_US_MAX
        )
    if pa.types.is_struct(kind):
        return any(is_extreme(part) for part in column.flatten())
    if pa.types.is_map(kind):
        return is_extreme(column.items)
    return pa.types.is_list(kind) and is_extreme(column.flatten())


def fitting_rows(
    fields: pa.StructType,
    rows: list[Any],
    errors: list[str | None],
    members_of: Callable[[Any], Iterable[Any]],
    column_of: Callable[[list[Any], pa.DataType], pa.Array],
) -> Decoded:
    """Return the columns of the rows that fit into them, and say of the others why they do not."""
    for place, row in enumerate(rows):
        for field, member in zip(fields, members_of(row), strict=True) if row is not None else ():
            try:
                if is_extreme(column_of([member], field.type)):
                    raise ValueError("a time before the year 2 or behind the year 9998")
            except (pa.ArrowException, OverflowError, ValueError, TypeError) as flaw:
                rows[place] = None
                told = f"field {field.name} does not fit into {field.type}: {flaw!s:.200}"
                errors[place] = shortened(told)
                break
    return Decoded(column_of(rows, fields), errors)
