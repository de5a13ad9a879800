"""The thread-safe timer when something fails: clocks, executors, pure timers, Ctrl-C.

Whatever it is, an entry runs once or somebody is told, a beat goes on, and a shutdown ends.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from tarry.timer.entry import TimerEntry
from tarry.timer.heap import HeapTimer
from tarry.timer.periodic import PeriodicEntry
from tarry.timer.reaper import PART_MOVES_MAX
from tarry.timer.system_timer import SystemTimer

HOUR_MS = 3_600_000


class Clock:
    """Milliseconds that pass when the test says so, and errors when it says so."""

    def __init__(self, now_ms: int = 1000) -> None:
        self.now_ms = now_ms
        self.good_answers = -1  # after so many one error comes; negative: none

    def __call__(self) -> int:
        self.good_answers -= 1
        if self.good_answers == -1:
            raise OSError("no clock")
        return self.now_ms


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Refusing(Executor):
    """Takes nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise RuntimeError("no more of this")


class TakingAndRefusing(Executor):
    """Says that it took nothing, and runs it all the same when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs.append(fn)
        raise RuntimeError("can't start new thread")


class Bounded(Executor):
    """One worker, and a queue of one place: whoever submits more waits."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "bounded")
        self.places = threading.Semaphore(1)
        self.is_full = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.places.acquire(False):
            self.is_full.set()
            self.places.acquire()
        future = self.pool.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda done: self.places.release())
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.pool.shutdown(wait, cancel_futures=cancel_futures)


class Failing:
    """A heap that fails when the test says so: after it gave entries out, or in the middle."""

    def __init__(self, now_ms: int) -> None:
        self.heap = HeapTimer(now_ms)
        self.fails_after_giving = False
        self.interrupts_after = -1
        self.has_given: list[TimerEntry] = []

    @property
    def current_ms(self) -> int:
        return self.heap.current_ms

    def add(self, entry: TimerEntry) -> bool:
        return self.heap.add(entry)

    def cancel(self, entry: TimerEntry) -> bool:
        return self.heap.cancel(entry)

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        return self.heap.reschedule(entry, deadline_ms)

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        self.interrupts_after -= 1
        if self.interrupts_after == -1:
            raise KeyboardInterrupt
        self.has_given = self.heap.advance(now_ms, limit)
        return self.has_given

    def next_due_ms(self) -> int | None:
        if self.fails_after_giving and self.has_given:
            self.fails_after_giving = False
            raise MemoryError("once")
        return self.heap.next_due_ms()

    def __len__(self) -> int:
        return len(self.heap)


class Named(TimerEntry):
    """Writes its name down when it runs."""

    def __init__(self, deadline_ms: int, name: str, log: list[str]) -> None:
        super().__init__(deadline_ms)
        self.name = name
        self.log = log

    def expire(self) -> None:
        self.log.append(self.name)


