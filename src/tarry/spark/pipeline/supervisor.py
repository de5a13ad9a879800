"""Supervisor: starts stages, and starts again with a growing pause those that end by a fault."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from tarry.spark.pipeline.faults import StageFailed, fault_of
from tarry.spark.pipeline.progress import Progress
from tarry.spark.pipeline.stage_runs import StageRun

# How often the stages are looked at.
LOOK_SECONDS: Final = 0.2

PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 60.0

# A stage that has nothing to read was well if it ran for so long; a fault shows sooner.
CALM_SECONDS: Final = 900.0


class Supervisor:
    """Supervisor of one run.  `tell` gets a sentence for each restart; `watch` is called as often
    as the stages are looked at."""

    def __init__(
        self,
        progress: Progress,
        stopping: threading.Event,
        restarts_max: int,
        tell: Callable[[str], None],
        pause_s: float = PAUSE_SECONDS,
        *,
        calm_s: float = CALM_SECONDS,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self._progress = progress
        self._stopping = stopping
        self._restarts_max = restarts_max
        self._tell = tell
        self._pause_s = pause_s
        self._calm_s = calm_s
        self._watch = watch

    def run_once(self, runs: Sequence[StageRun]) -> None:
        """Run one stage after the other, each up to where its topics end."""
        for run in runs:
            if not self._stopping.is_set():
                self._supervise([_Watched(run, once=True)])

    def run_on(self, runs: Sequence[StageRun]) -> None:
        """Run all stages until they are stopped."""
        self._supervise([_Watched(run, once=False) for run in runs])

    def _supervise(self, watched: Sequence[_Watched]) -> None:
        try:
            while not self._stopping.is_set():
                for one in watched:
                    self._look(one)
                if all(one.is_done for one in watched):
                    return
                if self._watch is not None:
                    self._watch()
                self._stopping.wait(LOOK_SECONDS)
        finally:
            for one in watched:
                # A Spark that is gone has nothing left to stop.
                with suppress(Exception):
                    one.run.stop()

    def _look(self, one: _Watched) -> None:
        if one.is_done or monotonic() < one.due_s:
            return
        error: BaseException | None
        try:
            if not one.is_started:
                one.is_started = True
                one.started_s = monotonic()
                one.batches_at_start = self._progress.batches(one.run.name)
                one.run.start(once=one.once)
                return
            if one.run.is_running():
                return
            error = one.run.fault()
        except Exception as failed:
            error = failed
        if error is not None:
            self._failed(one, error)
        elif one.once:
            one.is_done = True
        else:
            raise StageFailed(f"stage {one.run.name} was stopped by somebody else")

    def _failed(self, one: _Watched, error: BaseException) -> None:
        """Set the time of the next start, or raise StageFailed if there is to be none."""
        fault = fault_of(error)
        name = one.run.name
        if fault.is_hopeless:
            raise StageFailed(f"stage {name} has ended: {fault.sentence}") from error
        was_calm = monotonic() - one.started_s >= self._calm_s
        if was_calm or self._progress.batches(name) > one.batches_at_start:
            # It came further, or had nothing to do: its faults are counted from here on.
            one.failures = 0
        one.failures += 1
        if one.failures > self._restarts_max:
            count = self._restarts_max
            tried = f" {count} restart{'s' if count > 1 else ''} did not help." if count else ""
            raise StageFailed(f"stage {name} has ended: {fault.sentence}{tried}") from error
        pause_s = min(self._pause_s * 2 ** (one.failures - 1), PAUSE_SECONDS_MAX)
        self._tell(f"stage {name} ended: {fault.sentence} It starts again in {pause_s:g} s")
        self._progress.restarted(name)
        one.due_s = monotonic() + pause_s
        one.is_started = False


class _Watched:
    """Stage under supervision."""

    def __init__(self, run: StageRun, *, once: bool) -> None:
        self.run = run
        self.once = once
        self.is_started = False
        self.is_done = False
        self.due_s = 0.0
        self.started_s = 0.0
        self.failures = 0
        self.batches_at_start = 0
