"""A timer for an asyncio event loop, in asyncio's own words: any number of pending time-outs cost
the loop one entry.

`AsyncioTimer` has the names, signatures and units of `loop.call_later`, `asyncio.sleep`,
`asyncio.timeout` and their kin, so a program writes `timer.` in place of `loop.` or `asyncio.`.  It
stands on a hierarchical timing wheel: adding and cancelling cost the same however many entries are
pending, and a cancelled call is removed at once, while asyncio keeps it in its heap.  The price is
exactness: times round up to the tick (1 ms).  No call is early by `loop.time()`.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from contextvars import Context, copy_context
from inspect import iscoroutinefunction
from math import floor, inf
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeVar

from tarry.timer import asyncio_waits
from tarry.timer.asyncio_rounds import CANCELLED, ExpiryRounds, LoopEntry
from tarry.timer.asyncio_waiters import Timeout
from tarry.timer.entry import check_callable
from tarry.timer.periodic import PeriodicEntry

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")


# Hot: each time-out of a request makes one and cancels it.
class TimerHandle(LoopEntry):
    """Pending call, as `call_later` and `call_at` return it; like `asyncio.TimerHandle`."""

    __slots__ = ("_args", "_callback", "_context", "_rounds")

    def __init__(
        self,
        rounds: ExpiryRounds,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context,
    ) -> None:
        super().__init__()
        check_callable(callback)
        self._rounds = rounds
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context: Context | None = context

    def cancel(self) -> None:
        """Cancel the call, and drop callback, arguments and context.

        Another thread may call it, and a finalizer in the middle of any other call.
        """
        if self._state != CANCELLED:
            # The loop's thread looks at the callback last, so drop it first.
            self._let_go()
            self._rounds.cancel(self)

    def cancelled(self) -> bool:
        """Return True if `cancel` was called, or the timer was closed before the call was made."""
        return self._state == CANCELLED

    def when(self) -> float:
        """Return the time of the call in seconds, on the clock `loop.time()`."""
        return self._when

    def get_context(self) -> Context | None:
        """Return the context of the call; None once the call was made or cancelled."""
        return self._context

    def expire(self) -> None:
        # `cancel` may come between any two of these lines; it drops the callback first.
        args = self._args
        context = self._context
        callback = self._callback
        if callback is None or context is None:
            self._state = CANCELLED
            return
        try:
            context.run(callback, *args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._rounds.report(self, error)
        finally:
            self._let_go()

    def drop(self) -> None:
        self._let_go()

    def what(self) -> object:
        return self._callback

    def _let_go(self) -> None:
        self._callback = None
        self._args = ()
        self._context = None

    def __repr__(self) -> str:
        state = "cancelled " if self._state == CANCELLED else ""
        return f"<{type(self).__name__} {state}when={self._when} {self._callback!r}>"


class PeriodicHandle(TimerHandle):
    """Call that is made again and again; `when()` is the next one, `missed_total` counts misses."""

    __slots__ = ("_beats", "_on_missed")

    def __init__(
        self,
        rounds: ExpiryRounds,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context,
        beats: PeriodicEntry,
        on_missed: Callable[[int], object] | None,
    ) -> None:
        super().__init__(rounds, callback, args, context)
        self._beats = beats
        self._on_missed = on_missed

    @property
    def missed_total(self) -> int:
        """Number of beats that did not run because the loop was busy."""
        return self._beats.missed_total

    def expire(self) -> None:
        args = self._args
        context = self._context
        callback = self._callback
        if callback is None or context is None:
            self._state = CANCELLED
            return
        rounds = self._rounds
        missed = self._beats.begin_beat(_now_ns(rounds))
        try:
            if missed > 0:
                self._tell_missed(context, missed)
            # `on_missed` may have cancelled the beats.
            if self._callback is not None:
                context.run(callback, *args)
        finally:
            self._beats.end_beat(_now_ns(rounds))
            if self._callback is not None and not rounds.is_closed:
                rounds.add(self, self._beats.deadline_ms / 1e9)

    def _tell_missed(self, context: Context, missed: int) -> None:
        """Report missed beats; an error of `on_missed` does not stop the beat."""
        on_missed = self._on_missed
        if on_missed is None:
            return
        try:
            context.run(on_missed, missed)
        except Exception as error:
            self._rounds.report(self, error)


class AsyncioTimer:
    """Timer of one event loop, to be used in that loop's thread only.

    loop: the running one, if none is given; asyncio's or another with its interface, as uvloop's.
    tick_ms, wheel_size: the shape of the wheel; times round up to the tick.  Delays and times are
    in seconds on the clock `loop.time()`.  A call that is due already is made in the loop's next
    turn.  Infinity never comes, NaN is a ValueError and an object that is no number a TypeError.

    Due calls are made in order of their times, ties in the order of adding.  When many are due
    together they are made in parts of at most a thousand, between which the loop has its turn.
    An error in a call reaches the loop's exception handler, with the handle; the others go on.

    After `close` every call that adds raises TimerShutDown.  It raises RuntimeError in another
    thread while the loop runs, or if the loop is closed.  As a context manager the timer closes at
    the end.

    A handle may be cancelled in any thread.  Finalizers and signal handlers that run in the loop's
    thread may use the timer whatever it is doing, except `close`, which may raise RuntimeError.
    """

    __slots__ = ("_rounds",)

    def __init__(
        self, loop: AbstractEventLoop | None = None, tick_ms: int = 1, wheel_size: int = 20
    ) -> None:
        if loop is None:
            loop = _loop_here()
        elif not hasattr(loop, "call_at"):
            raise TypeError(f"{loop!r} is no event loop; a tick is given as tick_ms=")
        self._rounds = ExpiryRounds(loop, tick_ms, wheel_size)

    def __len__(self) -> int:
        """Return the number of pending calls, beats, sleepers and time-outs."""
        return self._rounds.count()

    def __enter__(self) -> AsyncioTimer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the timer; drop what is pending."""
        self._rounds.close(False)

    def __repr__(self) -> str:
        state = "closed" if self._rounds.is_closed else f"{self._rounds.count()} pending"
        return f"<{type(self).__name__}, {state}>"

    @property
    def loop(self) -> AbstractEventLoop:
        """Event loop that the timer belongs to."""
        return self._rounds.loop

    def is_closed(self) -> bool:
        """Return True if `close` was called."""
        return self._rounds.is_closed

    def call_later(
        self,
        delay: SupportsFloat,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> TimerHandle:
        """Call `callback(*args)` in `delay` seconds; like `loop.call_later`.

        It runs in `context`, or in a copy of the present one.
        """
        if context is None:
            context = copy_context()
        rounds = self._rounds
        handle = TimerHandle(rounds, callback, args, context)
        rounds.add(handle, rounds.loop.time() + _seconds(delay))
        return handle

    def call_at(
        self,
        when: SupportsFloat,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> TimerHandle:
        """Call `callback(*args)` when `loop.time()` has reached `when`; like `loop.call_at`."""
        if context is None:
            context = copy_context()
        handle = TimerHandle(self._rounds, callback, args, context)
        self._rounds.add(handle, _seconds(when))
        return handle

    def call_every(
        self,
        period: SupportsFloat,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
        fixed_delay: bool = False,
        on_missed: Callable[[int], object] | None = None,
    ) -> PeriodicHandle:
        """Call `callback(*args)` every `period` seconds, first a period from now, until cancelled.

        Beats keep to their grid and never drift.  If the loop was busy past one or more of them,
        one runs, after `on_missed(beats)` with the number of the others.  With `fixed_delay` the
        period counts from the end of the call before.  An error does not end the beats.  A period
        below a nanosecond or without end is a ValueError, a coroutine function a TypeError.
        """
        if not callable(callback) or iscoroutinefunction(callback):
            raise TypeError(
                f"{callback!r} is no plain function; one that starts a task may be called every "
                "period"
            )
        nanoseconds = _seconds(period) * 1e9
        if not 1.0 <= nanoseconds < inf:
            raise ValueError(
                f"a period of {period!r} seconds; it must be at least a nanosecond, and finite"
            )
        rounds = self._rounds
        # PeriodicEntry counts in the unit of its owner's clock: here nanoseconds, because a
        # sixtieth of a second is no whole number of milliseconds.
        period_ns = round(nanoseconds)
        beats = PeriodicEntry(_now_ns(rounds) + period_ns, period_ns, fixed_delay)
        context = copy_context() if context is None else context
        handle = PeriodicHandle(rounds, callback, args, context, beats, on_missed)
        rounds.add(handle, beats.deadline_ms / 1e9)
        return handle

    def sleep(self, delay: SupportsFloat, result: Any = None) -> Coroutine[Any, Any, Any]:
        """Wait for `delay` seconds and return `result`; like `asyncio.sleep`.

        Raises TimerShutDown if the timer is closed meanwhile.
        """
        return asyncio_waits.sleep(self._rounds, _seconds(delay), result)

    def timeout(self, delay: SupportsFloat | None) -> Timeout:
        """Return a time-out for `async with`: TimeoutError if the block takes longer than `delay`.

        Like `asyncio.timeout`: None is no time-out, `reschedule(when)`, `when()`, `expired()`.
        """
        when = None if delay is None else self._rounds.loop.time() + _seconds(delay)
        return Timeout(self._rounds, when)

    def timeout_at(self, when: SupportsFloat | None) -> Timeout:
        """Return a time-out at a time of the clock `loop.time()`; like `asyncio.timeout_at`."""
        return Timeout(self._rounds, None if when is None else _seconds(when))

    def wait_for(
        self, awaitable: Awaitable[T], timeout: SupportsFloat | None
    ) -> Coroutine[Any, Any, T]:
        """Wait for the result of `awaitable`, which is cancelled after `timeout` seconds.

        Like `asyncio.wait_for` of Python 3.12 and later: TimeoutError if it took longer, and then
        the awaitable has ended; None waits without end.
        """
        seconds = None if timeout is None else _seconds(timeout)
        return asyncio_waits.wait_for(self._rounds, awaitable, seconds)

    def close(self, run_pending: bool = False) -> int:
        """Run or drop everything that is pending, at once; return how many that were.

        Dropped calls are cancelled, dropped time-outs never come, and a sleeping task gets
        TimerShutDown.  With `run_pending` calls are made now, in order, each beat of a period once
        more, sleepers wake and time-outs come.  The loop itself stays as it is; if it is closed
        already, nothing can run and `run_pending` is refused.
        """
        return self._rounds.close(run_pending)


def _now_ns(rounds: ExpiryRounds) -> int:
    return floor(rounds.loop.time() * 1e9)


def _seconds(number: SupportsFloat) -> float:
    """Return a delay or a time as a float of seconds; infinity if it is too large for one."""
    if isinstance(number, float):
        return number
    # The isinstance check of a protocol takes 3 us, and almost every other number is an int.
    if not isinstance(number, int) and not isinstance(number, SupportsFloat):
        raise TypeError(f"a delay or time is a number of seconds, not {number!r}")
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf  # type: ignore[operator]


def _loop_here() -> AbstractEventLoop:
    loop = _get_running_loop()
    if loop is None:
        raise RuntimeError(
            "no event loop runs here; make the timer inside a coroutine, or give it its loop"
        )
    return loop
