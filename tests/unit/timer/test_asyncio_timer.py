"""Calls on an AsyncioTimer: when they are made, in which order, in which context."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from itertools import pairwise

import pytest
from tests.support.hand_loop import HandLoop, Recorder

from tarry.timer.asyncio_timer import AsyncioTimer

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST", default="none")


def test_a_call_is_made_once_the_delay_is_over(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handle = timer.call_later(0.25, record, "a")
    loop.run_until(2000)

    assert handle.when() == 1000.25
    assert record.calls == [(1000.25, "a")]
    assert len(timer) == 0


def test_a_call_is_made_at_an_absolute_time(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handle = timer.call_at(1010, record, "a")
    loop.run_until(2000)

    assert handle.when() == 1010
    assert record.calls == [(1010, "a")]


@pytest.mark.parametrize("start", [0.0, 0.1, 1e-9, 1000.0009, 123456.789, 1.7e9 + 0.1234567])
def test_nothing_is_early_by_the_clock_and_nothing_later_than_a_tick(
    loop: HandLoop, record: Recorder, start: float
) -> None:
    loop.now = start
    timer = AsyncioTimer(loop)

    delays = [n * 0.0001 + 1e-7 for n in range(300)] + [0.1 + 0.2, 1 / 3, 1e-12]
    whens = {str(n): timer.call_later(delay, record, str(n)) for n, delay in enumerate(delays)}
    loop.run_until(start + 10)

    assert len(record.calls) == len(delays)
    for called, name in record.calls:
        assert 0 <= called - whens[name].when() < 0.001 + 1e-6


def test_a_loop_that_wakes_a_moment_early_does_not_run_what_is_due_then(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_at(1001.0, record, "a")
    loop.coarse = 0.01
    loop.now = 1000.995
    loop.turn(3)
    early = list(record.calls)
    loop.now = 1001.0
    loop.turn()

    assert early == []
    assert record.names() == ["a"]


def test_times_round_up_to_the_tick(loop: HandLoop, record: Recorder) -> None:
    timer = AsyncioTimer(loop, tick_ms=100)

    timer.call_later(0.101, record, "a")
    timer.call_later(0.2, record, "b")
    timer.call_later(0.201, record, "c")
    loop.run_until(2000)

    assert record.calls == [(1000.2, "a"), (1000.2, "b"), (1000.3, "c")]


def test_calls_of_one_tick_come_by_their_exact_times(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    for name, delay in (("c", 0.0009), ("a", 0.0002), ("d", 0.00095), ("b", 0.0004)):
        timer.call_later(delay, record, name)
    loop.run_until(2000)

    assert record.names() == ["a", "b", "c", "d"]


def test_ties_come_in_the_order_of_adding_even_from_other_levels(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def add_near() -> None:
        timer.call_at(1000.445, record, "from near")

    # The wheel's time has then come so near that the second goes to a lower level at once, while
    # the first falls there a moment later.
    timer.call_at(1000.445, record, "from far")
    timer.call_at(1000.399, add_near)
    loop.run_until(2000)

    assert record.names() == ["from far", "from near"]


def test_a_tick_that_does_not_fit_into_a_part_keeps_its_exact_order(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    called: list[float] = []
    # So near that nothing falls from a higher level: a part is a thousand calls.
    whens = [1000.001] * 995 + [1000.0019 - number / 10_000 for number in range(9)]
    for when in whens:
        timer.call_at(when, called.append, when)
    loop.now = 1002
    loop.turn(3)

    assert called == sorted(whens)


def test_what_is_due_already_is_called_in_the_next_turn_and_not_at_once(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    for name, delay in (("now", 0), ("past", -5), ("long past", float("-inf"))):
        timer.call_later(delay, record, name)
    at_once = list(record.calls)
    loop.turn()

    assert at_once == []
    assert record.names() == ["long past", "past", "now"]


def test_infinity_never_comes_and_counts_as_pending(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    for delay in (float("inf"), 1e300, 10**400):
        timer.call_later(delay, record, "never")
    timer.call_later(1, record, "soon")
    loop.run_until(1000 + 86_400 * 365 * 500)

    assert record.names() == ["soon"]
    assert len(timer) == 3


def test_a_cancelled_call_is_not_made_and_lets_go_of_everything(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    class Payload:
        """Something that can be seen to go."""

    payload = Payload()
    seen = weakref.ref(payload)
    handle = timer.call_later(1, record, payload)
    handle.cancel()
    handle.cancel()
    del payload
    gc.collect()
    loop.run_until(2000)

    assert handle.cancelled()
    assert seen() is None
    assert record.calls == []
    assert len(timer) == 0


def test_cancelling_after_the_call_changes_nothing_but_the_handle(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handle = timer.call_later(1, record, "a")
    timer.call_later(5, record, "b")
    loop.run_until(1002)
    ran_uncancelled = not handle.cancelled()
    handle.cancel()

    assert ran_uncancelled
    assert handle.cancelled()
    assert len(timer) == 1


def test_a_call_that_cancels_one_due_with_it_is_obeyed(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def cancel_second() -> None:
        second.cancel()

    timer.call_at(1001, record.then("first", cancel_second))
    second = timer.call_at(1001, record, "second")
    timer.call_at(1001, record, "third")
    loop.run_until(2000)

    assert record.names() == ["first", "third"]
    assert len(timer) == 0


def test_what_a_call_adds_waits_for_another_round_though_it_is_due(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    timer.call_at(1001, record.then("first", lambda: timer.call_at(500, record, "added")))
    timer.call_at(1001, record.then("second", lambda: loop.call_soon(record, "soon")))
    loop.now = 1001
    loop.turn()
    in_the_round = record.names()
    loop.turn()

    assert in_the_round == ["first", "second"]
    assert record.names() == ["first", "second", "soon", "added"]


def test_a_call_of_no_delay_within_itself_leaves_the_loop_its_turns(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def again() -> None:
        record("again")
        timer.call_later(0, again)

    timer.call_later(0, again)
    loop.turn(5)

    assert record.names() == ["again"] * 5


def test_a_context_is_the_one_of_the_call_that_added(loop: HandLoop, timer: AsyncioTimer) -> None:
    seen: list[str] = []
    own = contextvars.Context()
    own.run(REQUEST.set, "given")

    async def main() -> None:
        REQUEST.set("one")
        timer.call_later(1, lambda: seen.append(REQUEST.get()))
        REQUEST.set("two")
        timer.call_later(2, lambda: (seen.append(REQUEST.get()), REQUEST.set("changed")))
        timer.call_later(3, lambda: seen.append(REQUEST.get()))
        timer.call_later(4, lambda: seen.append(REQUEST.get()), context=own)
        await asyncio.sleep(5)
        seen.append(REQUEST.get())

    loop.run(main())

    assert seen == ["one", "two", "two", "given", "two"]


def test_an_error_reaches_the_handler_and_nothing_else_stops(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def fail() -> None:
        raise ValueError("wrong")

    def cancelled() -> None:
        raise asyncio.CancelledError

    failing = timer.call_later(1, fail)
    timer.call_later(1, record, "after")
    timer.call_later(1, cancelled)
    timer.call_later(2, record, "later")
    loop.run_until(2000)

    assert record.names() == ["after", "later"]
    assert [type(context["exception"]) for context in loop.errors] == [
        ValueError,
        asyncio.CancelledError,
    ]
    assert loop.errors[0]["handle"] is failing
    assert "fail" in loop.errors[0]["message"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_goes_through_and_the_rest_comes_when_the_loop_goes_on(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, kind: type[BaseException]
) -> None:
    def interrupt() -> None:
        raise kind

    timer.call_at(1001, record, "before")
    timer.call_at(1001, interrupt)
    timer.call_at(1001, record, "after")
    timer.call_at(1002, record, "later")
    with pytest.raises(kind):
        loop.run_until(2000)
    loop.run_until(2000)

    assert record.names() == ["before", "after", "later"]


def test_much_that_is_due_together_runs_in_parts_with_the_loops_turn_between(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    count = 25_000
    called: list[int] = []
    called_by_turn: list[int] = []
    for number in range(count):
        timer.call_at(1001 + number % 50 / 1000, called.append, number)

    def each_turn() -> None:
        called_by_turn.append(len(called))
        if len(called) < count:
            loop.call_soon(each_turn)
        else:
            loop.stop()

    loop.now = 1060
    loop.call_soon(each_turn)
    loop.run_forever()

    steps = [after - before for before, after in pairwise(called_by_turn)]
    assert max(steps) <= 1000
    assert called == sorted(range(count), key=lambda number: (number % 50, number))


def test_a_part_takes_no_more_than_a_part_from_the_wheel(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    for number in range(20_000):
        timer.call_at(1001 + number / 10_000, len, "")
    loop.now = 1060
    loop.turn()

    assert len(timer) >= 19_000
    assert len(timer._rounds._wheel) >= 18_900


def test_ten_thousand_of_one_tick_keep_their_order_and_run_in_parts(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    called: list[int] = []
    called_by_turn = [0]
    for number in range(10_000):
        timer.call_at(1001, called.append, number)
    loop.now = 1001
    while called_by_turn[-1] < 10_000:
        loop.turn()
        called_by_turn.append(len(called))

    assert max(after - before for before, after in pairwise(called_by_turn)) <= 1000
    assert called == list(range(10_000))


def test_a_tick_beyond_all_bounds_is_taken_in_lots_each_in_exact_order(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    called: list[float] = []
    whens = [1000.0019 - number / 100_000_000 for number in range(10_000)]
    for when in whens:
        timer.call_at(when, called.append, when)
    loop.now = 1000.002
    loop.turn()
    left_in_the_wheel = len(timer._rounds._wheel)
    loop.turn(30)

    # A part of a thousand moves, and 4096 more to come to the end of the tick.
    assert left_in_the_wheel == 10_000 - 1000 - 4096
    assert called[:5096] == sorted(whens[:5096])
    assert sorted(called) == sorted(whens)


def test_what_was_due_when_it_was_added_is_taken_in_parts_and_in_exact_order(
    loop: HandLoop, timer: AsyncioTimer
) -> None:
    called: list[float] = []
    whens = [900 - number / 100 for number in range(5000)]
    for when in whens:
        timer.call_at(when, called.append, when)
    timer.call_at(1000.5, called.append, 1000.5)
    loop.now = 1001
    loop.turn()
    left = len(timer._rounds._late)
    first = list(called)
    loop.turn(10)

    assert left == 4000
    assert first == sorted(whens)[:1000]
    assert called == [*sorted(whens), 1000.5]


def test_a_call_that_failed_lets_go_of_everything(loop: HandLoop, timer: AsyncioTimer) -> None:
    class Payload:
        """Something that can be seen to go."""

    def fail(payload: Payload) -> None:
        raise ValueError("wrong")

    payload = Payload()
    seen = weakref.ref(payload)
    handle = timer.call_later(1, fail, payload)
    del payload
    loop.run_until(2000)
    (failure,) = loop.errors
    message = failure["message"]
    loop.errors.clear()
    del failure
    gc.collect()

    assert seen() is None
    assert handle.get_context() is None
    assert "fail" in message


def test_a_handle_says_what_it_is(timer: AsyncioTimer, record: Recorder) -> None:
    handle = timer.call_later(1, len, "a")
    before = repr(handle)
    handle.cancel()

    assert before == "<TimerHandle when=1001.0 <built-in function len>>"
    assert "cancelled" in repr(handle)


def test_beats_keep_to_their_grid_and_do_not_drift(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handle = timer.call_every(1 / 60, record, "beat")
    loop.run_until(1010.0015)
    handle.cancel()
    loop.run_until(1020)

    assert len(record.calls) == 600
    for number, (called, _) in enumerate(record.calls):
        assert 0 <= called - (1000 + (number + 1) / 60) < 0.0011
    assert handle.missed_total == 0
    assert len(timer) == 0


def test_missed_beats_are_told_and_the_grid_stays(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    missed: list[int] = []
    handle = timer.call_every(1, record, "beat", on_missed=missed.append)
    loop.run_until(1001.5)
    loop.now = 1005.25
    loop.run_until(1007.5)

    assert [called for called, _ in record.calls] == [1001, 1005.25, 1006, 1007]
    assert missed == [3]
    assert handle.missed_total == 3
    assert handle.when() == 1008


def test_a_fixed_delay_counts_from_the_end_of_the_beat(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def slow() -> None:
        record("beat")
        loop.now += 0.4

    timer.call_every(1, slow, fixed_delay=True)
    loop.run_until(1004)

    assert [round(called, 3) for called, _ in record.calls] == [1001, 1002.4, 1003.8]


def test_an_error_in_a_beat_or_in_who_is_told_does_not_end_the_beats(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def fail(name: str) -> None:
        record(name)
        raise ValueError("wrong")

    def refuse(missed: int) -> None:
        raise LookupError(missed)

    handle = timer.call_every(1, fail, "beat", on_missed=refuse)
    loop.run_until(1001.5)
    loop.now = 1003.5
    loop.run_until(1004.5)

    assert record.names() == ["beat"] * 3
    assert [type(context["exception"]) for context in loop.errors] == [
        ValueError,
        LookupError,
        ValueError,
        ValueError,
    ]
    assert all(context["handle"] is handle for context in loop.errors)


def test_a_beat_that_cancels_itself_is_the_last(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def cancel_beats() -> None:
        handle.cancel()

    handle = timer.call_every(1, record.then("beat", cancel_beats))
    loop.run_until(1001.5)
    pending = len(timer)
    loop.run_until(1010)

    assert pending == 0
    assert handle.cancelled()
    assert record.names() == ["beat"]


def test_who_is_told_of_missed_beats_may_end_them(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    def enough(missed: int) -> None:
        handle.cancel()

    handle = timer.call_every(1, record, "beat", on_missed=enough)
    loop.run_until(1001.5)
    loop.now = 1003.5
    loop.run_until(1010)

    assert record.names() == ["beat"]
    assert loop.errors == []
    assert len(timer) == 0


def test_a_timer_of_a_loop_says_how_much_is_pending(loop: HandLoop) -> None:
    timer = AsyncioTimer(loop)
    timer.call_later(5, print)
    while_open = repr(timer)

    timer.close()

    assert while_open == "<AsyncioTimer, 1 pending>"
    assert repr(timer) == "<AsyncioTimer, closed>"
