"""Other timers for Python under measurement: asyncio, uvloop, `sched`, APScheduler."""

from __future__ import annotations

import asyncio
import sched
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, Final

from timer_subject import CHUNK, Subject, each

# The span to which uvloop's delays are shrunk where time cannot be set and must be waited for.
SHRUNK_S: Final = 0.5

# A delay that rounds to no millisecond would be no timer.
SOON_S: Final = 0.002

# By how much a busy machine may delay the adding between two readings of the clock.
LATE_S: Final = 0.3


class AsyncioSubject(Subject):
    """asyncio's own loop, on a clock of ours; the time-outs are `call_later` of one function."""

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        self.now_s = 0.0
        self.end_s = span_ms / 1000 + 1
        self.loop = asyncio.new_event_loop()
        self.loop.time = lambda: self.now_s  # type: ignore[method-assign]
        self.delays_s = [delay_ms / 1000 for delay_ms in delays_ms]

    def add(self) -> None:
        self.handles = list(map(self.loop.call_later, self.delays_s, repeat(self.task)))

    def cancel(self) -> None:
        each(type(self.handles[0]).cancel, self.chosen)

    def advance(self) -> None:
        """Run one turn of the loop, which runs all that is due before it stops."""
        self.now_s = self.end_s
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def end(self) -> None:
        self.loop.close()

    def forget(self) -> None:
        super().forget()
        self.delays_s = []


class UvloopSubject(AsyncioSubject):
    """uvloop, whose clock cannot be set.

    A pass that advances shrinks all delays to half a second, which leaves their order and so the
    work of the heap as it is, and waits, unmeasured, until all is due.
    """

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        import uvloop

        self.loop = uvloop.new_event_loop()
        factor = SHRUNK_S / span_ms if is_to_advance else 0.001
        self.delays_s = [delay_ms * factor for delay_ms in delays_ms]
        self.base_s = time.monotonic() + 0.02 + len(delays_ms) * 2e-6

    def add(self) -> None:
        call_later, tasks, delays_s = self.loop.call_later, repeat(self.task), self.delays_s
        for start in range(0, len(delays_s), CHUNK):
            left_s = max(self.base_s - time.monotonic(), SOON_S)
            chunk_s = map(left_s.__add__, delays_s[start : start + CHUNK])
            self.handles += map(call_later, chunk_s, tasks)

    def await_due(self) -> None:
        last_s = max(self.base_s - time.monotonic(), 0.0) + SHRUNK_S + LATE_S
        self.loop.call_later(last_s, self.loop.stop)
        time.sleep(last_s + 0.002)

    def advance(self) -> None:
        """Run one turn of the loop; the last entry that is due stops it."""
        self.loop.run_forever()


class SchedSubject(Subject):
    """`sched` of the standard library, on a clock of ours.  Its cancel looks at all events."""

    cancels_max = 20

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        self.now_ms = 0
        self.end_ms = span_ms
        self.scheduler = sched.scheduler(lambda: self.now_ms, lambda delay: None)
        self.delays_ms = list(delays_ms)

    def add(self) -> None:
        enterabs, task = self.scheduler.enterabs, self.task
        self.handles = list(map(enterabs, self.delays_ms, repeat(1), repeat(task)))

    def cancel(self) -> None:
        each(self.scheduler.cancel, self.chosen)

    def advance(self) -> None:
        self.now_ms = self.end_ms
        self.scheduler.run(blocking=False)
        assert self.scheduler.empty()

    def end(self) -> None:
        self.scheduler = sched.scheduler()

    def forget(self) -> None:
        super().forget()
        self.delays_ms = []


class ApschedulerSubject(Subject):
    """APScheduler with its memory store; jobs run in the calling thread.

    Its clock cannot be set, but a job may be due in the past: all of them are, and the scheduler
    looks at them only when it is told to.
    """

    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        from apscheduler.executors.debug import DebugExecutor
        from apscheduler.schedulers.base import BaseScheduler

        class ByHand(BaseScheduler):  # type: ignore[misc]
            def wakeup(self) -> None:
                """Do nothing: no thread sleeps."""

            def shutdown(self, wait: bool = True) -> None:
                super().shutdown(wait)

        self.scheduler: Any = ByHand(
            executors={"default": DebugExecutor()},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )
        self.scheduler.start(paused=True)
        start = datetime.now(UTC) - timedelta(milliseconds=span_ms + 1000)
        self.dates = [start + timedelta(milliseconds=delay_ms) for delay_ms in delays_ms]

    def add(self) -> None:
        add_job, task = self.scheduler.add_job, self.task
        self.handles = [add_job(task, "date", run_date=date) for date in self.dates]

    def cancel(self) -> None:
        for job in self.chosen:
            job.remove()

    def advance(self) -> None:
        self.scheduler.resume()
        self.scheduler._process_jobs()  # what its own schedulers' wakeup() leads to
        assert not self.scheduler.get_jobs()

    def end(self) -> None:
        self.scheduler.shutdown()

    def forget(self) -> None:
        super().forget()
        self.dates = []


SUBJECTS: Final[dict[str, Callable[[], Subject]]] = {
    "asyncio": AsyncioSubject,
    "uvloop": UvloopSubject,
    "sched": SchedSubject,
    "apscheduler": ApschedulerSubject,
}
