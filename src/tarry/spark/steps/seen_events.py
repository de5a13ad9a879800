"""Processor of the step `deduplicate`: what Spark runs for each bucket of events on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

from tarry.spark.steps.buckets.cells import BucketCells
from tarry.spark.steps.buckets.processor import BucketProcessor
from tarry.spark.steps.seen_times import forget, seen_leaves
from tarry.spark.steps.states import MILLISECOND_US

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )


class SeenEvents(BucketProcessor):
    """Processor that marks events that were seen, and those too old to tell."""

    def __init__(self, columns: list[str], within_us: int, told: str) -> None:
        self.columns = columns
        self.within_us = within_us
        # What the mark says of a double.
        self.told = told

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a bucket."""
        self._cells = BucketCells(handle, seen_leaves(self.within_us))

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        """Mark the rows of a bucket, in the order in which they came."""
        # Loaded late: Spark waits ten seconds for the process that calls `init` only.
        from tarry.spark.steps.buckets.chunks import CHUNK, chunk_of, rows_of
        from tarry.spark.steps.event_marks import EventMarks

        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        tree, stored = self._cells.read()
        marker = EventMarks(watermark_us, self.within_us, self.told)
        for batch in marker.marked([rows_of(row[CHUNK]) for row in rows], tree):
            yield Row(**{CHUNK: chunk_of(batch.select(self.columns))})
        self._cells.write(tree, stored, watermark_us)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        """Forget what no event can be a double of any more."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        tree, stored = self._cells.read()
        tree.change_due(watermark_us, partial(forget, watermark_us=watermark_us))
        self._cells.write(tree, stored, watermark_us)
        return iter(())
