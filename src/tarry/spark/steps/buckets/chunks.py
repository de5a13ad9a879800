"""Chunks: rows of one bucket as bytes of Arrow; no row becomes a Python object on its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

# Column of the bucket, and that of its rows.
BUCKET: Final = "_tarry_bucket"
CHUNK: Final = "_tarry_chunk"
CHUNK_SCHEMA: Final = f"{BUCKET} int, {CHUNK} binary"

# Rows of a batch that goes back to Spark, as its own batches have them at most.
BATCH_ROWS_MAX: Final = 10_000


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make a chunk of the rows of each bucket in each batch; they keep their order."""
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    for batch in batches:
        if not batch.num_rows:
            continue
        order = compute.sort_indices(batch.column(BUCKET))
        sorted_rows = batch.take(order)
        ends = compute.run_end_encode(sorted_rows.column(BUCKET))
        rows = sorted_rows.drop_columns([BUCKET])
        chunks, begin = [], 0
        for end in ends.run_ends.to_pylist():
            chunks.append(chunk_of(rows.slice(begin, end - begin)))
            begin = end
        yield pa.RecordBatch.from_pydict(
            {BUCKET: ends.values, CHUNK: pa.array(chunks, pa.binary())}
        )


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows of chunks."""
    for batch in batches:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for chunk in batch.column(CHUNK):
            rows = rows_of(chunk.as_buffer())
            waiting.append(rows)
            count += rows.num_rows
            if count >= BATCH_ROWS_MAX:
                yield from _joined(waiting)
                waiting, count = [], 0
        yield from _joined(waiting)


def chunk_of(rows: pa.RecordBatch) -> bytes:
    """Return rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def rows_of(chunk: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the rows of a chunk, without a copy."""
    with pa.ipc.open_stream(chunk) as reader:
        return reader.read_next_batch()


def _joined(waiting: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
