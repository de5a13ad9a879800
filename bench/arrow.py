"""Columns: µs of CPU a record, from fetched bytes to Arrow and from Arrow to batches.

    .venv/bin/python bench/arrow.py                 the form that is built
    TARRY_PURE=1 .venv/bin/python bench/arrow.py    interpreted

Records of 100 B without a key, 160 a batch, 64,000 at a time.  Each figure is the best of many
rounds in one process; other work on the machine makes it larger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa

import tarry
from tarry.client.arrow.outgoing_rows import OutgoingRows
from tarry.client.arrow.tables import Choice
from tarry.client.core.consumer.column_taker import RowRun
from tarry.records.builder import BatchBuilder
from tarry.records.from_columns import append_rows
from tarry.records.open_batch import OpenBatch
from tarry.records.record import decode_records

BATCH_RECORDS: Final = 160
BATCHES: Final = 400
ROUNDS: Final = 40
SIZE_MAX: Final = 1 << 28
BATCH_BYTES: Final = 16_384
END: Final = 2**62

CHOICES: Final = {
    "all columns": None,
    "offset, timestamp, value": ["offset", "timestamp", "value"],
    "value": ["value"],
}


def fetched() -> tuple[bytes, int]:
    """A frame of batches one behind the other, and the size of each."""
    builder = BatchBuilder()
    for number in range(BATCH_RECORDS):
        builder.append(1_700_000_000_000 + number, None, os.urandom(100))
    batch = builder.build()
    frame = b"".join(
        (number * BATCH_RECORDS).to_bytes(8, "big") + batch[8:] for number in range(BATCHES)
    )
    return frame, len(batch)


def measured(act: Callable[[], object]) -> float:
    """µs of CPU a record."""
    best = float("inf")
    for _ in range(ROUNDS if tarry.FORM == "compiled" else 2):
        started = time.process_time()
        act()
        best = min(best, time.process_time() - started)
    return best * 1e6 / (BATCH_RECORDS * BATCHES)


def decode(frame: bytes, size: int, choice: Choice, *, is_built: bool) -> None:
    taker = choice.taker(BATCH_RECORDS * BATCHES)
    buffers = taker.buffers
    for number in range(BATCHES):
        batch = OpenBatch(frame, number * size)
        batch.unfold(SIZE_MAX)
        buffers.take(batch, 0, END, BATCH_RECORDS)
    taker.runs.append(RowRun("t", 0, int(buffers.row_count), 0, 0))
    if is_built:
        choice.batch(taker)


def encode(table: pa.Table) -> None:
    for part in OutgoingRows(table, 4).parts(1_700_000_000_000):
        part.largest()
        for places in part.split(4, False):
            first = 0
            while first * 4 < len(places):
                first += append_rows(BatchBuilder(), part, places, first, BATCH_BYTES)


def main() -> None:
    frame, size = fetched()
    print(f"{tarry.FORM}; µs of CPU a record of 100 B")
    for name, columns in CHOICES.items():
        for views in (True, False):
            choice = Choice(columns, views=views)
            walk = measured(lambda choice=choice: decode(frame, size, choice, is_built=False))
            whole = measured(lambda choice=choice: decode(frame, size, choice, is_built=True))
            kind = "views " if views else "binary"
            print(f"  {name:26} {kind} walk {walk:.3f}  with the batch of pyarrow {whole:.3f}")
    objects = measured(
        lambda: [
            decode_records(frame, size_max=SIZE_MAX, position=number * size)
            for number in range(BATCHES)
        ]
    )
    print(f"  {'record objects':26} {objects:.3f}")
    values = [os.urandom(100) for _ in range(BATCH_RECORDS * BATCHES)]
    keys = [b"%d" % number for number in range(len(values))]
    tables = {
        "table to batches, no key": pa.table({"value": values}),
        "table to batches, by key": pa.table({"value": values, "key": keys}),
    }
    for name, table in tables.items():
        print(f"  {name:26} {measured(lambda table=table: encode(table)):.3f}")


if __name__ == "__main__":
    main()
