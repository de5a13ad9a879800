"""The thread-safe timer with its clock and its turning in the test's hand: no thread runs here."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import pytest

from tarry.timer.entry import TimerEntry, TimerShutDown
from tarry.timer.heap import HeapTimer
from tarry.timer.periodic import PeriodicEntry
from tarry.timer.pure import PureTimer
from tarry.timer.reaper import PART_MOVES_MAX
from tarry.timer.rounds import RoundsTimer
from tarry.timer.system_timer import SystemTimer
from tarry.timer.wheel import TimingWheel


class Clock:
    """Milliseconds that pass when the test says so."""

    def __init__(self, now_ms: int = 1000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Waiting(Executor):
    """Runs what it was given when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[..., Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append((future, fn))
        return future

    def run_all(self) -> None:
        jobs, self.jobs = self.jobs, []
        for future, job in jobs:
            future.set_result(job())

    def cancel_all(self) -> None:
        jobs, self.jobs = self.jobs, []
        for future, _ in jobs:
            future.cancel()


class Refusing(Executor):
    """Takes nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise RuntimeError("no more of this")


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
        self.told: list[tuple[TimerEntry | None, BaseException]] = []

    def __call__(self, entry: TimerEntry | None, error: BaseException) -> None:
        self.told.append((entry, error))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def errors() -> Errors:
    return Errors()


@pytest.fixture(params=[TimingWheel, HeapTimer, RoundsTimer])
def pure(request: pytest.FixtureRequest, clock: Clock) -> PureTimer:
    timer: PureTimer = request.param(clock.now_ms)
    return timer


@pytest.fixture
def timer(clock: Clock, pure: PureTimer, errors: Errors) -> SystemTimer:
    return SystemTimer(timer=pure, executor=Inline(), clock=clock, on_error=errors, reaper=False)


def turn(timer: SystemTimer, clock: Clock, now_ms: int) -> int:
    clock.now_ms = now_ms
    return timer.advance()


def failing() -> None:
    raise LookupError("the task failed")


def test_what_is_due_runs_in_order_and_nothing_runs_before(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    for name, deadline_ms in [("c", 1030), ("a", 1010), ("d", 1031), ("b", 1010)]:
        assert timer.add(Named(deadline_ms, name, log))

    early = turn(timer, clock, 1009)
    assert log == []
    due = turn(timer, clock, 1030)

    assert (early, due) == (0, 3)
    assert log == ["a", "b", "c"]
    assert timer.size == len(timer) == 1


@pytest.mark.parametrize("deadline_ms", [-7, 0, 999, 1000])
def test_what_is_due_already_is_handed_over_at_once(timer: SystemTimer, deadline_ms: int) -> None:
    log: list[str] = []

    taken = timer.add(Named(deadline_ms, "due", log))

    assert not taken
    assert log == ["due"]
    assert len(timer) == 0


def test_what_became_due_since_the_timer_was_turned_is_handed_over_at_once_too(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    clock.now_ms = 5000

    taken = timer.add(Named(4999, "due", log))

    assert not taken
    assert log == ["due"]
    assert len(timer) == 0


def test_a_cancelled_entry_never_runs_and_one_that_ran_cannot_be_cancelled(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    gone, ran = Named(1010, "gone", log), Named(1010, "ran", log)
    timer.add(gone)
    timer.add(ran)

    answers = [timer.cancel(gone), timer.cancel(gone)]
    turn(timer, clock, 2000)
    answers.append(timer.cancel(ran))

    assert answers == [True, False, False]
    assert log == ["ran"]


def test_it_is_too_late_to_cancel_what_is_due_together_with_the_task_that_cancels(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    second = Named(1010, "second", log)
    timer.call_later(10, lambda: log.append(f"cancelled: {timer.cancel(second)}"))
    timer.add(second)

    turn(timer, clock, 1010)

    assert log == ["cancelled: False", "second"]


def test_a_task_adds_cancels_and_moves_others(timer: SystemTimer, clock: Clock) -> None:
    log: list[str] = []
    gone, moved = Named(1020, "gone", log), Named(1020, "moved", log)

    def task() -> None:
        assert timer.cancel(gone)
        assert timer.reschedule(moved, 1040)
        assert timer.add(Named(1030, "added", log))
        assert not timer.add(Named(1010, "at once", log))

    timer.add(gone)
    timer.add(moved)
    timer.call_later(10, task)
    for now_ms in (1010, 1020, 1030):
        turn(timer, clock, now_ms)

    assert log == ["at once", "added"]
    assert turn(timer, clock, 1040) == 1
    assert log == ["at once", "added", "moved"]


def test_a_moved_entry_runs_at_its_new_deadline_only(timer: SystemTimer, clock: Clock) -> None:
    log: list[str] = []
    later, sooner = Named(1010, "later", log), Named(1900, "sooner", log)
    timer.add(later)
    timer.add(sooner)

    assert timer.reschedule(later, 1500)
    assert timer.reschedule(sooner, 1020)

    assert turn(timer, clock, 1499) == 1
    assert log == ["sooner"]
    assert turn(timer, clock, 1900) == 1
    assert log == ["sooner", "later"]


def test_an_entry_moved_into_the_past_is_handed_over_at_once(timer: SystemTimer) -> None:
    log: list[str] = []
    entry = Named(1010, "moved", log)
    timer.add(entry)

    taken = timer.reschedule(entry, 1000)

    assert not taken
    assert log == ["moved"]
    assert len(timer) == 0


def test_an_entry_that_is_not_pending_is_added_by_moving_it(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    entry = Named(1010, "again", log)
    timer.add(entry)
    turn(timer, clock, 1010)

    assert timer.reschedule(entry, 1020)
    turn(timer, clock, 1020)

    assert log == ["again", "again"]


def test_a_call_has_its_arguments_and_its_delay(timer: SystemTimer, clock: Clock) -> None:
    log: list[tuple[object, ...]] = []

    entry = timer.call_later(10, lambda *args: log.append(args), 1, "two")
    turn(timer, clock, 1010)

    assert entry.deadline_ms == 1010
    assert log == [(1, "two")]


def test_a_delay_that_is_not_an_int_is_refused_and_the_timer_stays_whole(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    entry = Named(1010, "whole", log)
    timer.add(entry)

    with pytest.raises(TypeError, match=r"a time is an int of milliseconds, not 0\.5"):
        timer.call_later(0.5, failing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a time is an int of milliseconds, not 0\.5"):
        timer.call_every(0.5, failing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a time is an int of milliseconds, not 'soon'"):
        timer.reschedule(entry, "soon")  # type: ignore[arg-type]
    turn(timer, clock, 1010)

    assert log == ["whole"]


def test_an_entry_is_refused_that_is_pending_here_or_elsewhere(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    here, elsewhere = Named(1010, "here", log), Named(1010, "elsewhere", log)
    other = SystemTimer(clock=clock, reaper=False)
    other.add(elsewhere)
    timer.add(here)

    with pytest.raises(ValueError, match="is pending already"):
        timer.add(here)
    with pytest.raises(ValueError, match="pending in another timer"):
        timer.add(elsewhere)
    with pytest.raises(ValueError, match="pending in another timer"):
        timer.cancel(elsewhere)
    with pytest.raises(ValueError, match="pending in another timer"):
        timer.reschedule(elsewhere, 1020)
    turn(timer, clock, 1010)

    assert log == ["here"]
    assert other.shutdown() == 1


def test_calls_every_period_keep_to_the_grid(timer: SystemTimer, clock: Clock) -> None:
    beats: list[int] = []
    timer.call_every(10, lambda: beats.append(clock.now_ms))

    for now_ms in (1009, 1010, 1015, 1023, 1030, 1041):
        turn(timer, clock, now_ms)

    assert beats == [1010, 1023, 1030, 1041]


def test_after_a_pause_one_beat_runs_and_the_missed_ones_are_told_before(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    timer.call_every(10, log.append, "beat", on_missed=lambda beats: log.append(f"missed {beats}"))

    for now_ms in (1010, 1055, 1060):
        turn(timer, clock, now_ms)

    assert log == ["beat", "missed 3", "beat", "beat"]


def test_a_fixed_delay_begins_at_the_end_of_the_beat(timer: SystemTimer, clock: Clock) -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(clock.now_ms)
        clock.now_ms += 7

    timer.call_every(10, beat, fixed_delay=True)
    for now_ms in (1010, 1026, 1027, 1099):
        turn(timer, clock, now_ms)

    assert beats == [1010, 1027, 1099]


def test_a_beat_that_takes_longer_than_its_period_misses_beats(
    timer: SystemTimer, clock: Clock
) -> None:
    missed: list[int] = []

    def beat() -> None:
        clock.now_ms += 25

    timer.call_every(10, beat, on_missed=missed.append)
    turn(timer, clock, 1010)
    turn(timer, clock, 1035)

    assert missed == [1]


def test_a_cancelled_beat_does_not_come_again(timer: SystemTimer, clock: Clock) -> None:
    beats: list[int] = []
    entry = timer.call_every(10, lambda: beats.append(clock.now_ms))
    turn(timer, clock, 1010)

    answers = [timer.cancel(entry), timer.cancel(entry)]
    turn(timer, clock, 2000)

    assert answers == [True, False]
    assert beats == [1010]
    assert len(timer) == 0


def test_a_beat_cancels_itself(timer: SystemTimer, clock: Clock) -> None:
    answers: list[bool] = []
    entry = timer.call_every(10, lambda: answers.append(timer.cancel(entry)))

    turn(timer, clock, 1010)
    turn(timer, clock, 2000)

    assert answers == [True]
    assert not entry.is_pending


def test_a_beat_stops_itself_without_knowing_its_timer(timer: SystemTimer, clock: Clock) -> None:
    class Twice(PeriodicEntry):
        count = 0

        def beat(self) -> None:
            self.count += 1
            if self.count == 2:
                self.stop()

    entry = Twice(1010, period_ms=10)
    timer.add(entry)

    turn(timer, clock, 1010)
    assert entry.is_pending
    turn(timer, clock, 1020)

    assert entry.count == 2
    assert not entry.is_pending
    assert len(timer) == 0


def test_an_entry_that_is_stopped_while_it_is_pending_has_no_beat(
    timer: SystemTimer, clock: Clock
) -> None:
    beats: list[int] = []
    entry = timer.call_every(10, lambda: beats.append(clock.now_ms))

    entry.stop()
    turn(timer, clock, 1010)

    assert beats == []
    assert not entry.is_pending


def test_a_beat_moves_its_next_one(timer: SystemTimer, clock: Clock) -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(clock.now_ms)
        if clock.now_ms == 1010:
            assert timer.reschedule(entry, 1500)

    entry = timer.call_every(10, beat)
    for now_ms in (1010, 1499, 1500, 1510):
        turn(timer, clock, now_ms)

    assert beats == [1010, 1500, 1510]


def test_an_error_in_a_beat_or_in_what_is_told_stops_no_beat(
    timer: SystemTimer, clock: Clock, errors: Errors
) -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(clock.now_ms)
        raise LookupError("the beat failed")

    def told(beats: int) -> None:
        raise ArithmeticError("so did the counting")

    entry = timer.call_every(10, beat, on_missed=told)
    for now_ms in (1010, 1035, 1040):
        turn(timer, clock, now_ms)

    assert beats == [1010, 1035, 1040]
    assert [(who, type(error)) for who, error in errors.told] == [
        (entry, LookupError),
        (entry, ArithmeticError),
        (entry, LookupError),
        (entry, LookupError),
    ]


@pytest.mark.parametrize("period_ms", [0, -10])
def test_a_period_below_one_millisecond_is_refused(timer: SystemTimer, period_ms: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        timer.call_every(period_ms, failing)

    assert len(timer) == 0


class TestAnExecutorOfOnesOwn:
    """What waits for it, what it refuses, what it loses."""

    @pytest.fixture
    def executor(self) -> Waiting:
        return Waiting()

    @pytest.fixture
    def timer(
        self, clock: Clock, pure: PureTimer, errors: Errors, executor: Waiting
    ) -> SystemTimer:
        return SystemTimer(
            timer=pure, executor=executor, clock=clock, on_error=errors, reaper=False
        )

    def test_an_entry_that_waits_for_the_executor_cannot_be_cancelled_and_runs(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        log: list[str] = []
        entry = Named(1010, "ran", log)
        timer.add(entry)
        turn(timer, clock, 1010)

        answer = timer.cancel(entry)
        executor.run_all()

        assert not answer
        assert log == ["ran"]

    def test_a_beat_that_waits_for_the_executor_is_cancelled_and_never_runs(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        beats: list[int] = []
        entry = timer.call_every(10, lambda: beats.append(clock.now_ms))
        turn(timer, clock, 1010)

        answers = [timer.cancel(entry), timer.cancel(entry)]
        executor.run_all()
        turn(timer, clock, 2000)

        assert answers == [True, False]
        assert beats == []
        assert executor.jobs == []

    def test_beats_never_overlap_however_long_one_waits(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        missed: list[int] = []
        timer.call_every(10, lambda: None, on_missed=missed.append)
        for now_ms in (1010, 1020, 1030, 1040):
            turn(timer, clock, now_ms)

        waiting = len(executor.jobs)
        executor.run_all()

        assert waiting == 1
        assert missed == [3]
        assert turn(timer, clock, 1050) == 1

    def test_a_beat_cancelled_and_added_anew_while_it_waits_runs_once(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        beats: list[int] = []
        entry = timer.call_every(10, lambda: beats.append(clock.now_ms))
        turn(timer, clock, 1010)
        timer.cancel(entry)
        timer.add(entry)  # due already

        assert len(executor.jobs) == 2
        executor.run_all()

        assert beats == [1010]
        assert turn(timer, clock, 1020) == 1

    def test_two_workers_that_have_the_same_beat_to_run_run_it_once(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        beats: list[int] = []

        def beat() -> None:
            beats.append(clock.now_ms)
            other_job()

        entry = timer.call_every(10, beat)
        turn(timer, clock, 1010)
        timer.cancel(entry)
        timer.add(entry)  # due already
        (_, job), (_, other_job) = executor.jobs

        job()

        assert beats == [1010]

    def test_a_running_beat_is_pending_and_not_added_twice(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        entry = timer.call_every(10, lambda: None)
        turn(timer, clock, 1010)

        with pytest.raises(ValueError, match="pending"):
            timer.add(entry)

        assert entry.is_pending
        executor.run_all()
        assert len(timer) == 1

    def test_what_the_executor_drops_is_told(
        self, timer: SystemTimer, clock: Clock, executor: Waiting, errors: Errors
    ) -> None:
        log: list[str] = []
        once, every = Named(1010, "dropped", log), PeriodicEntry(1010, period_ms=10)
        timer.add(once)
        timer.add(every)
        turn(timer, clock, 1010)

        executor.cancel_all()

        assert [who for who, _ in errors.told] == [once, every]
        assert all(isinstance(error, CancelledError) for _, error in errors.told)
        assert turn(timer, clock, 1020) == 1

    def test_a_beat_that_waits_for_the_executor_at_a_shutdown_runs(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        beats: list[int] = []
        entry = timer.call_every(10, lambda: beats.append(clock.now_ms))
        turn(timer, clock, 1010)

        count = timer.shutdown()
        is_cancelled = timer.cancel(entry)
        executor.run_all()

        assert (count, is_cancelled) == (0, False)
        assert beats == [1010]
        assert not entry.is_pending

    def test_shutdown_leaves_the_executor_to_its_owner(
        self, timer: SystemTimer, clock: Clock, executor: Waiting
    ) -> None:
        log: list[str] = []
        timer.add(Named(1010, "run", log))

        count = timer.shutdown(run_pending=True)
        executor.run_all()

        assert count == 1
        assert log == ["run"]


def test_what_an_executor_refuses_is_told_and_the_beats_go_on(
    clock: Clock, pure: PureTimer, errors: Errors
) -> None:
    timer = SystemTimer(timer=pure, executor=Refusing(), clock=clock, on_error=errors, reaper=False)
    once = timer.call_later(10, failing)
    every = timer.call_every(10, failing)

    handed = [turn(timer, clock, now_ms) for now_ms in (1010, 1020)]

    assert handed == [2, 1]
    assert [(who, str(error)) for who, error in errors.told] == [
        (once, "no more of this"),
        (every, "no more of this"),
        (every, "no more of this"),
    ]


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt])
def test_an_error_in_a_task_is_told_and_the_others_run(
    timer: SystemTimer, clock: Clock, errors: Errors, error: type[BaseException]
) -> None:
    log: list[str] = []

    def task() -> None:
        raise error("the task failed")

    entry = timer.call_later(10, task)
    timer.add(Named(1010, "other", log))

    turn(timer, clock, 1010)

    assert [(who, type(what)) for who, what in errors.told] == [(entry, error)]
    assert log == ["other"]


def test_without_a_handler_errors_are_logged_with_their_traceback(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    timer = SystemTimer("billing", executor=Inline(), clock=clock, reaper=False)
    timer.call_later(10, failing)

    turn(timer, clock, 1010)

    (record,) = caplog.records
    assert record.name == "tarry.timer"
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "a task of timer billing failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_an_error_in_the_handler_is_logged_beside_the_first_and_the_others_run(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []

    def handler(entry: TimerEntry | None, error: BaseException) -> None:
        raise ArithmeticError("so did the handler")

    timer = SystemTimer(executor=Inline(), clock=clock, on_error=handler, reaper=False)
    timer.call_later(10, failing)
    timer.add(Named(1010, "other", log))

    turn(timer, clock, 1010)

    kinds = [type(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert kinds == [ArithmeticError, LookupError]
    assert log == ["other"]


def test_tasks_handler_and_clock_may_call_the_timer(pure: PureTimer) -> None:
    log: list[str] = []

    def told(entry: TimerEntry | None, error: BaseException) -> None:
        log.append(f"told, {len(timer)} pending")

    def clock() -> int:
        if timer is not None:
            log.append(f"asked, {len(timer)} pending")
        return 1000

    timer: SystemTimer = None  # type: ignore[assignment]
    timer = SystemTimer(timer=pure, executor=Inline(), clock=clock, on_error=told, reaper=False)
    timer.call_later(0, failing)

    assert set(log) == {"asked, 0 pending", "told, 0 pending"}


def test_a_long_way_is_caught_up_in_parts(clock: Clock) -> None:
    pending: list[int] = []
    timer = SystemTimer(executor=Inline(), clock=clock, reaper=False)
    for _ in range(5 * PART_MOVES_MAX):
        timer.call_later(1, lambda: pending.append(len(timer)))

    count = turn(timer, clock, 10_000_000)

    parts = [PART_MOVES_MAX * left for left in (4, 3, 2, 1, 0)]
    assert count == 5 * PART_MOVES_MAX
    assert sorted(set(pending), reverse=True) == parts
    assert all(pending.count(left) == PART_MOVES_MAX for left in parts)


def test_a_shutdown_drops_what_is_pending_and_says_how_many(
    timer: SystemTimer, clock: Clock
) -> None:
    log: list[str] = []
    entries: list[TimerEntry] = []
    for deadline_ms in (1010, 1500, 2**57):
        entries.append(Named(deadline_ms, "dropped", log))
        timer.add(entries[-1])
    entries.append(timer.call_every(10, log.append, "beat"))

    count = timer.shutdown()

    assert count == 4
    assert turn(timer, clock, 2000) == 0
    assert log == []
    assert not any(entry.is_pending for entry in entries)
    assert len(timer) == 0


def test_a_shutdown_runs_what_is_pending_in_order_and_says_how_many(
    timer: SystemTimer, clock: Clock, errors: Errors
) -> None:
    log: list[str] = []
    for deadline_ms in (10**12, 1010, 1500):
        timer.add(Named(deadline_ms, str(deadline_ms), log))
    timer.call_every(20, log.append, "beat")
    failed = timer.call_later(30, failing)

    count = timer.shutdown(run_pending=True)

    assert count == 5
    assert log == ["1010", "beat", "1500", "1000000000000"]
    assert [who for who, _ in errors.told] == [failed]
    assert turn(timer, clock, 5000) == 0


def test_a_second_shutdown_does_nothing(timer: SystemTimer) -> None:
    log: list[str] = []
    timer.add(Named(1010, "dropped", log))

    counts = [timer.shutdown(), timer.shutdown(run_pending=True)]

    assert counts == [1, 0]
    assert log == []


def test_leaving_the_context_drops_what_is_pending(clock: Clock) -> None:
    log: list[str] = []

    with SystemTimer(clock=clock, reaper=False) as timer:
        timer.add(Named(1010, "dropped", log))

    assert len(timer) == 0
    assert log == []


def test_use_after_shutdown_is_an_error_with_a_sentence(clock: Clock) -> None:
    timer = SystemTimer("billing", clock=clock, reaper=False)
    entry = TimerEntry(1010)
    timer.add(entry)
    timer.shutdown()
    sentence = "the timer 'billing' was shut down and takes nothing any more; make a new one"

    with pytest.raises(TimerShutDown, match=sentence):
        timer.add(entry)
    with pytest.raises(TimerShutDown, match=sentence):
        timer.add(TimerEntry(10**15))
    with pytest.raises(TimerShutDown, match=sentence):
        timer.reschedule(entry, 1020)
    with pytest.raises(TimerShutDown, match=sentence):
        timer.call_later(10, failing)
    with pytest.raises(TimerShutDown, match=sentence):
        timer.call_every(10, failing)

    assert not timer.cancel(entry)
    assert timer.next_due_ms() is None
    assert timer.advance() == 0


def test_dropped_and_cancelled_entries_are_let_go_of(timer: SystemTimer) -> None:
    log: list[str] = []
    dropped, cancelled = Named(1010, "dropped", log), Named(1010, "cancelled", log)
    watched = [weakref.ref(dropped), weakref.ref(cancelled)]
    timer.add(dropped)
    timer.add(cancelled)
    timer.cancel(cancelled)
    timer.shutdown()

    del dropped, cancelled
    gc.collect()

    assert [ref() for ref in watched] == [None, None]


def test_the_next_due_time_is_that_of_the_pure_timer(timer: SystemTimer, clock: Clock) -> None:
    assert timer.next_due_ms() is None

    timer.add(TimerEntry(1010))

    assert timer.next_due_ms() == 1010
