"""Sleeps, time-outs and wait_for: everything twice, once as asyncio's own, once on the timer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from tests.support.hand_loop import HandLoop

from tarry.timer.asyncio_timer import AsyncioTimer


class AsyncioItself:
    """asyncio's own functions, under the names that the timer has."""

    sleep = staticmethod(asyncio.sleep)
    timeout = staticmethod(asyncio.timeout)
    timeout_at = staticmethod(asyncio.timeout_at)
    wait_for = staticmethod(asyncio.wait_for)


@pytest.fixture(params=["asyncio", "timer"])
def waits(request: pytest.FixtureRequest, timer: AsyncioTimer) -> Any:
    return timer if request.param == "timer" else AsyncioItself


def test_a_sleep_takes_its_time_and_returns_its_result(loop: HandLoop, waits: Any) -> None:
    result = loop.run(waits.sleep(2.5, "rested"))

    assert result == "rested"
    assert loop.now == 1002.5


@pytest.mark.parametrize("delay", [0, -1, float("-inf")])
def test_a_sleep_of_no_time_gives_the_others_one_turn(
    loop: HandLoop, waits: Any, delay: float
) -> None:
    seen: list[str] = []

    async def main() -> Any:
        loop.call_soon(seen.append, "another")
        result = await waits.sleep(delay, "back")
        seen.append(result)

    loop.run(main())

    assert seen == ["another", "back"]
    assert loop.now == 1000


def test_a_cancelled_sleep_leaves_nothing_pending(loop: HandLoop, timer: AsyncioTimer) -> None:
    async def main() -> int:
        tasks = [asyncio.ensure_future(timer.sleep(1 + n)) for n in range(1000)]
        await asyncio.sleep(0)
        before = len(timer)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return before

    before = loop.run(main())

    assert before == 1000
    assert len(timer) == 0


def test_a_sleep_for_ever_can_be_cancelled(loop: HandLoop, waits: Any) -> None:
    async def main() -> None:
        async with waits.timeout(5):
            await waits.sleep(float("inf"))

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == 1005


def test_a_sleep_whose_task_is_cancelled_in_the_turn_of_its_end_is_cancelled(
    loop: HandLoop, waits: Any
) -> None:
    async def main() -> None:
        await waits.sleep(1)

    task = loop.create_task(main())
    loop.turn()
    loop.call_at(1000.5, task.cancel)
    loop.now = 1002
    loop.turn(2)

    assert task.cancelled()
    assert loop.errors == []


def test_a_block_that_takes_too_long_ends_in_a_time_out(loop: HandLoop, waits: Any) -> None:
    async def main() -> Any:
        async with waits.timeout(2) as deadline:
            assert not deadline.expired()
            assert deadline.when() == 1002
            try:
                await asyncio.sleep(10)
            finally:
                assert deadline.expired()
        return deadline

    with pytest.raises(TimeoutError) as raised:
        loop.run(main())

    assert loop.now == 1002
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)


def test_a_block_that_ends_in_time_leaves_nothing(loop: HandLoop, timer: AsyncioTimer) -> None:
    async def main() -> tuple[bool, float | None]:
        async with timer.timeout(2) as deadline:
            await asyncio.sleep(1)
        return deadline.expired(), deadline.when()

    expired, when = loop.run(main())

    assert not expired
    assert when == 1002
    assert len(timer) == 0


def test_an_absolute_time_out_comes_at_its_time(loop: HandLoop, waits: Any) -> None:
    async def main() -> None:
        async with waits.timeout_at(1003):
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == 1003


@pytest.mark.parametrize("delay", [0, -1])
def test_a_deadline_that_has_passed_comes_at_the_first_wait(
    loop: HandLoop, waits: Any, delay: float
) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with waits.timeout(delay):
            seen.append("without waiting")
            await asyncio.sleep(0)
            seen.append("after waiting")

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert seen == ["without waiting"]


@pytest.mark.parametrize("delay", [None, float("inf")])
def test_no_deadline_never_comes(loop: HandLoop, waits: Any, delay: float | None) -> None:
    async def main() -> Any:
        async with waits.timeout(delay) as deadline:
            await asyncio.sleep(10_000)
        return deadline.expired()

    expired = loop.run(main())

    assert not expired


def test_the_inner_of_two_time_outs_is_told_from_the_outer(loop: HandLoop, waits: Any) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with waits.timeout(2) as outer:
            try:
                async with waits.timeout(1):
                    await asyncio.sleep(10)
            except TimeoutError:
                seen.append(f"inner, outer {outer.expired()}")
            try:
                async with waits.timeout(5) as inner:
                    await asyncio.sleep(10)
            except asyncio.CancelledError:
                seen.append(f"outer, inner {inner.expired()}")
                raise

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert seen == ["inner, outer False", "outer, inner False"]
    assert loop.now == 1002