class Errors:
    """An error handler that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[TimerEntry | None, str]] = []

    def __call__(self, entry: TimerEntry | None, error: BaseException) -> None:
        self.told.append((entry, str(error)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def errors() -> Errors:
    return Errors()


@pytest.fixture
def timer(clock: Clock, errors: Errors) -> SystemTimer:
    return SystemTimer(clock=clock, executor=Inline(), on_error=errors, reaper=False)


def never_started(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def turn(timer: SystemTimer, clock: Clock, now_ms: int) -> int:
    clock.now_ms = now_ms
    return timer.advance()


@pytest.mark.parametrize("fixed_delay", [False, True])
@pytest.mark.parametrize("good_answers", [1, 2])
def test_a_clock_that_fails_around_a_beat_is_told_and_the_beats_go_on(
    timer: SystemTimer, clock: Clock, errors: Errors, good_answers: int, fixed_delay: bool
) -> None:
    beats: list[int] = []
    entry = timer.call_every(10, lambda: beats.append(clock.now_ms), fixed_delay=fixed_delay)

    clock.good_answers = good_answers  # one for advance, one for the beginning of the beat
    turn(timer, clock, 1010)

    assert errors.told == [(None, "no clock")]
    assert entry.is_pending
    assert len(timer) == 1
    assert turn(timer, clock, 1020) == 1
    assert beats == [1010, 1020]
    assert timer.cancel(entry)


def test_a_clock_that_fails_before_a_late_beat_makes_no_burst(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    timer.call_every(10, log.append, "beat", on_missed=lambda beats: log.append(f"missed {beats}"))

    clock.good_answers = 1
    turn(timer, clock, 1100)

    assert log == ["missed 9", "beat"]
    assert timer.next_due_ms() == 1110


def test_a_clock_that_fails_while_a_refusal_is_handled_keeps_no_refusal_from_being_told(
    clock: Clock, errors: Errors
) -> None:
    timer = SystemTimer(clock=clock, executor=Refusing(), on_error=errors, reaper=False)
    every = timer.call_every(10, print)
    others = [timer.call_later(11, print) for _ in range(3)]

    clock.good_answers = 1
    count = turn(timer, clock, 1011)

    assert count == 4
    assert errors.told == [
        (every, "no more of this"),
        (None, "no clock"),
        *[(other, "no more of this") for other in others],
    ]
    assert every.is_pending
    assert len(timer) == 1


def test_a_timer_that_takes_a_beat_back_no_more_is_told_and_the_others_run(
    clock: Clock, errors: Errors
) -> None:
    class Farther(PeriodicEntry):
        def end_beat(self, now_ms: int) -> None:
            self.deadline_ms = 10**200

    timer = SystemTimer(clock=clock, executor=Refusing(), on_error=errors, reaper=False)
    every, once = Farther(1010, 10), TimerEntry(1011)
    timer.add(every)
    timer.add(once)

    count = turn(timer, clock, 1011)

    assert count == 2
    assert [entry for entry, _ in errors.told] == [every, every, once]
    assert not every.is_pending


def test_what_was_refused_and_told_does_not_run_if_the_executor_took_it_all_the_same(
    clock: Clock, errors: Errors
) -> None:
    log: list[str] = []
    executor = TakingAndRefusing()
    timer = SystemTimer(clock=clock, executor=executor, on_error=errors, reaper=False)
    once = Named(1010, "refused", log)
    timer.add(once)
    every = timer.call_every(10, log.append, "beat")
    turn(timer, clock, 1010)

    for job in executor.jobs:
        job()

    assert errors.told == [(once, "can't start new thread"), (every, "can't start new thread")]
    assert log == []
    assert every.is_pending


def test_a_thread_that_cannot_be_started_is_told_once_and_nothing_refused_runs_later(
    clock: Clock, errors: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []

    timer = SystemTimer(clock=clock, on_error=errors, reaper=False)
    refused, accepted = Named(1010, "refused", log), Named(1020, "accepted", log)
    timer.add(refused)
    timer.add(accepted)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", never_started)
        turn(timer, clock, 1010)

    turn(timer, clock, 1020)
    timer.shutdown()

    assert errors.told == [(refused, "can't start new thread")]
    assert log == ["accepted"]


def test_an_executor_that_fails_after_it_ran_a_beat_is_told_and_the_beats_go_on(
    clock: Clock, errors: Errors
) -> None:
    class Late(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            fn(*args, **kwargs)
            raise RuntimeError("ran, but is not well")

    beats: list[int] = []
    timer = SystemTimer(clock=clock, executor=Late(), on_error=errors, reaper=False)
    entry = timer.call_every(10, lambda: beats.append(clock.now_ms))

    turn(timer, clock, 1010)
    turn(timer, clock, 1020)

    assert beats == [1010, 1020]
    assert errors.told == [(entry, "ran, but is not well")] * 2


def test_what_has_run_is_let_go_of_while_others_of_its_part_wait(clock: Clock) -> None:
    has_begun, may_end = threading.Event(), threading.Event()
    timer = SystemTimer(clock=clock, reaper=False)
    watched = []
    for _ in range(10):
        entry = Named(1010, "ran", [])
        watched.append(weakref.ref(entry))
        timer.add(entry)
    timer.call_later(10, has_begun.set)
    timer.call_later(10, may_end.wait)
    del entry

    turn(timer, clock, 1010)
    has_begun.wait()
    alive = [ref() for ref in watched if ref() is not None]
    may_end.set()
    timer.shutdown()

    assert alive == []


def test_what_a_timer_gave_out_before_it_failed_runs(errors: Errors) -> None:
    log: list[str] = []
    has_run = threading.Event()
    pure, clock = Failing(0), Clock(0)

    with SystemTimer(timer=pure, clock=clock, on_error=errors) as timer:
        for name in "abc":
            timer.add(Named(10, name, log))
        timer.call_later(10, has_run.set)
        pure.fails_after_giving = True
        clock.now_ms = 10
        has_run.wait()

    assert log == ["a", "b", "c"]
    assert errors.told == [(None, "once")]


def test_the_sleep_until_a_deadline_that_no_float_holds_is_a_day(clock: Clock) -> None:
    by_hand = SystemTimer(clock=clock, reaper=False)
    by_the_system = SystemTimer(reaper=False)

    naps = [timer.seconds_until(10**400) for timer in (by_hand, by_the_system)]

    assert naps == [86_400.0, 86_400.0]


def test_a_shutdown_that_is_interrupted_is_gone_on_with_by_the_next(clock: Clock) -> None:
    pure = Failing(1000)
    timer = SystemTimer(timer=pure, clock=clock, executor=Inline(), reaper=False)
    for _ in range(2 * PART_MOVES_MAX):
        timer.add(TimerEntry(1010))

    pure.interrupts_after = 1
    with pytest.raises(KeyboardInterrupt):
        timer.shutdown()
    left = len(timer)
    with ThreadPoolExecutor(1) as other:
        count = other.submit(timer.shutdown).result()

    assert left == count == PART_MOVES_MAX
    assert len(timer) == 0
    assert timer.shutdown() == 0


def test_a_shutdown_that_waits_for_an_interrupted_one_goes_on_with_it(clock: Clock) -> None:
    log: list[str] = []
    counts: list[int] = []
    is_waiting, has_begun = threading.Event(), threading.Event()

    class Interrupted(Failing):
        def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
            if not has_begun.is_set():
                has_begun.set()
                is_waiting.wait()
                raise KeyboardInterrupt
            return super().advance(now_ms, limit)

    def first() -> None:
        try:
            timer.shutdown()
        except KeyboardInterrupt:
            log.append("interrupted")

    timer = SystemTimer(timer=Interrupted(1000), clock=clock, executor=Inline(), reaper=False)
    timer.add(TimerEntry(1010))
    threads = [
        threading.Thread(target=first),
        threading.Thread(target=lambda: counts.append(timer.shutdown())),
    ]
    threads[0].start()
    has_begun.wait()
    threads[1].start()
    is_waiting.set()
    for thread in threads:
        thread.join()

    assert log == ["interrupted"]
    assert counts == [1]


def test_a_task_shuts_down_while_the_reaper_waits_for_the_executor_of_that_task() -> None:
    counts: list[int] = []
    is_over = threading.Event()
    executor = Bounded()

    def task() -> None:
        executor.is_full.wait()
        counts.append(timer.shutdown())
        is_over.set()

    timer = SystemTimer("test", executor=executor)
    timer.call_later(HOUR_MS, print)
    timer.call_later(1, task)
    timer.call_later(2, list)
    is_over.wait()
    timer.shutdown()
    executor.shutdown()

    assert counts == [1]
