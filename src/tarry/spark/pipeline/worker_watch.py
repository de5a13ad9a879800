"""Watch over Spark's workers: a stage whose tasks nobody takes waits for ever, and Spark says so in
its own log only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often Spark is asked.
LOOK_SECONDS: Final = 5.0

# So long nobody takes a task before it is told, and told again.
AWAY_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 600.0


class WorkerWatch:
    """Watch over what `active` gives: the number of tasks that run, for each of Spark's stages that
    has begun and not ended.  `tell` gets a sentence if there are such stages and no such task."""

    def __init__(
        self,
        active: Callable[[], Sequence[int]],
        master: str,
        tell: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._active = active
        self._master = master
        self._tell = tell
        self._clock = clock
        self._look_s = 0.0
        # None: somebody works, or there is nothing to do.
        self._away_since_s: float | None = None
        self._tell_s = 0.0

    def look(self) -> None:
        """Look, if it is time to."""
        now_s = self._clock()
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_SECONDS
        try:
            tasks = self._active()
        except Exception:
            # A Spark that does not answer is noticed by whoever needs it.
            tasks = ()
        if not tasks or any(tasks):
            self._away_since_s = None
            return
        if self._away_since_s is None:
            self._away_since_s, self._tell_s = now_s, now_s + AWAY_SECONDS
        if now_s >= self._tell_s:
            self._tell_s = now_s + AGAIN_SECONDS
            self._tell(
                f"no worker of Spark has taken a task for {now_s - self._away_since_s:.0f} s, and "
                f"the run waits: see that the workers of {self._master} run, and have cores and "
                "memory free"
            )


def watch_of(spark: SparkSession, tell: Callable[[str], None]) -> WorkerWatch:
    """Make the watch over a session's workers."""
    tracker = spark.sparkContext.statusTracker()

    def active() -> Sequence[int]:
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return [one.numActiveTasks for one in found if one is not None]

    return WorkerWatch(active, spark.sparkContext.master or "Spark", tell)
