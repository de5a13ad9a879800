"""The thread-safe timer with its reaper: races, waking, errors, and its end.

Nothing is timed: a test waits for what must happen, and the time limit of the suite is for what
never does.
"""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from tarry.timer.entry import TimerEntry, TimerShutDown
from tarry.timer.heap import HeapTimer
from tarry.timer.pure import PureTimer
from tarry.timer.rounds import RoundsTimer
from tarry.timer.system_timer import SystemTimer
from tarry.timer.wheel import TimingWheel

HOUR_MS = 3_600_000


@pytest.fixture(params=[TimingWheel, HeapTimer, RoundsTimer])
def timer(request: pytest.FixtureRequest) -> Iterator[SystemTimer]:
    pure: PureTimer = request.param(time.monotonic_ns() // 1_000_000)
    with SystemTimer("test", timer=pure) as timer:
        yield timer


class Counted(TimerEntry):
    """Counts how often it ran."""

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.runs = 0

    def expire(self) -> None:
        self.runs += 1


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def threads_of(name: str) -> list[str]:
    return sorted(each.name for each in threading.enumerate() if each.name.startswith(name))


def in_threads(count: int, target: Callable[[int], object]) -> None:
    """Run the function in so many threads at once; its errors come back here."""
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(target, number) for number in range(count)]:
            future.result()


def test_the_reaper_runs_what_is_due(timer: SystemTimer) -> None:
    has_run = threading.Event()

    timer.call_later(3, has_run.set)

    assert has_run.wait()
    assert len(timer) == 0


def test_an_earlier_deadline_wakes_the_reaper_from_its_sleep(timer: SystemTimer) -> None:
    timer.call_later(HOUR_MS, print)
    for _ in range(20):
        has_run = threading.Event()
        timer.call_later(2, has_run.set)
        assert has_run.wait()

    assert len(timer) == 1


def test_no_waking_is_lost_while_the_reaper_goes_to_sleep(timer: SystemTimer) -> None:
    has_run = threading.Semaphore(0)
    timer.call_later(HOUR_MS, print)

    for count in range(200):
        timer.call_later(1 + count % 2, has_run.release)
        assert has_run.acquire()

    assert len(timer) == 1


def test_a_moved_deadline_wakes_the_reaper_too(timer: SystemTimer) -> None:
    has_run = threading.Event()
    entry = timer.call_later(HOUR_MS, has_run.set)

    timer.reschedule(entry, timer.now_ms() + 2)

    assert has_run.wait()


def test_a_moved_beat_wakes_the_reaper_too(timer: SystemTimer) -> None:
    beats = threading.Semaphore(0)
    entry = timer.call_every(HOUR_MS, beats.release)

    for _ in range(3):
        timer.reschedule(entry, timer.now_ms() + 2)
        assert beats.acquire()

    assert timer.cancel(entry)


def test_beats_come_again_and_again(timer: SystemTimer) -> None:
    beats = threading.Semaphore(0)
    entry = timer.call_every(1, beats.release)

    for _ in range(10):
        assert beats.acquire()

    assert timer.cancel(entry)
    assert not timer.cancel(entry)


def test_a_delay_is_never_cut_short() -> None:
    short_ns: list[int] = []
    has_run = threading.Semaphore(0)

    def note(since_ns: int, delay_ms: int) -> None:
        short_ns.append(time.monotonic_ns() - since_ns - delay_ms * 1_000_000)
        has_run.release()

    with SystemTimer("test") as timer:
        for count in range(300):
            timer.call_later(count % 7, note, time.monotonic_ns(), count % 7)
            if count % 10 == 0:
                has_run.acquire()
        for _ in range(270):
            has_run.acquire()

    assert len(short_ns) == 300
    assert min(short_ns) >= 0


