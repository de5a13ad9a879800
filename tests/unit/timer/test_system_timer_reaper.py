"""The reaper's sleep: when it is woken, that no waking is lost, and when it steps back."""

from __future__ import annotations

import atexit
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from librt.threading import Lock

from tarry.timer.entry import TimerEntry
from tarry.timer.reaper import PART_MOVES_MAX, STRETCH_PAUSE_S, WAKE_NOW, Reaper
from tarry.timer.system_timer import SystemTimer
from tarry.timer.task_runner import TaskRunner, TimerOwner
from tarry.timer.wheel import TimingWheel


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def asleep(timer: TimingWheel, wake_ms: int) -> Reaper:
    """A reaper that sleeps until then, as far as anybody else can tell."""
    owner = TimerOwner()
    reaper = Reaper(owner, timer, Lock(), TaskRunner("test", owner, Inline(), None))
    reaper.thread = threading.Thread()
    reaper.wake_ms = wake_ms
    return reaper


def is_woken(reaper: Reaper) -> bool:
    return reaper.alarm.acquire(False)


def test_a_deadline_that_is_earlier_wakes_the_reaper_once() -> None:
    wheel = TimingWheel(0, tick_ms=100)
    wheel.add(TimerEntry(950))
    reaper = asleep(wheel, 1000)

    wheel.add(TimerEntry(850))
    reaper.rouse()
    reaper.rouse()

    assert reaper.wake_ms == WAKE_NOW
    assert is_woken(reaper)
    assert not is_woken(reaper)


def test_an_earlier_deadline_of_the_same_tick_lets_the_reaper_sleep() -> None:
    wheel = TimingWheel(0, tick_ms=100)
    wheel.add(TimerEntry(990))
    reaper = asleep(wheel, 1000)

    wheel.add(TimerEntry(950))
    reaper.rouse()

    assert reaper.wake_ms == 1000
    assert not is_woken(reaper)


def test_the_end_wakes_the_reaper_whatever_is_pending() -> None:
    reaper = asleep(TimingWheel(0), 1000)

    reaper.end()

    assert is_woken(reaper)


class Dozing:
    """A wheel whose reaper goes to sleep between the two looks that `add` takes at its alarm."""

    def __init__(self, now_ms: int) -> None:
        self.wheel = TimingWheel(now_ms)
        self.reaper: Reaper | None = None

    @property
    def current_ms(self) -> int:
        return self.wheel.current_ms

    def add(self, entry: TimerEntry) -> bool:
        assert self.reaper is not None
        self.reaper.wake_ms = 10_000
        return self.wheel.add(entry)

    def cancel(self, entry: TimerEntry) -> bool:
        return self.wheel.cancel(entry)

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        assert self.reaper is not None
        self.reaper.wake_ms = 10_000
        return self.wheel.reschedule(entry, deadline_ms)

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        return self.wheel.advance(now_ms, limit)

    def next_due_ms(self) -> int | None:
        return self.wheel.next_due_ms()

    def __len__(self) -> int:
        return len(self.wheel)


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_reaper_that_goes_to_sleep_while_an_entry_is_taken_in_is_woken(is_moved: bool) -> None:
    pure = Dozing(0)
    timer = SystemTimer(timer=pure, clock=lambda: 0, executor=Inline(), reaper=False)
    reaper = timer._reaper
    reaper.thread = threading.Thread()
    reaper.wake_ms = WAKE_NOW
    pure.reaper = reaper
    entry = TimerEntry(5000)

    if is_moved:
        timer.reschedule(entry, 5000)
    else:
        timer.add(entry)

    assert reaper.wake_ms == WAKE_NOW
    assert is_woken(reaper)


class Alarm:
    """An alarm at which somebody adds an earlier entry in the moment after the sleep has ended."""

    def __init__(self, at_the_end: Callable[[], object]) -> None:
        self.lock = threading.Lock()
        self.lock.acquire()
        self.at_the_end = at_the_end

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            self.at_the_end()
            return False
        return self.lock.acquire(False)

    def release(self) -> None:
        self.lock.release()


def test_an_alarm_that_comes_with_the_end_of_the_sleep_is_not_left_open() -> None:
    timer = SystemTimer(clock=lambda: 0, executor=Inline(), reaper=False)
    reaper = timer._reaper
    reaper.thread = threading.Thread()
    reaper.alarm = Alarm(lambda: timer.add(TimerEntry(500)))  # type: ignore[assignment]
    reaper.wake_ms = WAKE_NOW
    timer.add(TimerEntry(1000))

    reaper._reap()

    assert reaper.wake_ms == WAKE_NOW
    assert not is_woken(reaper)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """The threads that slept, and how long, where every look at the clock takes 10 ms."""
    pauses: list[tuple[str, float]] = []
    times = itertools.count(0, 10_000_000)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(times))
    monkeypatch.setattr(
        time, "sleep", lambda seconds: pauses.append((threading.current_thread().name, seconds))
    )
    return pauses


def test_the_reaper_steps_back_on_a_long_way(pauses: list[tuple[str, float]]) -> None:
    has_jumped, is_over = threading.Event(), threading.Event()

    with SystemTimer("test", clock=lambda: 10**9 if has_jumped.is_set() else 0) as timer:
        for _ in range(3 * PART_MOVES_MAX):
            timer.add(TimerEntry(1))
        timer.call_later(2, is_over.set)
        has_jumped.set()
        is_over.wait()

    assert pauses.count(("test-reaper", STRETCH_PAUSE_S)) >= 3


@pytest.mark.parametrize("run_pending", [False, True])
def test_a_long_shutdown_steps_back(pauses: list[tuple[str, float]], run_pending: bool) -> None:
    timer = SystemTimer(clock=lambda: 0, executor=Inline(), reaper=False)
    for _ in range(3 * PART_MOVES_MAX):
        timer.add(TimerEntry(1))

    count = timer.shutdown(run_pending)

    assert count == 3 * PART_MOVES_MAX
    assert len(pauses) >= 2


def test_a_long_turn_by_hand_steps_back(pauses: list[tuple[str, float]]) -> None:
    now_ms = 0
    timer = SystemTimer(clock=lambda: now_ms, executor=Inline(), reaper=False)
    for _ in range(3 * PART_MOVES_MAX):
        timer.add(TimerEntry(1))

    now_ms = 1
    count = timer.advance()

    assert count == 3 * PART_MOVES_MAX
    assert len(pauses) >= 2


@pytest.mark.skipif(not hasattr(atexit, "_ncallbacks"), reason="a function of CPython")
def test_timers_that_were_shut_down_leave_nothing_for_the_end_of_the_program() -> None:
    SystemTimer().shutdown()
    count = atexit._ncallbacks()

    for _ in range(3):
        SystemTimer().shutdown()

    assert atexit._ncallbacks() == count
