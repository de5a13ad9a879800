"""Task runner: it takes what is due to an executor, and its errors to whoever is to be told.

Invariants: what was handed over runs exactly once, or the executor's refusal is told, never
both; nothing that goes wrong in a task, in the executor or in `on_error` comes back to the
caller.  No lock of the timer is held here.  When a periodic entry goes back into its timer is the
timer's to say.

An executor may take a task and fail after that: `ThreadPoolExecutor` does if it cannot start a
thread.  So whoever pops an entry from its list, be it to run or to refuse it, is the one.
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
        self.entry: TimerEntry | None = None  # set if it is cancelled during its beat
        self.has_begun = False
        self.missed = 0
        self.next_ms: int | None = None  # set if the entry is rescheduled meanwhile


class TimerOwner:
    """The thread-safe timer, as its runner and its reaper see it."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Read the timer's clock, in ms."""
        raise NotImplementedError

    def seconds_until(self, time_ms: int) -> float:
        """Return the seconds until the clock gets there; negative if it has passed."""
        raise NotImplementedError

    def depart(self, due: list[TimerEntry]) -> list[TimerEntry]:
        """Return what is to be handed over of what was just taken out of the timer.  The lock is
        held.
        """
        raise NotImplementedError

    def begin_beat(self, entry: PeriodicEntry) -> Flight | None:
        """Begin a beat; None if there is to be none."""
        raise NotImplementedError

    def end_beat(self, entry: PeriodicEntry, flight: Flight) -> None:
        """End the beat; the entry may go back."""
        raise NotImplementedError

    def is_closed(self) -> bool:
        """Return true if the timer was shut down."""
        raise NotImplementedError


class TaskRunner:
    """Runs entries in an executor, by default in a thread of its own, one after another."""

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
        self.task_idents: set[int] = set()  # threads that run something of this timer

    def hand_over(self, entries: list[TimerEntry]) -> None:
        """Give entries to the executor; one's own takes them all as one task of its queue.

        The list is emptied on the way: what has run is not kept alive by what waits behind it.
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
                # Taken out while another thread shut down: whoever took them runs them.
                self.run_all(entries)
            elif not is_the_end(error):
                self._refuse_all(entries, error)

    def is_in_task(self) -> bool:
        """Return true if this thread is in the middle of a task of this timer."""
        return threading.get_ident() in self.task_idents

    def run(self, entry: TimerEntry) -> None:
        """Run one entry, here; lets no error through."""
        try:
            if isinstance(entry, PeriodicEntry):
                self._run_beat(entry)
            else:
                entry.expire()
        except BaseException as error:
            self.report(entry, error)

    def refuse(self, entry: TimerEntry, error: BaseException) -> None:
        """Refuse an entry that the executor did not take, or died over; a periodic one goes on."""
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
        """Tell `on_error`, or the log; an error of `on_error` is logged beside the first one."""
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
        """End one's own executor; what it was given runs still."""
        if self.owns_executor:
            self.executor.shutdown(wait)

    def _submit(self, entry: TimerEntry) -> None:
        job = _Job(self, entry)
        try:
            self.executor.submit(job.run).add_done_callback(job.done)
        except BaseException as error:
            job.refuse(error)

    def run_all(self, entries: list[TimerEntry]) -> None:
        """Run what is left of the list, from its end."""
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
        """Refuse what is left of the list, from its end."""
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
    """Make the error for adding an entry that is on its way or in its beat."""
    return ValueError(
        "the entry is pending already, its beat is due or under way; reschedule() moves the next"
        " one"
    )


def is_cancelled(entry: TimerEntry, flight: Flight) -> bool:
    """Return true if the entry was cancelled since it was in this flight, and not added anew."""
    return entry._holder is not flight


def claim(entries: list[TimerEntry]) -> TimerEntry | None:
    """Claim the last entry for one thread alone; None if there is none."""
    try:
        return entries.pop()
    except IndexError:
        return None


def is_the_end(error: BaseException) -> bool:
    """Return true if a pool that nobody shut down refuses because the program ends: no error."""
    return "cannot schedule new futures" in str(error)


class _Job:
    """Job of one entry in an executor of the user's, which may die before or while it runs."""

    __slots__ = ("entries", "entry", "runner")

    def __init__(self, runner: TaskRunner, entry: TimerEntry) -> None:
        self.runner = runner
        self.entry = entry
        self.entries = [entry]  # empty once it ran or was refused

    def run(self) -> None:
        self.runner.run_all(self.entries)

    def refuse(self, error: BaseException) -> None:
        """Tell the error; what has not run by now never will."""
        entry = claim(self.entries)
        if entry is None:
            self.runner.report(self.entry, error)
        else:
            self.runner.refuse(entry, error)

    def done(self, future: Future[None]) -> None:
        """`run` lets no error through: one that the future holds is the executor's."""
        try:
            future.result()
        except BaseException as error:
            self.refuse(error)
