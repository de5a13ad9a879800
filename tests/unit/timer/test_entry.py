"""What an entry refuses, whichever timer holds it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from tarry.purgatory import DelayedOperation
from tarry.timer import HeapTimer, PeriodicEntry, RoundsTimer, SystemTimer, TimerEntry, TimingWheel


class Named(TimerEntry):
    def __init__(self, deadline_ms: int, name: str) -> None:
        super().__init__(deadline_ms)
        self.name = name


@pytest.mark.parametrize("entry", [TimerEntry(5), Named(5, "tea"), DelayedOperation(5)])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_entry_is_not_copied_and_not_pickled(
    entry: TimerEntry, copied: Callable[[object], object]
) -> None:
    wheel = TimingWheel(0)
    wheel.add(entry)

    with pytest.raises(TypeError, match="make a new one"):
        copied(entry)

    assert wheel.cancel(entry)
    assert len(wheel) == 0


@pytest.mark.parametrize("make_timer", [TimingWheel, HeapTimer, RoundsTimer])
def test_a_periodic_entry_does_not_run_by_expire(
    make_timer: Callable[[int], TimingWheel | HeapTimer | RoundsTimer],
) -> None:
    timer = make_timer(0)
    entry = PeriodicEntry(5, 10)
    timer.add(entry)
    (due,) = timer.advance(5)

    with pytest.raises(RuntimeError, match="run_beat"):
        due.expire()

    entry.run_beat(5)
    assert timer.add(entry)
    assert entry.deadline_ms == 15


@pytest.mark.parametrize("not_callable", [None, 5, "print"])
def test_what_cannot_be_called_is_refused_when_it_is_asked_for(not_callable: object) -> None:
    timer = SystemTimer("calls", reaper=False)

    with pytest.raises(TypeError, match="cannot be called"):
        timer.call_later(5, not_callable)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot be called"):
        timer.call_every(5, not_callable)  # type: ignore[arg-type]

    assert len(timer) == 0
    timer.shutdown()


@pytest.mark.parametrize("make_timer", [TimingWheel, HeapTimer, RoundsTimer])
def test_a_timer_that_is_ahead_of_the_clock_is_refused_as_all_of_it_would_be_early(
    make_timer: Callable[[int], TimingWheel | HeapTimer | RoundsTimer],
) -> None:
    with pytest.raises(ValueError, match="same clock"):
        SystemTimer("calendar", timer=make_timer(1001), clock=lambda: 1000, reaper=False)
