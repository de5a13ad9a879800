"""Runs of stages: a query of Spark, or the rounds of an archive in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.file.values import duration_ms
from tarry.spark.pipeline.left_out import LeftOut, loss_path
from tarry.spark.pipeline.progress import BatchProgress, Progress
from tarry.spark.pipeline.stages import Stage
from tarry.spark.reading.bounds import TopicChoice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tarry.spark.pipeline.listener import StageListener

# A round of an archive that is under way when a run is stopped.
ROUND_SECONDS_MAX = 30


class StageRun(Protocol):
    """Run of a stage, which may be started again after a fault."""

    name: str

    def start(self, *, once: bool) -> None:
        """Start it; with `once` it ends where the topics end now."""
        ...

    def is_running(self) -> bool:
        """Return true until it has ended."""
        ...

    def fault(self) -> BaseException | None:
        """Return what ended it; None if it came to its end."""
        ...

    def stop(self) -> None:
        """Stop it, and wait until it has ended."""
        ...


class QueryRun:
    """Run of a query; `make` starts one."""

    def __init__(
        self, name: str, make: Callable[[bool], StreamingQuery], listener: StageListener
    ) -> None:
        self.name = name
        self._make = make
        self._listener = listener
        self._query: StreamingQuery | None = None

    def start(self, *, once: bool) -> None:
        self._query = self._make(once)

    def is_running(self) -> bool:
        assert self._query is not None
        return self._query.isActive

    def fault(self) -> BaseException | None:
        assert self._query is not None
        self._listener.wait_ended(str(self._query.runId))
        return self._query.exception()

    def stop(self) -> None:
        if self._query is not None and self._query.isActive:
            self._query.stop()
            self._listener.wait_ended(str(self._query.runId))


class ArchiveRun:
    """Run of an archive: rounds up to the ends of the topics, and again after a pause."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        stage: Stage,
        progress: Progress,
        left_out: LeftOut | None = None,
    ) -> None:
        """`left_out` has what is lost and left out; without it a loss is a fault."""
        self.name = stage.name
        self._spark = spark
        self._pipeline = pipeline
        self._stage = stage
        self._progress = progress
        self._left_out = left_out
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None

    def start(self, *, once: bool) -> None:
        self._fault = None
        self._thread = threading.Thread(target=self._run, args=(once,), daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def fault(self) -> BaseException | None:
        return self._fault

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            # A round that takes longer ends with Spark, and leaves nothing that readers see.
            self._thread.join(ROUND_SECONDS_MAX)

    def _run(self, once: bool) -> None:
        wanted = self._pipeline.archive
        assert wanted is not None
        options = ArchiveOptions(
            settings=self._pipeline.reading(),
            by=wanted.by,
            table=wanted.table,
            fail_on_data_loss=self._left_out is None,
            loss_file=str(loss_path(self._pipeline, self.name)),
        )
        choice = TopicChoice(names=tuple(sorted(wanted.topics)))
        try:
            while True:
                before, begun_s = ArchiveSummary(), monotonic()
                for summary in archive(self._spark, choice, wanted.path, options):
                    self._tell(before, summary, monotonic() - begun_s)
                    before, begun_s = ArchiveSummary(**vars(summary)), monotonic()
                    if self._stopping.is_set():
                        return
                if once or self._stopping.wait(duration_ms(wanted.every) / 1_000):
                    return
        except BaseException as error:
            self._fault = error

    def _tell(self, before: ArchiveSummary, summary: ArchiveSummary, seconds: float) -> None:
        self._progress.add(
            BatchProgress(
                at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                pipeline=self._pipeline.name,
                stage=self.name,
                batch=self._progress.batches(self.name),
                records=summary.records - before.records,
                bytes=summary.bytes - before.bytes,
                seconds=round(seconds, 3),
                lag=None,
                seconds_left=None,
                rejected={},
                late=0,
                lost=[] if self._left_out is None else self._left_out.take(),
            )
        )
