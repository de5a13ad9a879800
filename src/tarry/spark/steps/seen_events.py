"""Processor of the step `deduplicate`: what Spark runs for each event on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tarry.spark.steps.columns import ERROR, RECORD, RULE
from tarry.spark.steps.seen_times import is_seen, with_time, without_old
from tarry.spark.steps.states import MILLISECOND_US

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

DUPLICATE: Final = "duplicate"
LATE: Final = "late"

# Key of rows that need no state begins with it, that of others with EVENT.
PASSES: Final = "-"
EVENT: Final = "+"

# Columns beside those of the row: the group, and the event time in microseconds.
KEY_COLUMN: Final = "_key"
MICROS_COLUMN: Final = "_micros"


class SeenEvents(StatefulProcessor):
    """Processor that marks events that were seen, and those too old to tell."""

    def __init__(self, columns: list[str], within_us: int, told: str) -> None:
        self.columns = columns
        self.within_us = within_us
        # What the mark says of a double.
        self.told = told

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a key: its spans."""
        self._handle = handle
        self._spans = handle.getValueState("spans", "spans array<bigint>")

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        """Mark the rows of a key, in the order in which they came."""
        if key[0].startswith(PASSES):
            for row in rows:
                yield self._marked(row, None, None)
            return
        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        found = self._spans.get()
        before = list(found[0]) if found else []
        spans = before
        for row in sorted(rows, key=arrival_of):
            time = row[MICROS_COLUMN]
            if is_seen(spans, time):
                yield self._marked(row, DUPLICATE, self.told)
            elif time <= watermark_us:
                yield self._marked(row, LATE, self._late(time, watermark_us))
                continue
            else:
                yield self._marked(row, None, None)
            spans = without_old(with_time(spans, time, self.within_us), watermark_us)
        if spans != before:
            self._spans.update((spans,))
            for end in sorted(set(spans[1::2]) - set(before[1::2])):
                self._handle.registerTimer(end // MILLISECOND_US + 1)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        """Forget what no event can be a double of any more."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * MILLISECOND_US
        found = self._spans.get()
        spans = list(found[0]) if found else []
        kept = without_old(spans, watermark_us)
        if not kept:
            self._spans.clear()
        elif kept != spans:
            self._spans.update((kept,))
        return iter(())

    def close(self) -> None:
        """Have nothing to close."""

    def _late(self, time: int, watermark_us: int) -> str:
        def text(micros: int) -> str:
            return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"

        return (
            f"the event is of {text(time)}, and what came before {text(watermark_us)} is "
            "forgotten: it may be a double or not"
        )

    def _marked(self, row: Any, rule: str | None, error: str | None) -> Any:
        values = {name: row[name] for name in self.columns}
        if rule is not None:
            values[RULE], values[ERROR] = rule, error
        return Row(**values)


def arrival_of(row: Any) -> tuple[Any, ...]:
    """Return what orders the rows of a micro-batch: when and where they were written."""
    record = row[RECORD]
    return (record["timestamp"], record["topic"], record["partition"], record["offset"])
