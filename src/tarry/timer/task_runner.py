"""Task runner: it brings due entries to an executor, and their errors to `on_error`.

Invariants: an entry that was handed over runs exactly once, or the executor's refusal is reported,
never both; no error of a task, of the executor or of `on_error` reaches the caller.  No lock of the
timer is held here.  The timer decides when a periodic entry is added again.

An executor may take a task and fail after that: `ThreadPoolExecutor` does if it cannot start a
thread.  Therefore the thread that pops an entry from its list, to run it or to refuse it, is the
only one that handles the entry.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from tarry.timer.entry import Holder, TimerEntry
from tarry.timer.periodic import PeriodicEntry

LOG: Final = logging.getLogger("tarry.timer")


class Flight(Holder):
    """Flight of a periodic entry: its place from the moment it is due until its beat has ended."""

    __slots__ = ("entry", "has_begun", "missed", "next_ms")

    def __init__(self, owner: object) -> None:
        super().__init__(owner)
        self.entry: TimerEntry | None = None  # set if the entry is cancelled during its beat
        self.has_begun = False
        self.missed = 0
        self.next_ms: int | None = None  # set if the entry is rescheduled during its beat


class TimerOwner:
    """Owner: the thread-safe timer, as its runner and its reaper see it."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Read the timer's clock, in ms."""
        raise NotImplementedError

    def seconds_until(self, time_ms: int) -> float:
        """Return the seconds until that time on the clock; negative if it has passed."""
        raise NotImplementedError

    def depart(self, due: list[TimerEntry]) -> list[TimerEntry]:
        """Return the entries to hand over, of those just taken out of the timer.  Lock held."""
        raise NotImplementedError

    def begin_beat(self, entry: PeriodicEntry) -> Flight | None:
        """Begin a beat; None if there must not be one."""
        raise NotImplementedError

    def end_beat(self, entry: PeriodicEntry, flight: Flight) -> None:
        """End the beat; the timer may add the entry again."""
        raise NotImplementedError

    def is_closed(self) -> bool:
        """Return True if the timer was shut down."""
        raise NotImplementedError


