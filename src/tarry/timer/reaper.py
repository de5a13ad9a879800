"""Reaper: the thread that turns a timer, and sleeps until a deadline.

Invariants: it is woken only for a deadline before the time at which it would wake by itself, and no
waking is lost: `wake_ms` and the alarm change together, under the lock of the timer.  After a long
pause it catches up in parts, each under one hold of the lock.  No error ends it.
"""

from __future__ import annotations

import atexit
import threading
import time
from typing import Final

from librt.threading import Lock

from tarry.timer.entry import TimerEntry
from tarry.timer.pure import PureTimer
from tarry.timer.task_runner import TaskRunner, TimerOwner

# Moves of entries under one hold of the lock: well below a millisecond.
PART_MOVES_MAX: Final = 1000

# While the reaper catches up, it pauses after so long and for so long, so that other threads get
# the lock and the interpreter.  Neither is handed over in order: without a pause the reaper would
# take both again.  A busy thread gives the interpreter back after 5 ms, so the two have half each.
STRETCH_NS_MAX: Final = 5_000_000
STRETCH_PAUSE_S: Final = 0.00005

# Values of `wake_ms` beside a time: there is no deadline; and the reaper is awake.
WAKE_NEVER: Final = 1 << 60
WAKE_NOW: Final = -(1 << 60)

# Longest sleep, a day, since some platforms refuse a longer one.
SLEEP_MS_MAX: Final = 86_400_000

# Pause after an error of the timer or the clock itself, so that it does not fill the log.
ERROR_PAUSE_S: Final = 0.1

# Longest wait for the reaper at the end of a program; an executor of the user's may hold it up.
LEAVE_S_MAX: Final = 1.0


class Stretch:
    """Long piece of work in parts, between which its thread pauses."""

    __slots__ = ("start_ns",)

    def __init__(self) -> None:
        self.start_ns = time.monotonic_ns()

    def maybe_pause(self) -> None:
        """Pause if the work has gone on for long; do nothing after most parts."""
        if time.monotonic_ns() - self.start_ns > STRETCH_NS_MAX:
            time.sleep(STRETCH_PAUSE_S)
            self.start_ns = time.monotonic_ns()


class Turns:
    """Turns at a piece of work that one thread does once, while the others wait or go on."""

    __slots__ = ("holder_ident", "is_done", "is_free", "lock")

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.is_done = False
        self.holder_ident = 0
        self.is_free = threading.Event()  # set while no thread has the turn

    def take(self, wait: bool) -> bool:
        """Take the turn; return False if another thread has it, or had it and `wait` is set."""
        ident = threading.get_ident()
        while True:
            with self.lock:
                if self.is_done or self.holder_ident == ident:
                    return False
                if self.holder_ident == 0:
                    self.holder_ident = ident
                    self.is_free.clear()
                    return True
            if not wait:
                return False
            self.is_free.wait()

    def give_back(self) -> None:
        """Give the turn back, whether the work is done or was interrupted."""
        with self.lock:
            self.holder_ident = 0
            self.is_free.set()


