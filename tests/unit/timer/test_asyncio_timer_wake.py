"""What an AsyncioTimer costs its loop: one handle in the loop's own heap, whatever is pending."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from tests.support.hand_loop import HandLoop, Recorder

from tarry.timer.asyncio_timer import AsyncioTimer
from tarry.timer.asyncio_wake import ceil_ms, floor_ms


def test_many_thousands_pending_are_one_entry_in_the_loops_heap(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    chance = random.Random(5)
    for _ in range(50_000):
        timer.call_later(chance.uniform(0.001, 600), len, "")
    before_a_turn = [len(loop.live()), len(loop.heap())]
    loop.turn()

    assert before_a_turn[0] == 1
    assert before_a_turn[1] <= 6
    assert len(loop.live()) == 1
    assert len(loop.heap()) <= 6
    assert len(timer) == 50_000


def test_the_one_handle_comes_no_later_than_the_first_deadline(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    chance = random.Random(6)
    handles = [timer.call_later(chance.uniform(1, 600), len, "") for _ in range(1000)]
    (wake,) = loop.live()

    assert wake.when() < min(handle.when() for handle in handles) + 0.001


def test_there_is_one_live_handle_in_every_turn_of_a_busy_loop(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    chance = random.Random(7)
    live: list[int] = []

    async def request() -> None:
        try:
            async with timer.timeout(chance.uniform(0.001, 3)):
                await timer.sleep(chance.uniform(0.001, 3))
        except TimeoutError:
            pass

    async def main() -> None:
        tasks = [asyncio.ensure_future(request()) for _ in range(500)]
        while not all(task.done() for task in tasks):
            if len(timer) > 0:
                live.append(len(loop.live()))
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                loop.now += chance.uniform(0, 0.1)

    loop.run(main())

    assert len(live) > 30
    assert set(live) == {1}


def test_deadlines_that_come_ever_nearer_leave_few_cancelled_handles(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    others = [loop.call_at(5000, len, "") for _ in range(1000)]
    most = 0
    for number in range(5000):
        timer.call_at(4000 - number / 2, len, "")
        loop.turn()
        most = max(most, len(loop.heap()) - len(others))

    assert len(timer) == 5000
    assert most <= 10


def test_short_waits_below_long_ones_leave_few_cancelled_handles(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    others = [loop.call_at(50_000, len, "") for _ in range(1000)]
    timer.call_at(40_000, len, "")
    most = 0

    async def main() -> None:
        nonlocal most
        for number in range(3000):
            await timer.sleep(0.001 + number % 40 / 1000)
            most = max(most, len(loop.heap()) - len(others))

    loop.run(main())

    assert most <= 40


def test_short_waits_below_long_ones_wake_the_loop_seldom_in_vain(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    timer.call_at(40_000, len, "")

    async def main() -> None:
        for _ in range(1000):
            await timer.sleep(0.05)

    before = loop.turns
    loop.run(main())

    # Two for each sleep are its wake-up and its task's next step.
    assert loop.turns - before < 5 * 1000


def test_adding_and_cancelling_again_and_again_touches_the_heap_once(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    for _ in range(1000):
        timer.call_later(30, len, "").cancel()
        loop.turn()
        loop.now += 0.001

    assert len(loop.heap()) == 1
    assert len(timer) == 0


def test_a_wake_up_whose_entry_was_cancelled_runs_nothing_and_sets_no_other(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_later(1, record, "a").cancel()
    loop.now = 1002
    loop.turn()

    assert record.calls == []
    assert loop.heap() == []


def test_a_single_far_deadline_wakes_the_loop_once(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_later(500, record, "a")
    before = loop.turns
    loop.run_until(1500.5)

    assert record.names() == ["a"]
    assert loop.turns - before <= 3


def test_the_loops_heap_does_not_keep_the_context_of_who_added_first(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    async def main() -> None:
        timer.call_later(1, len, "")

    loop.run(main())
    (wake,) = loop.live()

    assert list(wake._context) == []


def test_what_is_added_late_does_not_put_off_a_wake_up_that_is_due(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_at(1001, record, "due")
    loop.now = 1001
    loop.call_soon(timer.call_later, -5, record, "late")
    loop.turn()

    assert "due" in record.names()


@pytest.mark.parametrize("number", [0, 1, 7, 290, 1001, 1_000_001, 123_456_789, 1 << 44])
def test_seconds_become_milliseconds_exactly(number: int) -> None:
    for time_ms in (*range(number, number + 300), *range(-number - 300, -number)):
        time = time_ms / 1000
        just_before = math.nextafter(time, -math.inf)
        just_after = math.nextafter(time, math.inf)

        assert floor_ms(time) == ceil_ms(time) == time_ms
        assert (floor_ms(just_before), ceil_ms(just_before)) == (time_ms - 1, time_ms)
        assert (floor_ms(just_after), ceil_ms(just_after)) == (time_ms, time_ms + 1)


@pytest.mark.parametrize("tick_ms", [1, 7, 1000])
def test_a_wake_up_finds_something_to_do_whatever_the_tick(
    loop: HandLoop, record: Recorder, tick_ms: int
) -> None:
    timer = AsyncioTimer(loop, tick_ms=tick_ms, wheel_size=4)
    timer.call_later(0.0031, record, "a")
    before = loop.turns
    loop.run_until(1010)

    assert record.names() == ["a"]
    assert loop.turns - before <= 2