class TaskRunner:
    """Runner of entries in an executor, by default in a thread of its own, one after another."""

    __slots__ = ("executor", "name", "on_error", "owner", "owns_executor", "task_idents")

    def __init__(
        self,
        name: str,
        owner: TimerOwner,
        executor: Executor | None,
        on_error: Callable[[TimerEntry | None, BaseException], object] | None,
    ) -> None:
        self.name = name
        self.owner = owner
        self.owns_executor = executor is None
        self.executor: Executor = (
            ThreadPoolExecutor(1, f"{name}-worker") if executor is None else executor
        )
        self.on_error = on_error
        self.task_idents: set[int] = set()  # threads that run a task of this timer

    def hand_over(self, entries: list[TimerEntry]) -> None:
        """Give entries to the executor; the timer's own takes them all as one task of its queue.

        The list is emptied on the way, so that an entry that has run is not kept alive by later
        ones.
        """
        entries.reverse()
        if not self.owns_executor:
            while entries:
                self._submit(entries.pop())
            return
        try:
            self.executor.submit(self.run_all, entries)
        except BaseException as error:
            if self.owner.is_closed():
                # Another thread shuts down meanwhile: run the entries here.
                self.run_all(entries)
            elif not is_the_end(error):
                self._refuse_all(entries, error)

    def is_in_task(self) -> bool:
        """Return True if this thread is in the middle of a task of this timer."""
        return threading.get_ident() in self.task_idents

    def run(self, entry: TimerEntry) -> None:
        """Run one entry here; report its error."""
        try:
            if isinstance(entry, PeriodicEntry):
                self._run_beat(entry)
            else:
                entry.expire()
        except BaseException as error:
            self.report(entry, error)

    def refuse(self, entry: TimerEntry, error: BaseException) -> None:
        """Report an entry that the executor refused or failed with; a periodic one continues."""
        self.report(entry, error)
        if not isinstance(entry, PeriodicEntry):
            return
        try:
            flight = self.owner.begin_beat(entry)
            if flight is not None:
                self.owner.end_beat(entry, flight)
        except BaseException as second:
            self.report(entry, second)

    def report(self, entry: TimerEntry | None, error: BaseException) -> None:
        """Report an error to `on_error`, or to the log; an error of `on_error` is logged too."""
        on_error = self.on_error
        try:
            if on_error is not None:
                on_error(entry, error)
                return
        except BaseException as second:
            with suppress(BaseException):
                LOG.error("on_error of timer %s failed", self.name, exc_info=second)
        what = "timer %s failed" if entry is None else "a task of timer %s failed"
        with suppress(BaseException):
            LOG.error(what, self.name, exc_info=error)

    def shutdown(self, wait: bool) -> None:
        """Shut down the timer's own executor; tasks that it has already still run."""
        if self.owns_executor:
            self.executor.shutdown(wait)

    def _submit(self, entry: TimerEntry) -> None:
        job = _Job(self, entry)
        try:
            self.executor.submit(job.run).add_done_callback(job.done)
        except BaseException as error:
            job.refuse(error)

    def run_all(self, entries: list[TimerEntry]) -> None:
        """Run the entries that are left in the list, from its end."""
        ident = threading.get_ident()
        is_outermost = ident not in self.task_idents
        self.task_idents.add(ident)
        while True:
            entry = claim(entries)
            if entry is None:
                break
            self.run(entry)
        if is_outermost:
            self.task_idents.discard(ident)

    def _refuse_all(self, entries: list[TimerEntry], error: BaseException) -> None:
        """Refuse the entries that are left in the list, from its end."""
        while True:
            entry = claim(entries)
            if entry is None:
                return
            self.refuse(entry, error)

    def _run_beat(self, entry: PeriodicEntry) -> None:
        flight = self.owner.begin_beat(entry)
        if flight is None:
            return
        if flight.missed > 0:
            try:
                entry.on_missed(flight.missed)
            except BaseException as error:
                self.report(entry, error)
        try:
            if not is_cancelled(entry, flight):
                entry.beat()
        except BaseException as error:
            self.report(entry, error)
        self.owner.end_beat(entry, flight)


def why_beat_not_added() -> ValueError:
    """Return the error for adding an entry that is in flight or in its beat."""
    return ValueError(
        "the entry is pending already, its beat is due or under way; reschedule() moves the next"
        " one"
    )


def is_cancelled(entry: TimerEntry, flight: Flight) -> bool:
    """Return True if the entry was cancelled since this flight, and not added again."""
    return entry._holder is not flight


def claim(entries: list[TimerEntry]) -> TimerEntry | None:
    """Claim the last entry for one thread alone; None if there is none."""
    try:
        return entries.pop()
    except IndexError:
        return None


def is_the_end(error: BaseException) -> bool:
    """Return True if a pool refuses because the program ends; this is no error."""
    return "cannot schedule new futures" in str(error)


class _Job:
    """Job of one entry in an executor of the user's, which may fail before or while it runs."""

    __slots__ = ("entries", "entry", "runner")

    def __init__(self, runner: TaskRunner, entry: TimerEntry) -> None:
        self.runner = runner
        self.entry = entry
        self.entries = [entry]  # empty once it ran or was refused

    def run(self) -> None:
        self.runner.run_all(self.entries)

    def refuse(self, error: BaseException) -> None:
        """Report the error; an entry that has not run by now never will."""
        entry = claim(self.entries)
        if entry is None:
            self.runner.report(self.entry, error)
        else:
            self.runner.refuse(entry, error)

    def done(self, future: Future[None]) -> None:
        """Refuse if `future` has an error: `run` raises none, so the executor did."""
        try:
            future.result()
        except BaseException as error:
            self.refuse(error)
