"""Rows taken from fetched batches: column buffers, and the runs of rows of each partition."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.records.columns import ColumnBuffers
from tarry.records.open_batch import OpenBatch

# Limit of a column's bytes: Arrow counts them in 32 bits, and one more batch of at most 256 MiB
# still fits.
CONTENT_BYTES_MAX: Final = 256 * 1024 * 1024


class RowRun(NamedTuple):
    """Consecutive rows of one partition: their number, their first offset, and the offset after
    them."""

    topic: str
    partition: int
    row_count: int
    first_offset: int
    next_offset: int


class ColumnTaker:
    """Taker of rows for one Arrow batch."""

    def __init__(self, chosen: int, rows_max: int) -> None:
        self.buffers = ColumnBuffers(chosen)
        self.runs: list[RowRun] = []
        self._rows_max = rows_max

    @property
    def is_full(self) -> bool:
        buffers = self.buffers
        return buffers.row_count >= self._rows_max or buffers.content_bytes >= CONTENT_BYTES_MAX

    def take(self, batch: OpenBatch, offset: int, offset_end: int) -> None:
        """Take rows of a batch from `offset` to before `offset_end`; raise `CorruptData` if the
        batch is damaged."""
        self.buffers.take(batch, offset, offset_end, self._rows_max - self.buffers.row_count)
