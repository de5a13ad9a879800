"""Processor of the step `wait`: what Spark runs for each key on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tarry.spark.steps.states import MILLISECOND_US
from tarry.spark.steps.wait_outcomes import OpenWait, settle

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

# What a row of an outcome has.
OUTCOME_SCHEMA: Final = "key string, outcome string, began bigint, ended bigint"


class WaitsOnEvents(StatefulProcessor):
    """Processor that ends each wait once."""

    def __init__(self, within_us: int) -> None:
        self.within_us = within_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a key."""
        self._handle = handle
        self._known = handle.getValueState("wait", "began bigint, events array<bigint>")

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        """Take the events of a key."""
        return self._settle(key, [row["code"] for row in rows], timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        """Read on, now that the watermark has moved."""
        return self._settle(key, [], timerValues)

    def close(self) -> None:
        """Have nothing to close."""

    def _settle(self, key: Any, came: list[int], timers: TimerValues) -> Iterator[Any]:
        found = self._known.get()
        known = OpenWait(found[0], tuple(found[1])) if found else OpenWait(None, ())
        watermark_us = timers.getCurrentWatermarkInMs() * MILLISECOND_US
        left, outcomes = settle(known, came, watermark_us, self.within_us)
        next_us = left.next_time(self.within_us)
        if next_us is None:
            self._known.clear()
        elif left != known:
            self._known.update((left.began, list(left.events)))
            # Whole milliseconds, not before the time itself.
            self._handle.registerTimer(-(-next_us // MILLISECOND_US))
        return iter([Row(key=key[0], **one._asdict()) for one in outcomes])