def test_adding_and_cancelling_race_with_expiry_and_every_answer_is_kept(
    timer: SystemTimer,
) -> None:
    cancelled: list[Counted] = []
    too_late: list[Counted] = []

    def churn(number: int) -> None:
        chance = random.Random(number)
        mine: list[Counted] = []
        for _ in range(3000):
            entry = Counted(timer.now_ms() + chance.randrange(-1, 5))
            timer.add(entry)
            mine.append(entry)
            if chance.random() < 0.7:
                entry = mine.pop(chance.randrange(len(mine)))
                (cancelled if timer.cancel(entry) else too_late).append(entry)
        too_late.extend(mine)

    in_threads(4, churn)
    timer.shutdown(run_pending=True)

    assert len(cancelled) + len(too_late) == 4 * 3000
    assert {entry.runs for entry in cancelled} == {0}
    assert {entry.runs for entry in too_late} == {1}


def test_one_of_two_that_cancel_the_same_entry_is_told_so_or_it_runs(timer: SystemTimer) -> None:
    entries = [Counted(timer.now_ms() + number % 50) for number in range(4000)]
    answers: list[list[bool]] = [[], [], [], []]
    for entry in entries:
        timer.add(entry)

    in_threads(4, lambda number: answers[number].extend(map(timer.cancel, entries)))
    dropped = timer.shutdown(run_pending=True)

    for entry, told in zip(entries, zip(*answers, strict=True), strict=True):
        assert entry.runs + sum(told) == 1
    assert dropped == 0


def test_what_races_with_a_shutdown_runs_once_or_is_refused(timer: SystemTimer) -> None:
    taken: list[Counted] = []
    start = threading.Barrier(4)

    def add_until_refused(number: int) -> None:
        start.wait()
        while True:
            entry = Counted(timer.now_ms() + number)
            try:
                timer.add(entry)
            except TimerShutDown:
                assert not entry.is_pending
                return
            taken.append(entry)

    def shut_down(number: int) -> None:
        if number < 3:
            add_until_refused(number)
            return
        start.wait()
        while len(taken) < 500:
            time.sleep(0)
        timer.shutdown(run_pending=True)

    in_threads(4, shut_down)

    assert len(taken) >= 500
    assert {entry.runs for entry in taken} == {1}
    assert threads_of("test") == []


def test_moving_races_with_expiry_and_no_deadline_is_lost(timer: SystemTimer) -> None:
    entries = [Counted(timer.now_ms() + number % 5) for number in range(400)]
    for entry in entries:
        timer.add(entry)

    def move(number: int) -> None:
        chance = random.Random(number)
        for _ in range(5):
            for entry in entries[number::2]:
                timer.reschedule(entry, timer.now_ms() + chance.randrange(4))

    in_threads(2, move)
    timer.shutdown(run_pending=True)

    assert all(1 <= entry.runs <= 6 for entry in entries)


def test_a_task_adds_the_next_and_the_last_shuts_down(timer: SystemTimer) -> None:
    counts: list[int] = []
    is_over = threading.Event()

    def task(left: int) -> None:
        if left > 0:
            timer.call_later(0 if left % 2 else 1, task, left - 1)
            return
        timer.call_later(HOUR_MS, print)
        counts.append(timer.shutdown())
        is_over.set()

    timer.call_later(1, task, 20)

    assert is_over.wait()
    assert counts == [1]
    assert timer.shutdown() == 0
    assert threads_of("test") == []


def test_a_task_shuts_down_and_has_the_pending_ones_run(timer: SystemTimer) -> None:
    log: list[str] = []
    timer.call_later(HOUR_MS, log.append, "pending")
    is_over = threading.Event()

    def task() -> None:
        log.append(f"{timer.shutdown(run_pending=True)} are pending")
        is_over.set()

    timer.call_later(1, task)
    is_over.wait()
    timer.shutdown()

    assert log == ["1 are pending", "pending"]
    assert threads_of("test") == []


def test_a_shutdown_waits_for_the_task_that_runs(timer: SystemTimer) -> None:
    log: list[str] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def task() -> None:
        has_begun.set()
        may_end.wait()
        log.append("task")

    timer.call_later(1, task)
    has_begun.wait()
    timer.shutdown(wait=False)
    log.append("did not wait")
    may_end.set()
    in_threads(2, lambda number: timer.shutdown())
    log.append("waited")

    assert log == ["did not wait", "task", "waited"]
    assert threads_of("test") == []


