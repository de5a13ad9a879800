"""Marks of events that were seen, and of those too old to tell, on batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from tarry.spark.steps.buckets.tree import BucketTree
from tarry.spark.steps.columns import ERROR, ORIGIN, RECORD, RULE
from tarry.spark.steps.seen_times import Spans, forget, is_seen, with_time, without_old

DUPLICATE: Final = "duplicate"
LATE: Final = "late"

# Columns beside those of the row: the digest of the event, null for a row that needs no state, and
# the event time in microseconds.
DIGEST: Final = "_tarry_digest"
MICROS: Final = "_tarry_micros"


class EventMarks:
    """Marks of the events of one bucket and micro-batch."""

    def __init__(self, watermark_us: int, within_us: int, told: str) -> None:
        self._watermark_us = watermark_us
        self._within_us = within_us
        self._told = told

    def marked(
        self, batches: list[pa.RecordBatch], tree: BucketTree[Spans]
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows with their marks; the tree learns of the events."""
        places, digests, times = arrivals_of(batches)
        marks: dict[int, tuple[str, str]] = {}

        def mark(seen: dict[bytes, Spans], near: list[int]) -> None:
            forget(seen, watermark_us=self._watermark_us)
            for one in near:
                found = self._mark(seen, digests[one], times[one])
                if found is not None:
                    marks[places[one]] = found

        tree.change(digests, mark)
        begin = 0
        for batch in batches:
            near = [marks.get(place) for place in range(begin, begin + batch.num_rows)]
            begin += batch.num_rows
            yield with_marks(batch, near)

    def _mark(self, seen: dict[bytes, Spans], digest: bytes, time: int) -> tuple[str, str] | None:
        spans = seen.get(digest, [])
        mark = None
        if is_seen(spans, time):
            mark = (DUPLICATE, self._told)
        elif time <= self._watermark_us:
            return (LATE, late_text(time, self._watermark_us))
        spans = without_old(with_time(spans, time, self._within_us), self._watermark_us)
        if spans:
            seen[digest] = spans
        else:
            seen.pop(digest, None)
        return mark


def arrivals_of(
    batches: list[pa.RecordBatch],
) -> tuple[list[int], list[bytes], list[int]]:
    """Return the events among rows, in the order in which their records were written.

    Of each: its place among the rows of all batches, its digest, and its time.
    """
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    names = ("timestamp", *ORIGIN)
    slim = pa.concat_tables(
        pa.table(
            {
                DIGEST: batch.column(DIGEST),
                MICROS: batch.column(MICROS),
                **{name: compute.struct_field(batch.column(RECORD), name) for name in names},
            }
        )
        for batch in batches
    )
    slim = slim.append_column("place", pa.array(range(slim.num_rows), pa.int64()))
    slim = slim.filter(compute.is_valid(slim[DIGEST]))
    slim = slim.sort_by([(name, "ascending") for name in names])
    return slim["place"].to_pylist(), slim[DIGEST].to_pylist(), slim[MICROS].to_pylist()


def with_marks(batch: pa.RecordBatch, marks: list[tuple[str, str] | None]) -> pa.RecordBatch:
    """Return rows with a rule and a sentence where there is a mark."""
    if not any(marks):
        return batch
    compute: Any = import_module("pyarrow.compute")
    for name, part in ((RULE, 0), (ERROR, 1)):
        index = batch.schema.get_field_index(name)
        known = batch.column(index)
        texts = pa.array([mark and mark[part] for mark in marks], known.type)
        batch = batch.set_column(index, batch.schema.field(index), compute.coalesce(texts, known))
    return batch


def late_text(time: int, watermark_us: int) -> str:
    """Return what the mark of an event says that is older than what is known."""

    def text(micros: int) -> str:
        return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"

    return (
        f"the event is of {text(time)}, and what came before {text(watermark_us)} is "
        "forgotten: it may be a double or not"
    )
