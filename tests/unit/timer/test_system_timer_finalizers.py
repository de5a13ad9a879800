"""Finalizers that call the timer in the middle of its own calls: the lock is taken, by whom?

The garbage collector may run whenever something is made, so also under the lock of the timer.
Here it runs in the middle of every call of the pure timer, before and after what that does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from tarry.timer.entry import TimerEntry
from tarry.timer.system_timer import SystemTimer
from tarry.timer.wheel import TimingWheel

pytestmark = pytest.mark.usefixtures("young_heap")

FAR_MS = 10**9


class Garbage:
    """Not reachable any more, but not freed either, until the collector comes."""

    def __init__(self, finalizer: Callable[[], object]) -> None:
        self.finalizer = finalizer
        self.itself = self

    def __del__(self) -> None:
        self.finalizer()


class Littered:
    """A wheel during whose calls garbage is collected."""

    def __init__(self, now_ms: int) -> None:
        self.wheel = TimingWheel(now_ms)
        self.collects_before = True

    @property
    def current_ms(self) -> int:
        return self.wheel.current_ms

    def add(self, entry: TimerEntry) -> bool:
        gc.collect()
        return self.wheel.add(entry)

    def cancel(self, entry: TimerEntry) -> bool:
        gc.collect()
        return self.wheel.cancel(entry)

    def reschedule(self, entry: TimerEntry, deadline_ms: int) -> bool:
        gc.collect()
        return self.wheel.reschedule(entry, deadline_ms)

    def advance(self, now_ms: int, limit: int | None = None) -> list[TimerEntry]:
        if self.collects_before:
            gc.collect()
        due = self.wheel.advance(now_ms, limit)
        gc.collect()
        return due

    def next_due_ms(self) -> int | None:
        return self.wheel.next_due_ms()

    def __len__(self) -> int:
        gc.collect()
        return len(self.wheel)


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture
def now() -> list[int]:
    return [1000]


@pytest.fixture
def pure(now: list[int]) -> Littered:
    return Littered(now[0])


@pytest.fixture
def timer(now: list[int], pure: Littered) -> Iterator[SystemTimer]:
    gc.collect()
    gc.disable()
    yield SystemTimer(timer=pure, executor=Inline(), clock=lambda: now[0], reaper=False)
    gc.enable()


CALLS: dict[str, Callable[[SystemTimer, TimerEntry], object]] = {
    "add": lambda timer, other: timer.add(TimerEntry(FAR_MS)),
    "cancel": lambda timer, other: timer.cancel(other),
    "reschedule": lambda timer, other: timer.reschedule(other, FAR_MS + 1),
    "len": lambda timer, other: len(timer),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_finalizer_cancels_in_the_middle_of_a_call(
    timer: SystemTimer, now: list[int], call: Callable[[SystemTimer, TimerEntry], object]
) -> None:
    log: list[object] = []
    entry = timer.call_later(10, log.append, "ran")
    other = TimerEntry(FAR_MS)
    timer.add(other)
    Garbage(lambda: log.append([timer.cancel(entry), timer.cancel(entry)]))

    call(timer, other)
    log.append(timer.cancel(entry))
    now[0] = 2000
    timer.advance()

    assert log == [[True, False], False]
    assert not entry.is_pending


def test_what_a_finalizer_cancels_just_before_it_is_taken_out_does_not_run(
    timer: SystemTimer, now: list[int]
) -> None:
    log: list[object] = []
    entry = timer.call_later(10, log.append, "ran")
    timer.call_later(10, log.append, "another")
    Garbage(lambda: log.append(timer.cancel(entry)))
    now[0] = 2000

    count = timer.advance()

    assert count == 1
    assert log == [True, "another"]


def test_what_a_finalizer_finds_taken_out_runs(
    timer: SystemTimer, pure: Littered, now: list[int]
) -> None:
    log: list[object] = []
    entry = timer.call_later(10, log.append, "ran")
    pure.collects_before = False
    Garbage(lambda: log.append(timer.cancel(entry)))
    now[0] = 2000

    count = timer.advance()

    assert count == 1
    assert log == [False, "ran"]


@pytest.mark.parametrize("run_pending", [False, True])
def test_what_a_finalizer_cancels_during_a_shutdown_is_not_counted(
    timer: SystemTimer, run_pending: bool
) -> None:
    log: list[object] = []
    entry = timer.call_later(10, log.append, "ran")
    timer.call_later(20, log.append, "another")
    Garbage(lambda: log.append(timer.cancel(entry)))
    len(timer)

    count = timer.shutdown(run_pending)

    assert count == 1
    assert log == [True, *(["another"] if run_pending else [])]


def test_a_finalizer_cancels_a_beat_on_its_way(timer: SystemTimer, now: list[int]) -> None:
    beats: list[int] = []

    def first() -> None:
        Garbage(lambda: timer.cancel(entry))
        timer.call_later(FAR_MS, print)

    timer.call_later(10, first)
    entry = timer.call_every(10, lambda: beats.append(now[0]))
    now[0] = 1010
    timer.advance()

    assert beats == []
    assert not entry.is_pending
    assert len(timer) == 1


def test_a_finalizer_cancels_freely_when_no_call_is_under_way(
    timer: SystemTimer, now: list[int]
) -> None:
    log: list[object] = []
    entry = timer.call_later(10, log.append, "ran")
    Garbage(lambda: log.append(timer.cancel(entry)))

    gc.collect()

    assert log == [True]
    assert not entry.is_pending


REFUSED: dict[str, Callable[[SystemTimer], object]] = {
    "add": lambda timer: timer.add(TimerEntry(FAR_MS)),
    "reschedule": lambda timer: timer.reschedule(TimerEntry(FAR_MS), FAR_MS),
    "call_later": lambda timer: timer.call_later(10, print),
    "call_every": lambda timer: timer.call_every(10, print),
    "len": len,
    "next_due_ms": lambda timer: timer.next_due_ms(),
    "advance": lambda timer: timer.advance(),
    "shutdown": lambda timer: timer.shutdown(),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_what_else_a_finalizer_asks_for_in_the_middle_of_a_call_is_refused(
    timer: SystemTimer, call: Callable[[SystemTimer], object]
) -> None:
    refused: list[str] = []

    def finalizer() -> None:
        with pytest.raises(RuntimeError) as caught:
            call(timer)
        refused.append(str(caught.value))

    Garbage(finalizer)

    timer.add(TimerEntry(FAR_MS))

    assert refused == [
        "a finalizer may only cancel; the timer 'timer' may be in the middle of a call that it"
        " interrupts. Have a task do it"
    ]
    assert len(timer) == 1


def test_a_finalizer_cannot_cancel_what_is_pending_in_another_timer(timer: SystemTimer) -> None:
    other = SystemTimer(reaper=False, clock=lambda: 1000)
    entry = other.call_later(10, print)
    refused: list[str] = []

    def finalizer() -> None:
        with pytest.raises(ValueError, match="another timer"):
            timer.cancel(entry)
        refused.append("refused")

    Garbage(finalizer)
    gc.collect()

    assert refused == ["refused"]
    assert other.cancel(entry)
