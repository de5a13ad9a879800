"""Thread-safe timer: a pure timer, a thread that turns it, an executor that runs due entries.

The reaper thread sleeps until the next bucket and is woken only for an earlier deadline; an idle
timer costs no CPU.  Invariants: an entry whose `cancel` returned True never runs; an entry whose
`cancel` returned False has run or will run exactly once (unless a shutdown dropped it, or the
executor refused it, which `on_error` gets); no entry runs before its deadline, except in a
shutdown that runs the pending ones; no lock is held while tasks, the executor's `submit`,
`on_error`, a `clock` of yours or logging run.  After a jump of the clock, or a stop of the process,
it catches up in parts of PART_MOVES_MAX moves, between which other threads get the lock.  `reaper`
is the thread that turns the timer, `task_runner` brings tasks to the executor and back.  The shape
is Kafka's `SystemTimer`, with the reaper of its purgatory.

Limits: a lock that is not reentrant guards the timer, so a signal handler must not call it; it can
set a flag that a task reads.  A finalizer (`__del__`, a callback of `weakref`) may run in the
middle of any call, and may `cancel`; its other calls are refused if the lock is taken.  A fork
takes no threads along: make the timer after the fork.  A program that ends does not wait for
pending entries; it does wait for running tasks, as for every `ThreadPoolExecutor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, SupportsIndex

from librt.threading import Lock

from tarry.timer.calls import CallEntry, CallEveryEntry
from tarry.timer.collector import COLLECTOR
from tarry.timer.entry import Holder, TimerEntry, TimerShutDown, ms_of, why_not_moved
from tarry.timer.periodic import PeriodicEntry
from tarry.timer.pure import PureTimer
from tarry.timer.reaper import PART_MOVES_MAX, SLEEP_MS_MAX, Reaper, Stretch, Turns
from tarry.timer.task_runner import Flight, TaskRunner, TimerOwner, why_beat_not_added
from tarry.timer.wheel import TimingWheel

# Time later than every meaningful deadline: a million years on.
END_OF_TIME_MS: Final = 1 << 55

NS_PER_MS: Final = 1_000_000


class SystemTimer(TimerOwner):
    """Timer for threads; every method may be called from any thread, and from within a task.

    `timer`: a pure timer whose time is on this one's clock, by default a `TimingWheel` of 1 ms
    ticks.  `executor`: runs due entries; by default a thread of the timer's own, one task after
    another.  The timer does not shut down an executor of yours, and one whose `submit` waits delays
    the reaper.  `on_error(entry, error)` gets the errors that tasks raise and the refusals of
    executors (`entry` is None for an error of the timer or the clock); by default they are logged
    as `tarry.timer`.  `clock`: milliseconds as an int, by default those of `time.monotonic`; the
    reaper sleeps in real time, so after moving a clock by hand call `advance`.  With
    `reaper=False` no thread turns the timer; `advance` does.
    """

    __slots__ = (
        "_clock",
        "_draining",
        "_grounded",
        "_is_shut_down",
        "_late",
        "_lock",
        "_reaper",
        "_runner",
        "_timer",
        "_wheel",
        "name",
    )

    def __init__(
        self,
        name: str = "timer",
        *,
        timer: PureTimer | None = None,
        executor: Executor | None = None,
        on_error: Callable[[TimerEntry | None, BaseException], object] | None = None,
        clock: Callable[[], int] | None = None,
        reaper: bool = True,
    ) -> None:
        self.name = name
        self._clock = clock
        # The timer if it is a wheel: compiled code calls methods of a known class faster.
        self._wheel: TimingWheel | None = None
        if timer is None:
            self._wheel = TimingWheel(self.now_ms())
        elif isinstance(timer, TimingWheel):
            self._wheel = timer
        self._timer: PureTimer = self._wheel if timer is None else timer  # type: ignore[assignment]
        if self._timer.current_ms > self.now_ms():
            raise ValueError(
                f"the timer stands at {self._timer.current_ms} ms and the clock at "
                f"{self.now_ms()} ms, so everything would be early; make it with a time of the "
                "same clock, by default time.monotonic"
            )
        self._runner = TaskRunner(name, self, executor, on_error)
        self._lock = Lock()
        self._is_shut_down = False
        # Entries to be cancelled, left by finalizers that found the lock taken.
        self._late: list[TimerEntry] = []
        # Flights of cancelled entries whose beats are under way: at most one a thread.
        self._grounded: list[Flight] = []
        self._draining = Turns(self._lock)
        self._reaper = Reaper(self, self._timer, self._lock, self._runner)
        COLLECTOR.listen()
        if reaper:
            self._reaper.start(f"{name}-reaper")

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut_down else f"{len(self._timer)} pending"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def __len__(self) -> int:
        self._check_caller()
        with self._lock:
            self._without_late([])
            return len(self._timer)

    @property
    def size(self) -> int:
        """Number of pending entries, without beats and tasks that run."""
        return len(self)

    def now_ms(self) -> int:
        """Read the timer's clock in ms, rounded down; deadlines are on this clock."""
        clock = self._clock
        if clock is None:
            return time.monotonic_ns() // NS_PER_MS
        return clock()

    def seconds_until(self, time_ms: int) -> float:
        """Return the seconds until a time on the timer's clock, a day at most."""
        if self._clock is None:
            # Take the minimum before the division: no float holds the time of every deadline.
            left_ns = time_ms * NS_PER_MS - time.monotonic_ns()
            return min(left_ns, SLEEP_MS_MAX * NS_PER_MS) / 1e9
        return min(time_ms - self.now_ms(), SLEEP_MS_MAX) / 1e3

    def add(self, entry: TimerEntry) -> bool:
        """Take the entry; return False if it is due already and was handed to the executor.

        ValueError if it is pending, here or in another timer.
        """
        if self._lock.locked():
            self._check_caller()
        if entry.deadline_ms < self._reaper.wake_ms:
            return self._add_early(entry)
        with self._lock:
            if self._late:
                self._without_late([])
            if self._is_shut_down:
                raise self._why_shut_down()
            if (entry._holder is not None or self._grounded) and self._is_beat_awaited(entry):
                return True
            wheel = self._wheel
            taken = self._timer.add(entry) if wheel is None else wheel.add(entry)
            if taken:
                # The reaper may have gone to sleep since the check of `wake_ms` without the lock.
                if entry.deadline_ms < self._reaper.wake_ms:
                    self._reaper.rouse()
                return True
            due = self.depart([entry])
        self._runner.hand_over(due)
        return False

    def cancel(self, entry: TimerEntry) -> bool:
        """Remove the entry; return False if it was not pending, or if it is too late.

        True for a periodic entry whose beat is under way: that beat ends, and none follows.
        `on_missed` may cancel the beat that is to follow it.
        """
        if self._lock.locked() and COLLECTOR.is_here():
            return self._cancel_late(entry)
        with self._lock:
            if self._late:
                self._without_late([])
            holder = entry._holder
            if holder is not None and holder.owner is self:
                if self._is_shut_down:
                    return False
                self._ground(entry, holder)
                return True
            wheel = self._wheel
            return self._timer.cancel(entry) if wheel is None else wheel.cancel(entry)

    def reschedule(self, entry: TimerEntry, deadline_ms: SupportsIndex) -> bool:
        """Move the deadline of an entry; return False if it is due and was handed to the executor.

        An entry that is not pending is added.  If it is due and waits for the executor, it runs for
        that deadline, and again at the new one.  A beat under way has its next one then.
        """
        deadline_ms = ms_of(deadline_ms)
        if self._lock.locked():
            self._check_caller()
        # A deadline before which the reaper wakes is not due, so the clock need not be read.
        is_early = deadline_ms < self._reaper.wake_ms
        now_ms = self.now_ms() if is_early else deadline_ms - 1
        with self._lock:
            if self._late:
                self._without_late([])
            if self._is_shut_down:
                raise self._why_shut_down()
            if self._has_beat_moved(entry, deadline_ms):
                return True
            wheel = self._wheel
            if wheel is None:
                taken = self._timer.reschedule(entry, deadline_ms)
            else:
                taken = wheel.reschedule(entry, deadline_ms)
            if taken:
                if deadline_ms > now_ms:
                    if deadline_ms < self._reaper.wake_ms:
                        self._reaper.rouse()
                    return True
                self._timer.cancel(entry)
            due = self.depart([entry])
        self._runner.hand_over(due)
        return False

    def call_later(
        self, delay_ms: SupportsIndex, function: Callable[..., object], *args: object
    ) -> CallEntry:
        """Call the function once, `delay_ms` from now or a little later."""
        delay_ms = ms_of(delay_ms)
        entry = CallEntry(self._start_ms(delay_ms) + delay_ms, function, args)
        self.add(entry)
        return entry

    def call_every(
        self,
        period_ms: SupportsIndex,
        function: Callable[..., object],
        *args: object,
        fixed_delay: bool = False,
        on_missed: Callable[[int], object] | None = None,
    ) -> CallEveryEntry:
        """Call the function again and again, first a period from now, until the entry is cancelled.

        Calls never overlap.  `on_missed(beats)` gets the number of beats that did not run;
        `PeriodicEntry` explains rate and delay.
        """
        entry = CallEveryEntry(period_ms, fixed_delay, function, args, on_missed)
        entry.deadline_ms = self._start_ms(entry.period_ms) + entry.period_ms
        self.add(entry)
        return entry

    def next_due_ms(self) -> int | None:
        """Return when the timer has work next, even if only inside it; None if it has none."""
        self._check_caller()
        with self._lock:
            return self._timer.next_due_ms()

    def advance(self) -> int:
        """Hand over the entries that are due by now, as the reaper does; return how many."""
        self._check_caller()
        now_ms = self.now_ms()
        count = 0
        stretch = Stretch()
        while True:
            due = self._reaper.take_due(now_ms)
            if due is None:
                return count
            count += len(due)
            if due:
                self._runner.hand_over(due)
            stretch.maybe_pause()

    def shutdown(self, run_pending: bool = False, wait: bool = True) -> int:
        """End the timer; return how many entries were pending, which are dropped, or run now.

        With `run_pending` they run before their deadlines, in that order, periodic ones for one
        last beat.  With `wait` this returns when the timer's threads have ended, that is after the
        tasks; a task that calls it waits for nothing, and an executor of yours is not waited for.
        A second call is no error and returns 0; after an interrupted one it continues with the
        rest.
        """
        self._check_caller()
        with self._lock:
            if not self._is_shut_down:
                self._is_shut_down = True
                self._reaper.end()
        if self._runner.is_in_task():
            wait = False
        count = 0
        while self._draining.take(wait):
            try:
                count += self._drain(run_pending)
                self._runner.shutdown(wait=False)
                self._reaper.forget()
                self._draining.is_done = True
            finally:
                self._draining.give_back()
        if wait:
            self._reaper.wait()
            self._runner.shutdown(wait=True)
        return count

    def __enter__(self) -> SystemTimer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Shut down; drop the pending entries."""
        self.shutdown()

    # -- from within a finalizer ---------------------------------------------------------------

    def _cancel_late(self, entry: TimerEntry) -> bool:
        """Cancel as soon as the lock is released, which this very thread may hold.

        The next call of the timer drops the entry, or its expiry does, so the answer holds.
        """
        holder = entry._holder
        if holder is None or self._is_shut_down:
            return False
        if self._wheel is not None and holder.owner is not self._wheel and holder.owner is not self:
            raise why_not_moved()
        if any(one is entry for one in self._late):
            return False
        self._late.append(entry)
        return True

    def _without_late(self, due: list[TimerEntry]) -> list[TimerEntry]:
        """Carry out the cancels of finalizers; return `due` without those.  The lock is held."""
        while self._late:
            entry = self._late.pop(0)
            holder = entry._holder
            if holder is None:
                due = [one for one in due if one is not entry]
            elif holder.owner is self:
                self._ground(entry, holder)
            else:
                self._timer.cancel(entry)
        return due

    def _check_caller(self) -> None:
        """Refuse a finalizer that may have interrupted the very call that it would wait for."""
        if self._lock.locked() and COLLECTOR.is_here():
            raise RuntimeError(
                f"a finalizer may only cancel; the timer {self.name!r} may be in the middle of a"
                " call that it interrupts. Have a task do it"
            )

    # -- adding ------------------------------------------------------------------------------

    def _start_ms(self, delay_ms: int) -> int:
        """Return the start of a delay, rounded up so that the deadline is not a fraction early."""
        if self._clock is None and delay_ms > 0:
            return -(-time.monotonic_ns() // NS_PER_MS)
        return self.now_ms()

    def _add_early(self, entry: TimerEntry) -> bool:
        """Add an entry that must wake the reaper, unless it is due at this moment."""
        now_ms = self.now_ms()
        with self._lock:
            if self._late:
                self._without_late([])
            if self._is_shut_down:
                raise self._why_shut_down()
            if self._is_beat_awaited(entry):
                return True
            if self._timer.add(entry):
                if entry.deadline_ms > now_ms:
                    self._reaper.rouse()
                    return True
                self._timer.cancel(entry)
            due = self.depart([entry])
        self._runner.hand_over(due)
        return False

    def _why_shut_down(self) -> TimerShutDown:
        return TimerShutDown(
            f"the timer {self.name!r} was shut down and takes nothing any more; make a new one"
        )

    def is_closed(self) -> bool:
        """Return True if the timer was shut down."""
        return self._is_shut_down

    # -- beats ------------------------------------------------------------------------------

    def depart(self, due: list[TimerEntry]) -> list[TimerEntry]:
        """Return the taken entries that must be handed over; note the flights of periodic ones."""
        due = self._without_late(due)
        for entry in due:
            if isinstance(entry, PeriodicEntry):
                entry._holder = Flight(self)
        return due

    def begin_beat(self, entry: PeriodicEntry) -> Flight | None:
        """Begin a beat; None if it was cancelled before, or already runs after a departure."""
        now_ms = self._time_of_beat(entry)
        with self._lock:
            self._without_late([])
            flight = entry._holder
            if not isinstance(flight, Flight) or flight.owner is not self or flight.has_begun:
                return None
            entry._holder = None
            if entry.is_stopped:
                return None
            flight.has_begun = True
            flight.missed = entry.begin_beat(now_ms)
            entry._holder = flight
            return flight

    def end_beat(self, entry: PeriodicEntry, flight: Flight) -> None:
        """End a beat: add the entry again, unless it was cancelled during the beat."""
        now_ms = self._time_of_beat(entry)
        with self._lock:
            self._without_late([])
            if entry._holder is not flight:
                if flight in self._grounded:
                    self._grounded.remove(flight)
                return
            entry._holder = None
            entry.end_beat(now_ms)
            if flight.next_ms is not None:
                entry.deadline_ms = flight.next_ms
            if entry.is_stopped or self._is_shut_down:
                return
            if self._timer.add(entry):
                if entry.deadline_ms < self._reaper.wake_ms:
                    self._reaper.rouse()
                return
            due = self.depart([entry])
        self._runner.hand_over(due)

    def _time_of_beat(self, entry: PeriodicEntry) -> int:
        """Return the present time; after an error of the clock report it and use the last known."""
        try:
            return self.now_ms()
        except BaseException as error:
            self._runner.report(None, error)
        with self._lock:
            if self._is_shut_down:  # the timer's own time is that of the last deadline
                return entry.deadline_ms
            return max(self._timer.current_ms, entry.deadline_ms)

    def _ground(self, entry: TimerEntry, flight: Holder) -> None:
        """Cancel an entry that is in flight or in its beat.  The lock is held."""
        assert isinstance(flight, Flight)
        entry._holder = None
        if flight.has_begun:
            flight.entry = entry
            self._grounded.append(flight)

    def _is_beat_awaited(self, entry: TimerEntry) -> bool:
        """Return True if the entry is added during a beat that it was cancelled in.  Lock held.

        It is added when that beat has ended, so that two beats never overlap.
        """
        holder = entry._holder
        if holder is not None and holder.owner is self:
            raise why_beat_not_added()
        return bool(self._grounded) and self._has_beat_moved(entry, entry.deadline_ms)

    def _has_beat_moved(self, entry: TimerEntry, deadline_ms: int) -> bool:
        """Return True if the entry is in flight or in its beat, so that its next beat is moved.

        ValueError if the timer does not reach the deadline; nothing has changed then.
        """
        holder = entry._holder
        flight: Holder | None = holder
        if holder is None:
            flight = next((one for one in self._grounded if one.entry is entry), None)
        if flight is None or flight.owner is not self:
            return False
        probe = TimerEntry(deadline_ms)
        if self._timer.add(probe):
            self._timer.cancel(probe)
        assert isinstance(flight, Flight)
        flight.next_ms = deadline_ms
        if holder is None:
            self._grounded.remove(flight)
            entry._holder = flight
        return True

    # -- the end -----------------------------------------------------------------------------

    def _drain(self, run_pending: bool) -> int:
        """Take all entries out, part by part, and hand them over if they are to run."""
        count = 0
        stretch = Stretch()
        while True:
            part = self._take_pending(run_pending)
            if part is None:
                return count
            count += len(part)
            if run_pending and part:
                self._runner.hand_over(part)
            stretch.maybe_pause()

    def _take_pending(self, run_pending: bool) -> list[TimerEntry] | None:
        """Take a part of the pending entries, which may be empty; None if none is left."""
        with self._lock:
            next_ms = self._timer.next_due_ms()
            if next_ms is None:
                return None
            part = self._timer.advance(max(next_ms, END_OF_TIME_MS), PART_MOVES_MAX)
            return self.depart(part) if run_pending else self._without_late(part)
