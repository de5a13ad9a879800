"""Watch over Spark's workers: tasks that nobody takes wait for ever, and Spark says so in its own
log only; a query whose Python process never came waits as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often Spark is asked.
LOOK_SECONDS: Final = 5.0

# So long nobody takes a task before it is told, and told again.
AWAY_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 600.0

# So long there is no task at all in the middle of a micro-batch before it is told: its records may
# be on their way into the topics.
QUIET_SECONDS: Final = 600.0


class WorkerWatch:
    """Watch over what `active` gives: the number of tasks that run, for each of Spark's stages that
    has begun and not ended.  `tell` gets a sentence if there are such stages and no such task, or
    no stage at all while `busy` names queries in the middle of a micro-batch."""

    def __init__(
        self,
        active: Callable[[], Sequence[int]],
        busy: Callable[[], Sequence[str]],
        master: str,
        tell: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._active = active
        self._busy = busy
        self._master = master
        self._tell = tell
        self._clock = clock
        self._look_s = 0.0
        # Since when nobody takes a task, and since when there is none; None: it is not so.
        self._away = _Since(AWAY_SECONDS)
        self._quiet = _Since(QUIET_SECONDS)

    def look(self) -> None:
        """Look, if it is time to."""
        now_s = self._clock()
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_SECONDS
        tasks: Sequence[int] = ()
        queries: Sequence[str] = ()
        # A Spark that does not answer is noticed by whoever needs it.
        with suppress(Exception):
            tasks = self._active()
            queries = () if tasks else self._busy()
        seconds = self._away.seconds_to_tell(now_s, bool(tasks) and not any(tasks))
        if seconds is not None:
            self._tell(
                f"no worker of Spark has taken a task for {seconds:.0f} s, and the run waits: see "
                f"that the workers of {self._master} run, and have cores and memory free"
            )
        seconds = self._quiet.seconds_to_tell(now_s, bool(queries))
        if seconds is not None:
            self._tell(
                f"Spark has had no task for {seconds:.0f} s in the middle of a micro-batch of "
                f"{', '.join(queries)}: if it is large, it may be on its way into its topics; if "
                "nothing comes, end the run and start it again, and nothing is lost"
            )


class _Since:
    """Time since which something is so, and when to tell it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since_s: float | None = None
        self._tell_s = 0.0

    def seconds_to_tell(self, now_s: float, is_so: bool) -> float | None:
        """Return how long it has been so, if that is to be told now."""
        if not is_so:
            self._since_s = None
            return None
        if self._since_s is None:
            self._since_s, self._tell_s = now_s, now_s + self._seconds
        if now_s < self._tell_s:
            return None
        self._tell_s = now_s + AGAIN_SECONDS
        return now_s - self._since_s


def watch_of(spark: SparkSession, tell: Callable[[str], None]) -> WorkerWatch:
    """Make the watch over a session's workers."""
    tracker = spark.sparkContext.statusTracker()

    def active() -> Sequence[int]:
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return [one.numActiveTasks for one in found if one is not None]

    def busy() -> Sequence[str]:
        return [
            str(query.name) for query in spark.streams.active if query.status["isTriggerActive"]
        ]

    return WorkerWatch(active, busy, spark.sparkContext.master or "Spark", tell)
