"""What waits on an AsyncioTimer: sleeps, time-outs as blocks, and `wait_for`.

They behave as `asyncio.sleep`, `asyncio.timeout` (of Python 3.13 where versions differ) and
`asyncio.wait_for` do.  Of a time-out: it cancels its own task, and the block's end turns that
cancellation, and only that, into TimeoutError; a cancellation by anybody else goes through.

Interpreted in either form: coroutines and context managers gain nothing by being compiled.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tarry.timer.asyncio_rounds import LoopEntry
from tarry.timer.entry import TimerShutDown

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType

    from tarry.timer.asyncio_rounds import ExpiryRounds

T = TypeVar("T")

# States of a time-out, in asyncio's words.
CREATED: Final = "created"
ACTIVE: Final = "active"
EXPIRING: Final = "expiring"
EXPIRED: Final = "expired"
FINISHED: Final = "finished"


class Sleeper(LoopEntry):
    """Wakes whoever waits for a future."""

    __slots__ = ("_future", "_result")

    def __init__(self, future: asyncio.Future[Any], result: object) -> None:
        super().__init__()
        self._future = future
        self._result = result

    def expire(self) -> None:
        if not self._future.done():
            self._future.set_result(self._result)

    def drop(self) -> None:
        if not self._future.done():
            self._future.set_exception(
                TimerShutDown("the timer was closed before the sleep was over")
            )


class Timeout(LoopEntry):
    """An asynchronous context manager that cancels its task when the block takes too long."""

    __slots__ = ("_block_until", "_cancelling", "_phase", "_soon", "_task", "_timer")

    def __init__(self, timer: ExpiryRounds, when: float | None) -> None:
        super().__init__()
        self._timer = timer
        self._block_until = when
        self._phase = CREATED
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._soon: asyncio.Handle | None = None

    def when(self) -> float | None:
        """The deadline in seconds on the loop's clock; None: there is none."""
        return self._block_until

    def expired(self) -> bool:
        """Whether the deadline came while the block ran."""
        return self._phase in (EXPIRING, EXPIRED)

    def reschedule(self, when: float | None) -> None:
        """Move the deadline of the running block; None takes it away."""
        if self._phase == CREATED:
            raise RuntimeError("the time-out has not been entered; reschedule() belongs inside")
        if self._phase != ACTIVE:
            raise RuntimeError(f"the time-out is {self._phase}; its deadline cannot be moved")
        self._arm(when)

    async def __aenter__(self) -> Timeout:
        if self._phase != CREATED:
            raise RuntimeError("the time-out has been entered already; make one for each block")
        # Nothing is running in a loop that is not the timer's, or outside any.
        task = asyncio.current_task(self._timer.loop)
        if task is None:
            raise RuntimeError("a time-out is used inside a task, and of the timer's own loop")
        self._timer.check_use()
        self._task = task
        self._cancelling = task.cancelling()
        self._arm(self._block_until)
        self._phase = ACTIVE
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._disarm()
        if self._phase != EXPIRING:
            self._phase = FINISHED
            return
        self._phase = EXPIRED
        assert self._task is not None
        if self._task.uncancel() > self._cancelling or error is None:
            return  # somebody else cancelled as well, or the block ended all the same
        if isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error
        _mark_cause(error)
        if isinstance(error, ExceptionGroup):
            for part in error.exceptions:
                _mark_cause(part)

    def expire(self) -> None:
        """The deadline has come."""
        assert self._phase == ACTIVE
        assert self._task is not None
        self._soon = None
        self._task.cancel()
        self._phase = EXPIRING

    def _arm(self, when: float | None) -> None:
        """Set the deadline of the task's block.

        One that has passed already goes by `call_soon`, as asyncio's does, and so meets the task
        before its next step; the wheel's would come after that.
        """
        timer = self._timer
        if when is None or when <= timer.loop.time():
            self._disarm()
            if when is not None:
                self._soon = timer.loop.call_soon(self.expire)
        elif self.is_waiting():
            timer.move(self, when)
        else:
            timer.add(self, when)
            self._forget_soon()
        self._block_until = when

    def _disarm(self) -> None:
        self._timer.cancel(self)
        self._forget_soon()

    def _forget_soon(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def __repr__(self) -> str:
        when = f" when={self._block_until}" if self._phase == ACTIVE else ""
        return f"<{type(self).__name__} [{self._phase}]{when}>"


async def sleep(timer: ExpiryRounds, delay: float, result: Any) -> Any:
    """`asyncio.sleep` on this timer."""
    loop = timer.loop
    if asyncio.get_running_loop() is not loop:
        raise RuntimeError("the timer belongs to another event loop; each loop needs its own timer")
    timer.check_use()
    if delay <= 0:
        return await asyncio.sleep(0, result)
    future = loop.create_future()
    sleeper = Sleeper(future, result)
    timer.add(sleeper, loop.time() + delay)
    try:
        return await future
    finally:
        timer.cancel(sleeper)


async def wait_for(timer: ExpiryRounds, awaitable: Awaitable[T], delay: float | None) -> T:
    """`asyncio.wait_for` on this timer."""
    if delay is not None and delay <= 0:
        return await _result_now(asyncio.ensure_future(awaitable))
    when = None if delay is None else timer.loop.time() + delay
    async with Timeout(timer, when):
        return await awaitable


async def _result_now(future: asyncio.Future[T]) -> T:
    """The result if it is there without any waiting; else the work is cancelled and awaited."""
    if not future.done():
        future.cancel()
        await asyncio.wait([future])
    try:
        return future.result()
    except asyncio.CancelledError as error:
        raise TimeoutError from error


def _mark_cause(error: BaseException) -> None:
    """Show in the chain of contexts that a cancellation there came from a time-out."""
    while error.__context__ is not None:
        context = error.__context__
        if isinstance(context, asyncio.CancelledError):
            timeout = TimeoutError()
            timeout.__cause__ = timeout.__context__ = context
            error.__context__ = timeout
            return
        error = context
