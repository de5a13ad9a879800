"""Values of records to columns: what cannot be decoded gets a sentence instead.

A value that its format cannot read is the record's fault and never fails a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa


class BadValue(Exception):
    """Value that is not what its schema says; the text is a sentence without its full stop."""


class ValueDecoder(Protocol):
    """Decoder of one format and one schema."""

    # The columns that it makes.
    fields: pa.StructType

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a value.  Raises BadValue."""
        ...


class Decoded(NamedTuple):
    """Columns of a batch, and for each row why it has none (None: it has)."""

    columns: pa.StructArray
    errors: list[str | None]


NO_VALUE = "the record has no value (null)"


def decode_values(decoder: ValueDecoder, values: Sequence[bytes | str | None]) -> Decoded:
    """Decode the values of a batch."""
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
                error = str(flaw)
        rows.append(row)
        errors.append(error)
    try:
        return Decoded(pa.array(rows, decoder.fields), errors)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return _one_by_one(decoder.fields, rows, errors)


def _one_by_one(
    fields: pa.StructType, rows: list[dict[str, Any] | None], errors: list[str | None]
) -> Decoded:
    """Find the rows whose values no column of this type can hold."""
    for place, row in enumerate(rows):
        for field in fields if row is not None else ():
            assert row is not None
            try:
                pa.array([row.get(field.name)], field.type)
            except (pa.ArrowException, OverflowError, ValueError, TypeError) as flaw:
                rows[place] = None
                errors[place] = f"field {field.name} does not fit into {field.type}: {flaw!s:.200}"
                break
    return Decoded(pa.array(rows, fields), errors)
