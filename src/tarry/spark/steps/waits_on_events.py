"""Processor of the step `wait`: what Spark runs for each bucket of keys on a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row

from tarry.spark.steps.buckets.cells import BucketCells
from tarry.spark.steps.buckets.processor import BucketProcessor
from tarry.spark.steps.states import MILLISECOND_US
from tarry.spark.steps.wait_outcomes import WaitOutcome, settle_due, settle_events, wait_leaves

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

# What a row of an outcome has.
OUTCOME_SCHEMA: Final = "key string, outcome string, began bigint, ended bigint"


class WaitsOnEvents(BucketProcessor):
    """Processor that ends each wait once."""

    def __init__(self, within_us: int) -> None:
        self.within_us = within_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a bucket."""
        self._cells = BucketCells(handle, wait_leaves(self.within_us))

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        """Take the events of the keys of a bucket."""
        codes: dict[str, list[int]] = {}
        for row in rows:
            codes.setdefault(row["key"], []).append(row["code"])
        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        tree, stored = self._cells.read()
        ended = settle_events(tree, codes, watermark_us, self.within_us)
        self._cells.write(tree, stored, watermark_us)
        return rows_of_outcomes(ended)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        """Read on, now that the watermark has moved."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        tree, stored = self._cells.read()
        ended = settle_due(tree, watermark_us, self.within_us)
        self._cells.write(tree, stored, watermark_us)
        return rows_of_outcomes(ended)


def rows_of_outcomes(ended: Iterable[tuple[str, WaitOutcome]]) -> Iterator[Row]:
    """Return outcomes as rows."""
    return iter([Row(key=key, **one._asdict()) for key, one in ended])