class Reaper:
    """Reaper: turns a timer under its lock; without `start` it only takes due parts on request."""

    __slots__ = (
        "alarm",
        "ends",
        "lock",
        "owner",
        "runner",
        "stretch",
        "thread",
        "timer",
        "wake_ms",
    )

    def __init__(self, owner: TimerOwner, timer: PureTimer, lock: Lock, runner: TaskRunner) -> None:
        self.owner = owner
        self.timer = timer
        self.lock = lock
        self.runner = runner
        # Time until which it sleeps.  The thread that sets WAKE_NOW opens the alarm, so the alarm
        # is never opened twice.
        self.wake_ms = WAKE_NEVER
        self.alarm = threading.Lock()
        self.alarm.acquire()
        self.ends = False
        self.stretch = Stretch()
        self.thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Start the thread; a program that ends does not wait for it."""
        self.wake_ms = WAKE_NOW
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()
        if not _EXIT.is_registered:
            _EXIT.is_registered = True
            atexit.register(_EXIT.leave)
        _EXIT.reapers[self] = None

    def rouse(self) -> None:
        """Wake the thread if there is work before it would wake by itself.  The lock is held."""
        if self.thread is None or self.wake_ms == WAKE_NOW:
            return
        if not self.ends:
            # An earlier deadline within the tick of the next one is not due earlier.
            next_ms = self.timer.next_due_ms()
            if next_ms is None or next_ms >= self.wake_ms:
                return
        self.wake_ms = WAKE_NOW
        self.alarm.release()

    def end(self) -> None:
        """Make the thread end.  The lock is held."""
        self.ends = True
        self.rouse()

    def leave(self) -> None:
        """End the thread with the program, since no thread may die while it holds the lock.

        This does not shut the timer down: other code that runs at the end may still do that.
        """
        with self.lock:
            self.end()
        if self.thread is not None:
            self.thread.join(LEAVE_S_MAX)

    def forget(self) -> None:
        """Forget this reaper at the program's end, because it has ended with its timer."""
        _EXIT.reapers.pop(self, None)

    def wait(self) -> None:
        """Wait until the thread has ended, unless it is the calling one."""
        thread = self.thread
        if thread is not None and thread.ident != threading.get_ident():
            thread.join()

    def take_due(self, now_ms: int) -> list[TimerEntry] | None:
        """Take a part of the due entries, which may be empty; None if no due entry is left."""
        with self.lock:
            next_ms = self.timer.next_due_ms()
            if next_ms is None or next_ms > now_ms:
                return None
            return self.owner.depart(self.timer.advance(now_ms, PART_MOVES_MAX))

    def _run(self) -> None:
        while True:
            try:
                if not self._reap():
                    return
            except BaseException as error:
                self.runner.report(None, error)
                with self.lock:
                    self._wake_up()
                time.sleep(ERROR_PAUSE_S)

    def _reap(self) -> bool:
        """Hand over a part of the due entries, or sleep; return False if the thread must end."""
        now_ms = self.owner.now_ms()
        wake_ms = WAKE_NOW
        due: list[TimerEntry] = []
        is_behind = False
        try:
            with self.lock:
                if self.ends:
                    return False
                due = self.owner.depart(self.timer.advance(now_ms, PART_MOVES_MAX))
                next_ms = self.timer.next_due_ms()
                is_behind = next_ms is not None and next_ms <= now_ms
                if not due and not is_behind:
                    wake_ms = WAKE_NEVER if next_ms is None else next_ms
                    self.wake_ms = wake_ms
        finally:
            # Hand over even if the timer failed afterwards: it does not have these entries any
            # more.
            if due:
                self.runner.hand_over(due)
        if is_behind:
            self.stretch.maybe_pause()
        elif wake_ms != WAKE_NOW:
            self._sleep_until(wake_ms)
        return True

    def _sleep_until(self, wake_ms: int) -> None:
        """Wait for the time or the alarm, whichever comes first."""
        if wake_ms == WAKE_NEVER:
            self.alarm.acquire()
            return
        left_s = self.owner.seconds_until(wake_ms)
        if self.alarm.acquire(True, max(left_s, 0.0)):
            return
        with self.lock:
            self._wake_up()

    def _wake_up(self) -> None:
        """Note a waking without the alarm; close the alarm if it was opened since.  Lock held."""
        self.alarm.acquire(False)
        self.wake_ms = WAKE_NOW


class _Exit:
    """Reapers that must end with the program, in the order of their starts.

    One function is registered for all of them, since `atexit` keeps the place of a removed one.
    """

    __slots__ = ("is_registered", "reapers")

    def __init__(self) -> None:
        self.reapers: dict[Reaper, None] = {}
        self.is_registered = False

    def leave(self) -> None:
        for reaper in list(self.reapers):
            reaper.leave()


_EXIT: Final = _Exit()
