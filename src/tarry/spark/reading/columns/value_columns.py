"""Values as typed columns: decoded in the task that has fetched them.

The columns are those of the step `decode`: the fields, `_record` with the record's own columns,
`_time`, `_rule` and `_error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tarry.base.errors import TarryError
from tarry.spark.steps.columns import ORIGIN, RULE, TIME
from tarry.spark.steps.decoding import decoded_columns
from tarry.spark.steps.formats.decoders import ValueDecoding, decoder_of

if TYPE_CHECKING:
    from tarry.spark.steps.formats.values import ValueDecoder

# Rows that are decoded together: their values are objects for a moment, of some KB each.
ROWS_MAX: Final = 10_000

# Bytes of values that are decoded together: as objects they may be a hundred times as many, and a
# record batch that compresses well has many more than were fetched.
VALUE_BYTES_MAX: Final = 8 * 1024 * 1024

PERMISSIVE: Final = "permissive"
DROP_MALFORMED: Final = "dropmalformed"
FAIL_FAST: Final = "failfast"


class ValueMalformed(TarryError):
    """Error of a task that reads with `mode=failFast` and has a value that cannot be decoded."""


@dataclass(frozen=True)
class ValueColumns:
    """Columns of a read: what a worker needs to make them, which Spark pickles."""

    decoding: ValueDecoding
    mode: str
    # All columns, in their order.
    names: tuple[str, ...]
    # Columns in the struct `_record`, in their order.
    record: tuple[str, ...]

    @property
    def has_times(self) -> bool:
        """Tell whether event times are made, by which a row may be an error."""
        return TIME in self.names or bool(self.decoding.time)

    @property
    def fetched(self) -> tuple[str, ...]:
        """Columns of records that are fetched."""
        needed = (
            "value",
            *(("timestamp",) if self.has_times else ()),
            *(ORIGIN if self.mode == FAIL_FAST else ()),
        )
        return tuple(dict.fromkeys((*self.record, *needed)))

    def batches(self, fetched: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode batches of the columns that are fetched."""
        decoder = decoder_of(self.decoding)
        for batch in fetched:
            for begin in range(0, batch.num_rows, ROWS_MAX):
                for part in _parts(batch.slice(begin, ROWS_MAX)):
                    yield self._decoded(decoder, part)

    def _decoded(self, decoder: ValueDecoder, batch: pa.RecordBatch) -> pa.RecordBatch:
        time = self.decoding.time if self.has_times else None
        columns, errors = decoded_columns(decoder, batch, self.record, time)
        if self.mode == FAIL_FAST and any(errors):
            raise ValueMalformed(_malformed(batch, errors))
        made = pa.RecordBatch.from_arrays(
            [columns[name] for name in self.names], names=list(self.names)
        )
        if self.mode != DROP_MALFORMED or not any(errors):
            return made
        compute: Any = import_module("pyarrow.compute")
        return made.filter(compute.is_null(columns[RULE]))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield parts whose values are not too many bytes; a large value is alone."""
    if batch.num_rows < 2 or batch.column("value").nbytes <= VALUE_BYTES_MAX:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _malformed(batch: pa.RecordBatch, errors: list[str | None]) -> str:
    row, error = next((row, error) for row, error in enumerate(errors) if error is not None)
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ORIGIN)
    return (
        f"{topic} [{partition}] offset {offset}: {error}. With mode=permissive such a record is "
        "read with null in its fields and the reason in _error, with mode=dropMalformed it is left "
        "out"
    )