def test_a_second_shutdown_waits_for_the_first() -> None:
    log: list[str] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def task() -> None:
        has_begun.set()
        may_end.wait()
        log.append("task")

    def second_shutdown() -> None:
        timer.shutdown()
        log.append("second")

    timer = SystemTimer("test", executor=Inline())
    timer.call_later(HOUR_MS, task)
    first = threading.Thread(target=timer.shutdown, args=(True,))
    second = threading.Thread(target=second_shutdown)
    first.start()
    has_begun.wait()
    second.start()
    second.join(0.1)  # time enough to be wrong
    may_end.set()
    first.join()
    second.join()

    assert log == ["task", "second"]


def test_a_timer_that_was_shut_down_is_let_go_of() -> None:
    class Handler:
        def __call__(self, entry: TimerEntry | None, error: BaseException) -> None:
            pass

    handler = Handler()
    watched = weakref.ref(handler)
    with SystemTimer("test", on_error=handler) as timer:
        timer.call_later(HOUR_MS, print)

    del handler, timer
    gc.collect()

    assert watched() is None


@pytest.mark.parametrize("pure", [TimingWheel, HeapTimer, RoundsTimer])
def test_a_deadline_ten_thousand_years_away_disturbs_nobody(
    pure: Callable[[int], PureTimer],
) -> None:
    told: list[object] = []
    has_run = threading.Event()

    with SystemTimer(
        "test",
        timer=pure(time.monotonic_ns() // 1_000_000),
        on_error=lambda entry, error: told.append(error),
    ) as timer:
        timer.call_later(10_000 * 365 * 24 * HOUR_MS, print)
        timer.call_later(5, has_run.set)
        has_run.wait()
        timer.call_later(10, has_run.clear)
        while has_run.is_set():
            time.sleep(0)

    assert told == []


def test_one_of_many_that_shut_down_is_told_the_count(timer: SystemTimer) -> None:
    for _ in range(100):
        timer.call_later(HOUR_MS, print)
    counts: list[int] = []

    in_threads(4, lambda number: counts.append(timer.shutdown()))

    assert sorted(counts) == [0, 0, 0, 100]
    assert threads_of("test") == []


def test_tasks_of_a_pool_run_side_by_side() -> None:
    both = threading.Barrier(3)

    with ThreadPoolExecutor(2) as pool, SystemTimer("test", executor=pool) as timer:
        timer.call_later(1, both.wait)
        timer.call_later(1, both.wait)
        both.wait()

    assert not both.broken


def test_errors_in_tasks_and_in_the_handler_end_neither_reaper_nor_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    has_run = threading.Event()

    def fail(*args: object) -> None:
        raise SystemExit("of all errors")

    with SystemTimer("test", on_error=fail) as timer:
        timer.call_later(1, fail)
        timer.call_later(2, fail)
        timer.call_later(5, has_run.set)
        has_run.wait()

    assert len(caplog.records) == 4


def test_an_error_of_the_clock_is_told_and_the_reaper_goes_on() -> None:
    failures = ["no clock", "no clock yet"]
    told: list[tuple[TimerEntry | None, str]] = []
    has_run = threading.Event()

    def clock() -> int:
        if failures and threading.current_thread().name == "test-reaper":
            raise OSError(failures.pop())
        return time.monotonic_ns() // 1_000_000

    def on_error(entry: TimerEntry | None, error: BaseException) -> None:
        told.append((entry, str(error)))

    with SystemTimer("test", clock=clock, on_error=on_error) as timer:
        timer.call_later(1, has_run.set)
        has_run.wait()

    assert told == [(None, "no clock yet"), (None, "no clock")]


def test_a_clock_that_jumps_is_caught_up_in_order() -> None:
    ran: list[int] = []
    has_jumped, is_over = threading.Event(), threading.Event()

    with SystemTimer("test", clock=lambda: 10**9 if has_jumped.is_set() else 0) as timer:
        for number in range(20_000):
            timer.call_later(1 + number, ran.append, number)
        timer.call_later(20_001, is_over.set)
        has_jumped.set()
        is_over.wait()

    assert ran == list(range(20_000))
