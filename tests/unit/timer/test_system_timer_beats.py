"""Beats of the thread-safe timer that are cancelled, added and moved while they are under way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from tarry.timer.periodic import PeriodicEntry
from tarry.timer.system_timer import SystemTimer


class Clock:
    """Milliseconds that pass when the test says so."""

    def __init__(self, now_ms: int = 1000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class Waiting(Executor):
    """Runs what it was given when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs.append(fn)
        return Future()

    def run_all(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job()


class Beating(PeriodicEntry):
    """Does at its first beat what the test says; counts the beats, and how many are under way."""

    def __init__(self, at_first: Callable[[Beating], object]) -> None:
        super().__init__(1010, period_ms=10)
        self.at_first = at_first
        self.beats = 0
        self.under_way = 0
        self.under_way_max = 0

    def beat(self) -> None:
        self.beats += 1
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        if self.beats == 1:
            self.at_first(self)
        self.under_way -= 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def executor() -> Waiting:
    return Waiting()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def timer(clock: Clock, executor: Waiting, told: list[str]) -> SystemTimer:
    return SystemTimer(
        clock=clock,
        executor=executor,
        on_error=lambda entry, error: told.append(str(error)),
        reaper=False,
    )


def turn(timer: SystemTimer, clock: Clock, executor: Waiting, now_ms: int) -> None:
    """Let the time come, and everything run that is due then."""
    clock.now_ms = now_ms
    timer.advance()
    executor.run_all()


def test_beats_do_not_overlap_if_the_entry_is_cancelled_and_added_during_one(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    def cancel_and_add(entry: Beating) -> None:
        for deadline_ms in (1015, 1012):
            assert timer.cancel(entry)
            assert not entry.is_pending
            entry.deadline_ms = deadline_ms
            assert timer.add(entry)
            assert entry.is_pending
            turn(timer, clock, executor, deadline_ms + 5)

    entry = Beating(cancel_and_add)
    timer.add(entry)

    turn(timer, clock, executor, 1010)
    turn(timer, clock, executor, 1020)

    assert entry.under_way_max == 1
    assert entry.beats == 2
    assert len(timer) == 1


def test_an_entry_added_anew_during_its_beat_has_the_next_one_at_its_new_deadline(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    def cancel_and_add(entry: Beating) -> None:
        timer.cancel(entry)
        entry.deadline_ms = 1500
        timer.add(entry)

    entry = Beating(cancel_and_add)
    timer.add(entry)

    turn(timer, clock, executor, 1010)

    assert timer.next_due_ms() is not None
    assert entry.deadline_ms == 1500
    turn(timer, clock, executor, 1499)
    assert entry.beats == 1
    turn(timer, clock, executor, 1500)
    assert entry.beats == 2


@pytest.mark.parametrize("deadline_ms", [0, 1500])
def test_an_entry_moved_after_it_was_cancelled_in_its_beat_beats_again(
    timer: SystemTimer, clock: Clock, executor: Waiting, deadline_ms: int
) -> None:
    def cancel_and_move(entry: Beating) -> None:
        timer.cancel(entry)
        assert timer.reschedule(entry, deadline_ms)

    entry = Beating(cancel_and_move)
    timer.add(entry)

    turn(timer, clock, executor, 1010)
    turn(timer, clock, executor, 1500)

    assert entry.beats == 2
    assert entry.under_way_max == 1
    assert entry.is_pending


def test_an_entry_cancelled_added_and_cancelled_in_its_beat_has_no_other(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    answers: list[bool] = []

    def change_ones_mind(entry: Beating) -> None:
        answers.append(timer.cancel(entry))
        timer.add(entry)
        answers.append(timer.cancel(entry))
        answers.append(timer.cancel(entry))

    entry = Beating(change_ones_mind)
    timer.add(entry)

    turn(timer, clock, executor, 1010)
    turn(timer, clock, executor, 2000)

    assert answers == [True, True, False]
    assert entry.beats == 1
    assert len(timer) == 0


def test_an_entry_cancelled_in_its_beat_may_be_added_after_it(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    entry = Beating(timer.cancel)
    timer.add(entry)
    turn(timer, clock, executor, 1010)

    entry.deadline_ms = 1020
    timer.add(entry)

    assert len(timer) == 1  # in the timer, not with a beat that is over
    turn(timer, clock, executor, 1020)
    assert entry.beats == 2


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_beat_is_not_moved_to_where_the_timer_does_not_reach_and_goes_on(
    timer: SystemTimer, clock: Clock, executor: Waiting, told: list[str], is_cancelled: bool
) -> None:
    def move(entry: Beating) -> None:
        if is_cancelled:
            timer.cancel(entry)
        with pytest.raises(ValueError, match="farther away"):
            timer.reschedule(entry, 10**200)
        assert entry.is_pending != is_cancelled
        if is_cancelled:
            timer.add(entry)

    entry = Beating(move)
    timer.add(entry)

    turn(timer, clock, executor, 1010)
    turn(timer, clock, executor, 1020)

    assert entry.beats == 2
    assert told == []


def test_adding_an_entry_whose_beat_waits_or_runs_says_so(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    sentence = r"its beat is due or under way; reschedule\(\) moves the next one"

    def add(entry: Beating) -> None:
        with pytest.raises(ValueError, match=sentence):
            timer.add(entry)

    entry = Beating(add)
    timer.add(entry)
    clock.now_ms = 1010
    timer.advance()

    add(entry)
    executor.run_all()

    assert entry.beats == 1
    assert len(timer) == 1


def test_who_is_told_of_missed_beats_cancels_the_one_that_is_due(
    timer: SystemTimer, clock: Clock, executor: Waiting
) -> None:
    log: list[object] = []
    entry = timer.call_every(
        10, log.append, "beat", on_missed=lambda beats: log.append(timer.cancel(entry))
    )

    turn(timer, clock, executor, 1055)
    turn(timer, clock, executor, 2000)

    assert log == [True]


def test_a_beat_handed_over_by_a_shutdown_runs_though_it_is_too_late_to_cancel_it(
    timer: SystemTimer, executor: Waiting
) -> None:
    log: list[str] = []
    entry = timer.call_every(10, log.append, "beat")

    count = timer.shutdown(run_pending=True)
    answer = timer.cancel(entry)
    executor.run_all()

    assert (count, answer, log) == (1, False, ["beat"])
