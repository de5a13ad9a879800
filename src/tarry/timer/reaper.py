"""Reaper: the thread that turns a timer, and sleeps until there is something to do.

Invariants: it is woken only for what is due before it would wake by itself, and no waking is
lost: `wake_ms` and the alarm change together, under the lock of the timer.  A long way to catch
up is gone in parts, each under one hold of the lock.  No error ends it.
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

# What is moved under one hold of the lock: well below a millisecond.
PART_MOVES_MAX: Final = 1000

# On a long way to catch up the reaper steps back so often and so long, that whoever waits for the
# lock or for the interpreter gets it: neither is handed over in order, and the reaper would take
# both again.  A busy thread gives the interpreter back after 5 ms, so the two have half of it each.
STRETCH_NS_MAX: Final = 5_000_000
STRETCH_PAUSE_S: Final = 0.00005

# `wake_ms` beside a time: nothing to wake for, and awake already.
WAKE_NEVER: Final = 1 << 60
WAKE_NOW: Final = -(1 << 60)

# A longer wait than this some platforms refuse; the reaper looks once a day, then.
SLEEP_MS_MAX: Final = 86_400_000

# After an error of the timer or the clock itself, lest it fill the log.
ERROR_PAUSE_S: Final = 0.1

# What the end of a program waits for the reaper, which an executor of the user's may hold up.
LEAVE_S_MAX: Final = 1.0


class Stretch:
    """A long piece of work in parts, from which its thread steps back between them."""

    __slots__ = ("start_ns",)

    def __init__(self) -> None:
        self.start_ns = time.monotonic_ns()

    def maybe_pause(self) -> None:
        """Step back if others have waited for long; not after every part."""
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
        self.is_free = threading.Event()  # nobody is at it

    def take(self, wait: bool) -> bool:
        """Take the turn; return false if another thread has it, after a wait for it if told so."""
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
        """Give the turn back, be the work done or interrupted."""
        with self.lock:
            self.holder_ident = 0
            self.is_free.set()


class Reaper:
    """Turns a timer under its lock.  Without `start` it is only asked for parts of what is due."""

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
        # Until when it sleeps.  Whoever sets this to WAKE_NOW opens the alarm, so that is never
        # opened twice.
        self.wake_ms = WAKE_NEVER
        self.alarm = threading.Lock()
        self.alarm.acquire()
        self.ends = False
        self.stretch = Stretch()
        self.thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Begin the thread; a program that ends does not wait for it."""
        self.wake_ms = WAKE_NOW
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()
        if not _EXIT.is_registered:
            _EXIT.is_registered = True
            atexit.register(_EXIT.leave)
        _EXIT.reapers[self] = None

    def rouse(self) -> None:
        """Wake it if there is something to do before it wakes by itself.  The lock is held."""
        if self.thread is None or self.wake_ms == WAKE_NOW:
            return
        if not self.ends:
            # A deadline within the tick of the next one is earlier, but not due earlier.
            next_ms = self.timer.next_due_ms()
            if next_ms is None or next_ms >= self.wake_ms:
                return
        self.wake_ms = WAKE_NOW
        self.alarm.release()

    def end(self) -> None:
        """Have the thread end.  The lock is held."""
        self.ends = True
        self.rouse()

    def leave(self) -> None:
        """Leave at the end of the program: no thread may die while it holds the lock.

        The timer is not shut down by that: what else runs at the end may still do it.
        """
        with self.lock:
            self.end()
        if self.thread is not None:
            self.thread.join(LEAVE_S_MAX)

    def forget(self) -> None:
        """Forget what ended with the timer: the program's end need not end it."""
        _EXIT.reapers.pop(self, None)

    def wait(self) -> None:
        """Wait until the thread has ended, unless it is this one."""
        thread = self.thread
        if thread is not None and thread.ident != threading.get_ident():
            thread.join()

    def take_due(self, now_ms: int) -> list[TimerEntry] | None:
        """Take a part of the due entries, which may be empty; None if nothing is left."""
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
        """Hand over a part of what is due, or sleep; False: this is the end."""
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
            # Even if the timer failed after it gave them out: it has them no more.
            if due:
                self.runner.hand_over(due)
        if is_behind:
            self.stretch.maybe_pause()
        elif wake_ms != WAKE_NOW:
            self._sleep_until(wake_ms)
        return True

    def _sleep_until(self, wake_ms: int) -> None:
        """Wait for the time or the alarm, whatever comes first."""
        if wake_ms == WAKE_NEVER:
            self.alarm.acquire()
            return
        left_s = self.owner.seconds_until(wake_ms)
        if self.alarm.acquire(True, max(left_s, 0.0)):
            return
        with self.lock:
            self._wake_up()

    def _wake_up(self) -> None:
        """Wake up without having been woken; the alarm may have been opened since.  Lock held."""
        self.alarm.acquire(False)
        self.wake_ms = WAKE_NOW


class _Exit:
    """The reapers that are to end with the program, in the order of their starts.

    One function is registered for all of them: `atexit` keeps the place of one that is taken back.
    """

    __slots__ = ("is_registered", "reapers")

    def __init__(self) -> None:
        self.reapers: dict[Reaper, None] = {}
        self.is_registered = False

    def leave(self) -> None:
        for reaper in list(self.reapers):
            reaper.leave()


_EXIT: Final = _Exit()
