"""Listener: hears from Spark of each micro-batch, and of each query that ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql.streaming.listener import StreamingQueryListener

from tarry.spark.pipeline.left_out import LeftOut
from tarry.spark.pipeline.progress import Progress, batch_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

log = logging.getLogger("tarry.spark")

# What Spark tells comes behind the end of a query; a machine that is busy takes its time.
HEARD_SECONDS_MAX: Final = 10


class StageListener(StreamingQueryListener):
    """Listener of the queries of one pipeline; `stages` has their names as Spark knows them."""

    def __init__(
        self,
        pipeline: str,
        stages: Mapping[str, str],
        progress: Progress,
        left_out: Mapping[str, LeftOut],
    ) -> None:
        self._pipeline = pipeline
        self._stages = stages
        self._progress = progress
        # By stage.
        self._left_out = left_out
        self._changed = threading.Condition()
        self._ended: dict[str, bool] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Hear of a query that has begun; nothing is told of it."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Hear of a query that waits for records; nothing is told of it."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Count a micro-batch."""
        stage = self._stages.get(event.progress.name or "")
        if stage is None:
            return
        try:
            told = msgspec.json.decode(event.progress.json)
            lost = self._left_out[stage].take()
            self._progress.add(batch_of(told, self._pipeline, stage, lost))
        except Exception:
            # Spark drops what a listener raises.
            log.exception("progress of stage %s cannot be told", stage)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note that all has been heard of a run of a query."""
        with self._changed:
            self._ended[str(event.runId)] = True
            self._changed.notify_all()

    def wait_ended(self, run_id: str) -> None:
        """Wait until all has been heard of a run that has ended."""
        with self._changed:
            self._changed.wait_for(lambda: run_id in self._ended, HEARD_SECONDS_MAX)