def test_two_nested_time_outs_of_one_moment_both_come(loop: HandLoop, waits: Any) -> None:
    seen: list[str] = []

    async def main() -> None:
        try:
            async with waits.timeout_at(1001):
                try:
                    async with waits.timeout_at(1001):
                        await asyncio.sleep(10)
                except asyncio.CancelledError:
                    seen.append("inner cancelled")
                    raise
                except TimeoutError:
                    seen.append("inner timed out")
                    raise
        except TimeoutError:
            seen.append("outer timed out")

    loop.run(main())

    assert seen == ["inner cancelled", "outer timed out"]


def test_a_cancellation_by_somebody_else_stays_one(loop: HandLoop, waits: Any) -> None:
    async def main() -> None:
        async with waits.timeout(5):
            await asyncio.sleep(10)

    task = loop.create_task(main())
    loop.call_at(1001, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        loop.run(task)  # type: ignore[arg-type]

    assert task.cancelled()


def test_a_cancellation_that_meets_the_time_out_wins(loop: HandLoop, waits: Any) -> None:
    async def main() -> None:
        async with waits.timeout_at(1001):
            await asyncio.sleep(10)

    task = loop.create_task(main())
    loop.turn()
    loop.call_at(1001, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        loop.run(task)  # type: ignore[arg-type]

    assert task.cancelling() == 1


def test_a_task_that_was_cancelled_before_the_block_counts_from_there(
    loop: HandLoop, waits: Any
) -> None:
    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            try:
                async with waits.timeout(1):
                    await asyncio.sleep(10)
            except TimeoutError:
                return task.cancelling()
        return -1

    cancelling = loop.run(main())

    assert cancelling == 1


def test_after_a_time_out_the_task_counts_no_cancellation(loop: HandLoop, waits: Any) -> None:
    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None
        try:
            async with waits.timeout(1):
                await asyncio.sleep(10)
        except TimeoutError:
            pass
        return task.cancelling()

    cancelling = loop.run(main())

    assert cancelling == 0


def test_an_error_of_the_block_goes_through_though_the_time_is_over(
    loop: HandLoop, waits: Any
) -> None:
    async def main() -> None:
        async with waits.timeout(1):
            try:
                await asyncio.sleep(10)
            finally:
                raise LookupError("own")

    with pytest.raises(LookupError):
        loop.run(main())


def test_a_block_that_swallows_the_cancellation_ends_well(loop: HandLoop, waits: Any) -> None:
    async def main() -> tuple[bool, int]:
        task = asyncio.current_task()
        assert task is not None
        async with waits.timeout(1) as deadline:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
        return deadline.expired(), task.cancelling()

    expired, cancelling = loop.run(main())

    assert expired
    assert cancelling == 0


@pytest.mark.parametrize(
    ("moves", "end"),
    [([1005.0], 1005.0), ([1005.0, 1002.0], 1002.0), ([None, 1003.0], 1003.0), ([999.0], 1000.0)],
)
def test_a_deadline_can_be_moved_from_inside(
    loop: HandLoop, waits: Any, moves: list[float | None], end: float
) -> None:
    async def main() -> None:
        async with waits.timeout(1) as deadline:
            for when in moves:
                deadline.reschedule(when)
                assert deadline.when() == when
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == end


def test_a_deadline_that_has_passed_can_still_be_moved_before_the_first_wait(
    loop: HandLoop, waits: Any
) -> None:
    async def main() -> None:
        async with waits.timeout(-1) as deadline:
            deadline.reschedule(1005)
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == 1005


def test_a_deadline_that_was_taken_away_does_not_come(loop: HandLoop, waits: Any) -> None:
    async def main() -> Any:
        async with waits.timeout(-1) as deadline:
            deadline.reschedule(1001)
            deadline.reschedule(None)
            await asyncio.sleep(10)
        return deadline.when()

    when = loop.run(main())

    assert when is None


def test_a_deadline_moved_in_the_round_in_which_it_is_due_has_moved(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> None:
        async with timer.timeout_at(1001) as deadline:
            # Added after the time-out, but due before it and in the same tick.
            timer.call_at(1000.9999, deadline.reschedule, 1004)
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert loop.now == 1004
    assert len(timer) == 0


def test_a_deadline_is_not_moved_before_or_after_the_block(loop: HandLoop, waits: Any) -> None:
    async def main() -> None:
        deadline = waits.timeout(1)
        with pytest.raises(RuntimeError, match="not been entered"):
            deadline.reschedule(1002)
        async with deadline:
            pass
        with pytest.raises(RuntimeError, match="finished"):
            deadline.reschedule(1002)
        with pytest.raises(RuntimeError, match=r"already been entered|entered already"):
            await deadline.__aenter__()

    loop.run(main())


def test_a_time_out_says_in_which_state_it_is(loop: HandLoop, timer: AsyncioTimer) -> None:
    seen: list[str] = []

    async def main() -> None:
        deadline = timer.timeout(1)
        seen.append(repr(deadline))
        try:
            async with deadline:
                seen.append(repr(deadline))
                await asyncio.sleep(10)
        except TimeoutError:
            seen.append(repr(deadline))

    loop.run(main())

    assert seen == ["<Timeout [created]>", "<Timeout [active] when=1001.0>", "<Timeout [expired]>"]


def test_a_time_out_outside_a_task_is_refused(loop: HandLoop, timer: AsyncioTimer) -> None:
    async def use() -> None:
        async with timer.timeout(1):
            """Nothing gets here."""

    def step() -> None:
        coroutine = use()
        with pytest.raises(RuntimeError, match="inside a task"):
            coroutine.send(None)

    loop.call_soon(step)
    loop.turn()

    assert loop.errors == []
    assert len(timer) == 0


def test_an_error_hides_the_time_out_but_its_chain_shows_it(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> None:
        async with timer.timeout(1):
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                raise LookupError("cleaning up failed")  # noqa: B904, the context is the point

    with pytest.raises(LookupError) as raised:
        loop.run(main())

    assert isinstance(raised.value.__context__, TimeoutError)
    assert isinstance(raised.value.__context__.__cause__, asyncio.CancelledError)


def test_wait_for_returns_what_comes_in_time(loop: HandLoop, waits: Any) -> None:
    async def work() -> str:
        await asyncio.sleep(1)
        return "done"

    async def main() -> Any:
        return [await waits.wait_for(work(), 2), await waits.wait_for(work(), None)]

    results = loop.run(main())

    assert results == ["done", "done"]
    assert loop.now == 1002


def test_wait_for_cancels_what_takes_too_long_and_waits_for_its_end(
    loop: HandLoop, waits: Any
) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.5)
            seen.append("cleaned up")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await waits.wait_for(work(), 2)

    loop.run(main())

    assert seen == ["cleaned up"]
    assert loop.now == 1002.5


def test_wait_for_no_time_takes_only_what_is_there(loop: HandLoop, waits: Any) -> None:
    started: list[str] = []

    async def work() -> None:
        started.append("work")

    async def main() -> Any:
        ready = loop.create_future()
        ready.set_result("ready")
        with pytest.raises(TimeoutError):
            await waits.wait_for(work(), 0)
        return await waits.wait_for(ready, 0)

    result = loop.run(main())

    assert result == "ready"
    assert started == []


def test_wait_for_no_time_tells_a_cancellation_before_from_a_time_out(
    loop: HandLoop, waits: Any
) -> None:
    async def main() -> None:
        future = loop.create_future()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits.wait_for(future, 0)

    loop.run(main())


def test_wait_for_passes_on_errors_and_cancellations(loop: HandLoop, waits: Any) -> None:
    async def fail() -> None:
        raise LookupError("own")

    async def main() -> None:
        with pytest.raises(LookupError):
            await waits.wait_for(fail(), 5)
        future = loop.create_future()
        loop.call_later(1, future.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waits.wait_for(future, 5)

    loop.run(main())


def test_a_task_group_in_a_time_out_is_cancelled_with_it(loop: HandLoop, waits: Any) -> None:
    ended: list[float] = []

    async def work() -> None:
        try:
            await waits.sleep(10)
        finally:
            ended.append(loop.now)

    async def main() -> None:
        async with waits.timeout(2), asyncio.TaskGroup() as group:
            group.create_task(work())
            group.create_task(work())

    with pytest.raises(TimeoutError):
        loop.run(main())

    assert ended == [1002, 1002]


def test_twenty_thousand_waits_come_and_go(loop: HandLoop, timer: AsyncioTimer) -> None:
    outcomes = {"in time": 0, "too late": 0}

    async def one(number: int) -> None:
        try:
            async with timer.timeout(0.5):
                await timer.sleep(number % 100 / 100 + 0.005)
            outcomes["in time"] += 1
        except TimeoutError:
            outcomes["too late"] += 1

    async def main() -> None:
        await asyncio.gather(*[one(number) for number in range(20_000)])

    loop.run(main())

    assert outcomes == {"in time": 10_000, "too late": 10_000}
    assert len(timer) == 0
