"""What an entry refuses, whichever timer holds it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import AsyncIterator, Callable
from functools import partial

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


async def coroutine_function(*args: object) -> None:
    raise AssertionError


async def async_generator(*args: object) -> AsyncIterator[int]:
    yield 1


class Asynchronous:
    async def method(self, *args: object) -> None:
        raise AssertionError

    async def __call__(self, *args: object) -> None:
        raise AssertionError


ASYNCHRONOUS = [
    coroutine_function,
    async_generator,
    Asynchronous().method,
    Asynchronous(),
    partial(coroutine_function, 1),
    partial(partial(Asynchronous(), 1), 2),
]


@pytest.mark.parametrize("function", ASYNCHRONOUS)
def test_a_coroutine_function_is_refused_by_the_timer_of_threads(
    function: Callable[..., object],
) -> None:
    with SystemTimer("calls", reaper=False) as timer:
        with pytest.raises(TypeError, match=r"is a coroutine function.* use AsyncioTimer"):
            timer.call_later(5, function)
        with pytest.raises(TypeError, match=r"is a coroutine function.* use AsyncioTimer"):
            timer.call_every(5, function)
        with pytest.raises(TypeError, match=r"is a coroutine function.* use AsyncioTimer"):
            timer.call_every(5, print, on_missed=function)

        assert len(timer) == 0


class Called:
    def method(self, *args: object) -> None: ...

    def __call__(self, *args: object) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        print,
        Called().method,
        Called(),
        Called,
        Asynchronous,
        partial(print, 1),
        [].append,
        str.lower,
    ],
)
def test_everything_else_that_can_be_called_is_taken(function: Callable[..., object]) -> None:
    with SystemTimer("calls", reaper=False) as timer:
        timer.call_later(5, function)

        assert len(timer) == 1


def tick() -> None: ...


def test_an_entry_says_what_it_is() -> None:
    wheel = TimingWheel(0)
    entry, beat = Named(5, "tea"), PeriodicEntry(7, 10)
    wheel.add(entry)

    assert repr(entry) == "<Named due at 5 ms, pending>"
    assert repr(beat) == "<PeriodicEntry due at 7 ms, not pending, every 10 ms>"


def test_a_timer_of_threads_and_its_calls_say_what_they_are() -> None:
    with SystemTimer("tea", reaper=False, clock=lambda: 100) as timer:
        once = timer.call_later(5, tick)
        again = timer.call_every(7, tick)
        while_open = repr(timer)

    assert while_open == "<SystemTimer 'tea', 2 pending>"
    assert repr(timer) == "<SystemTimer 'tea', shut down>"
    assert repr(once) == f"<CallEntry due at 105 ms, not pending, calls {tick!r}>"
    assert repr(again) == f"<CallEveryEntry due at 107 ms, not pending, every 7 ms, calls {tick!r}>"
