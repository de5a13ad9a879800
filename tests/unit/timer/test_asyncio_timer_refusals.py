"""Bad input, the wrong place, and the end of an AsyncioTimer: defined answers for all of them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from tests.support.hand_loop import HandLoop, Recorder

from tarry.timer.asyncio_timer import AsyncioTimer
from tarry.timer.entry import TimerShutDown

NAN = float("nan")


def in_a_thread(function: Callable[[], object]) -> BaseException | None:
    """What a call raises in another thread."""
    raised: list[BaseException | None] = [None]

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised[0] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0]


@pytest.mark.parametrize("delay", ["1", b"1", None, [1], object()])
def test_a_delay_or_time_that_is_no_number_is_refused(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, delay: Any
) -> None:
    def sleep() -> None:
        loop.run(timer.sleep(delay))

    for refused in (
        lambda: timer.call_later(delay, record, "a"),
        lambda: timer.call_at(delay, record, "a"),
        lambda: timer.call_every(delay, record, "a"),
        sleep,
    ):
        with pytest.raises(TypeError, match="a number of seconds"):
            refused()
    timer.call_later(1, record, "b")
    loop.run_until(2000)

    assert record.names() == ["b"]
    assert len(timer) == 0


def test_a_time_that_is_not_a_number_of_any_kind_is_refused(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    async def main() -> None:
        for awaitable in (timer.sleep(NAN), timer.wait_for(loop.create_future(), NAN)):
            with pytest.raises(ValueError, match="NaN"):
                await awaitable
        with pytest.raises(TimeoutError):
            async with timer.timeout(5) as deadline:
                with pytest.raises(ValueError, match="NaN"):
                    deadline.reschedule(NAN)
                assert deadline.when() == 1005
                await asyncio.sleep(10)

    for refused in (
        lambda: timer.call_later(NAN, record, "a"),
        lambda: timer.call_at(NAN, record, "a"),
    ):
        with pytest.raises(ValueError, match="NaN"):
            refused()
    loop.run(main())

    assert loop.now == 1005
    assert len(timer) == 0


@pytest.mark.parametrize("delay", [1, True, Decimal("1"), 1.0])
def test_any_kind_of_number_is_a_delay(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, delay: Any
) -> None:
    timer.call_later(delay, record, "a")
    loop.run_until(2000)

    assert record.calls == [(1001, "a")]


@pytest.mark.parametrize("period", [0, -1, 1e-12, float("inf"), 1e300, NAN])
def test_a_period_is_above_zero_and_finite(
    timer: AsyncioTimer, record: Recorder, period: float
) -> None:
    with pytest.raises(ValueError, match="at least a nanosecond, and finite"):
        timer.call_every(period, record, "a")

    assert len(timer) == 0


def test_a_timer_without_a_loop_says_where_to_make_it() -> None:
    with pytest.raises(RuntimeError, match="inside a coroutine"):
        AsyncioTimer()


def test_a_timer_made_inside_a_coroutine_takes_its_loop(loop: HandLoop) -> None:
    async def main() -> AsyncioTimer:
        return AsyncioTimer()

    timer = loop.run(main())

    assert timer.loop is loop


def test_a_foreign_thread_is_refused_while_the_loop_runs(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_later(5, record, "kept")
    raised: list[BaseException | None] = []

    async def main() -> None:
        timer.call_later(1, record, "own")
        for use in (
            lambda: timer.call_later(1, record, "foreign"),
            lambda: timer.call_at(1, record, "foreign"),
            lambda: timer.call_every(1, record, "foreign"),
            timer.close,
        ):
            raised.append(in_a_thread(use))

    loop.run(main())
    loop.run_until(2000)

    assert [type(error) for error in raised] == [RuntimeError] * 4
    assert all("call_soon_threadsafe" in str(error) for error in raised)
    assert record.names() == ["own", "kept"]


@pytest.mark.parametrize("has_thread", [True, False])
def test_a_thread_that_ran_the_loop_before_is_foreign_once_another_runs_it(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, has_thread: bool
) -> None:
    # asyncio's loops say which thread runs them, others as uvloop's need not.
    assert timer._rounds._has_thread
    timer._rounds._has_thread = has_thread
    timer.call_later(1, record, "own")
    loop.run_until(1002)
    is_running = threading.Event()
    may_end = threading.Event()

    async def stay() -> None:
        is_running.set()
        may_end.wait()

    thread = threading.Thread(target=loop.run, args=(stay(),))
    thread.start()
    is_running.wait()
    try:
        with pytest.raises(RuntimeError, match="call_soon_threadsafe"):
            timer.call_later(1, record, "foreign")
    finally:
        may_end.set()
        thread.join()
    timer.call_later(1, record, "own again")
    loop.run_until(2000)

    assert record.names() == ["own", "own again"]


def test_a_thread_may_prepare_a_loop_that_another_runs_later(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    refused = in_a_thread(lambda: timer.call_later(1, record, "a"))
    timer.call_later(2, record, "b")
    loop.run_until(2000)

    assert refused is None
    assert record.names() == ["a", "b"]


def test_another_loop_is_refused_lest_somebody_wait_for_ever(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    other = HandLoop()
    loop.run(timer.sleep(1))

    async def block() -> None:
        async with timer.timeout(1):
            """Nothing gets here."""

    async def call(add: Callable[..., object]) -> None:
        add(1, record, "foreign")

    for use in (
        timer.sleep(1),
        timer.sleep(0),
        block(),
        timer.wait_for(other.create_future(), 1),
        call(timer.call_later),
        call(timer.call_at),
        call(timer.call_every),
    ):
        with pytest.raises(RuntimeError, match="own"):
            other.run(use)
    other.close()

    assert len(timer) == 0


def test_what_another_loop_cancels_or_closes_while_ours_stands_is_gone(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    other = HandLoop()
    handle = timer.call_later(1, record, "cancelled")
    timer.call_later(1, record, "dropped")

    async def clean_up() -> int:
        handle.cancel()
        return timer.close()

    count = other.run(clean_up())
    other.close()
    loop.run_until(2000)

    assert count == 1
    assert record.calls == []


def test_close_drops_what_is_pending_and_says_how_many(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handles = [timer.call_later(delay, record, "a") for delay in (-1, 1, 100, float("inf"))]
    handles.append(timer.call_every(1, record, "beat"))
    timer.call_later(1, record, "cancelled").cancel()

    count = timer.close()
    again = timer.close()
    loop.run_until(2000)

    assert count == 5
    assert again == 0
    assert record.calls == []
    assert all(handle.cancelled() for handle in handles)
    assert len(timer) == 0
    assert loop.heap() == []


def test_close_runs_what_is_pending_in_order_if_told_so(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def fail() -> None:
        raise ValueError("wrong")

    for name, delay in (("c", 300), ("late", -1), ("a", 1), ("b", 20)):
        timer.call_later(delay, record, name)
    timer.call_later(2, fail)
    timer.call_later(3, lambda: timer.call_later(1, record, "too late"))
    timer.call_every(25, record, "beat")

    count = timer.close(run_pending=True)

    assert count == 7
    assert record.names() == ["late", "a", "b", "beat", "c"]
    assert [type(context["exception"]) for context in loop.errors] == [ValueError, TimerShutDown]
    assert len(timer) == 0


def test_what_one_cancels_while_the_timer_closes_does_not_run(
    timer: AsyncioTimer, record: Recorder
) -> None:
    def cancel_second() -> None:
        second.cancel()

    timer.call_later(1, record.then("first", cancel_second))
    second = timer.call_later(2, record, "second")

    count = timer.close(run_pending=True)

    assert count == 1
    assert record.names() == ["first"]


def test_a_call_may_close_the_timer_and_the_rest_of_its_round_is_dropped(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    counts: list[int] = []
    timer.call_at(1001, record.then("first", lambda: counts.append(timer.close())))
    timer.call_at(1001, record, "second")
    timer.call_at(1002, record, "third")
    loop.run_until(2000)

    assert counts == [2]
    assert record.names() == ["first"]
    assert loop.errors == []


def test_after_close_everything_that_adds_is_refused(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handle = timer.call_later(1, record, "a")
    timer.close()

    async def block(timeout: Any) -> None:
        async with timeout:
            """Nothing gets here."""

    async def main() -> None:
        for use in (
            timer.sleep(1),
            timer.sleep(0),
            block(timer.timeout(1)),
            block(timer.timeout(None)),
            timer.wait_for(loop.create_future(), 1),
        ):
            with pytest.raises(TimerShutDown, match="make a new one"):
                await use

    for refused in (
        lambda: timer.call_later(1, record, "a"),
        lambda: timer.call_at(1, record, "a"),
        lambda: timer.call_every(1, record, "a"),
    ):
        with pytest.raises(TimerShutDown, match="make a new one"):
            refused()
    loop.run(main())
    handle.cancel()

    assert len(timer) == 0


def test_who_sleeps_when_the_timer_closes_is_told(loop: HandLoop, timer: AsyncioTimer) -> None:
    async def main() -> None:
        sleeping = asyncio.ensure_future(timer.sleep(100))
        await asyncio.sleep(1)
        assert timer.close() == 1
        with pytest.raises(TimerShutDown, match="before the sleep was over"):
            await sleeping

    loop.run(main())

    assert loop.now == 1001


def test_a_block_whose_time_out_was_dropped_goes_on(loop: HandLoop, timer: AsyncioTimer) -> None:
    async def main() -> bool:
        async with timer.timeout(5) as deadline:
            assert timer.close() == 1
            await asyncio.sleep(10)
        return deadline.expired()

    expired = loop.run(main())

    assert not expired
    assert loop.now == 1010


def test_a_block_whose_deadline_had_passed_goes_on_if_the_timer_drops_it(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> bool:
        async with timer.timeout(0) as deadline:
            timer.close()
            await asyncio.sleep(10)
        return deadline.expired()

    expired = loop.run(main())

    assert not expired
    assert loop.now == 1010


def test_a_deadline_that_had_passed_comes_if_close_runs_what_is_pending(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> None:
        async with timer.timeout(0):
            timer.close(run_pending=True)
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == 1000


def test_sleeps_end_and_time_outs_come_when_close_runs_them(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> Any:
        sleeping = asyncio.ensure_future(timer.sleep(100, "slept"))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with timer.timeout(5):
                assert timer.close(run_pending=True) == 2
                await asyncio.sleep(10)
        return await sleeping

    result = loop.run(main())

    assert result == "slept"
    assert loop.now == 1000


def test_a_loop_that_is_closed_refuses_through_the_timer_too(record: Recorder) -> None:
    loop = HandLoop()
    timer = AsyncioTimer(loop)
    handle = timer.call_later(5, record, "a")
    loop.run(timer.sleep(1))
    sleeping = loop.create_task(timer.sleep(100))
    loop.turn()
    loop.close()

    for refused in (
        lambda: timer.call_later(1, record, "b"),
        lambda: timer.call_at(1001.5, record, "b"),
        lambda: timer.call_later(60, record, "b"),
    ):
        with pytest.raises(RuntimeError, match="loop is closed; make a timer on the new loop"):
            refused()
    with pytest.raises(RuntimeError, match="nothing can run"):
        timer.close(run_pending=True)
    pending = len(timer)
    handle.cancel()
    count = timer.close()

    assert pending == 2
    assert count == 1
    assert not sleeping.done()
    sleeping._log_destroy_pending = False
    sleeping.get_coro().close()


def test_a_loop_that_refuses_the_wake_up_leaves_the_timer_as_it_was(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    class Payload:
        """Something that can be seen to go."""

    payloads = [Payload(), Payload()]
    seen = [weakref.ref(payload) for payload in payloads]
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_at", refuse)
        for delay in (-1, 5):
            with pytest.raises(MemoryError):
                timer.call_later(delay, record, payloads.pop())
    gc.collect()
    kept = [payload() for payload in seen]
    refused = len(timer)
    timer.call_later(1, record, "a")
    loop.run_until(2000)

    assert kept == [None, None]
    assert refused == 0
    assert record.names() == ["a"]


def test_an_interrupt_while_the_timer_closes_goes_through_and_the_rest_is_dropped(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    timer.call_later(1, interrupt)
    rest = timer.call_later(2, record, "rest")
    with pytest.raises(KeyboardInterrupt):
        timer.close(run_pending=True)
    loop.run_until(2000)

    assert rest.cancelled()
    assert record.calls == []
    assert len(timer) == 0


def test_a_block_closes_its_timer(loop: HandLoop, record: Recorder) -> None:
    with AsyncioTimer(loop) as timer:
        timer.call_later(5, record, "a")
        open_inside = not timer.is_closed()
    loop.run_until(2000)

    assert open_inside
    assert timer.is_closed()
    assert record.calls == []


def test_a_beat_is_a_plain_function(timer: AsyncioTimer) -> None:
    async def beat() -> None:
        """A coroutine that nobody would await."""

    for callback in (beat, "no function"):
        with pytest.raises(TypeError, match="no plain function"):
            timer.call_every(1, callback)  # type: ignore[arg-type]

    assert len(timer) == 0


@pytest.mark.parametrize("not_callable", [None, 5, "print"])
def test_what_cannot_be_called_is_refused_when_it_is_asked_for(
    timer: AsyncioTimer, not_callable: Any
) -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        timer.call_later(1, not_callable)
    with pytest.raises(TypeError, match="cannot be called"):
        timer.call_at(1001, not_callable)

    assert len(timer) == 0


def test_a_number_is_no_event_loop() -> None:
    with pytest.raises(TypeError, match="tick_ms="):
        AsyncioTimer(10)  # type: ignore[arg-type]
