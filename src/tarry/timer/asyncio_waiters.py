"""Waiters of tasks on an AsyncioTimer: the end of a sleep, and the deadline of a block.

A time-out behaves as `asyncio.timeout` does (as of Python 3.13 where versions differ).  It cancels
its own task, and the end of the block turns that cancellation, and only that, into TimeoutError;
any other cancellation passes through.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from typing import TYPE_CHECKING, Any, Final

from tarry.timer.asyncio_rounds import WAITING, LoopEntry
from tarry.timer.entry import TimerShutDown

if TYPE_CHECKING:
    from asyncio import Future, Handle, Task
    from types import TracebackType

    from tarry.timer.asyncio_rounds import ExpiryRounds

# States of a time-out, in asyncio's words.
CREATED: Final = "created"
ACTIVE: Final = "active"
EXPIRING: Final = "expiring"
EXPIRED: Final = "expired"
FINISHED: Final = "finished"


class Sleeper(LoopEntry):
    """Entry that wakes the task which waits for `future`."""

    __slots__ = ("_result", "future")

    def __init__(self, rounds: ExpiryRounds, delay: float, result: object) -> None:
        super().__init__()
        loop = rounds.loop
        self.future: Future[Any] = loop.create_future()
        self._result = result
        rounds.add(self, loop.time() + delay)

    def expire(self) -> None:
        if not self.future.done():
            self.future.set_result(self._result)

    def drop(self) -> None:
        if not self.future.done():
            self.future.set_exception(
                TimerShutDown("the timer was closed before the sleep was over")
            )


class Timeout(LoopEntry):
    """Asynchronous context manager that cancels its task when the block takes too long."""

    __slots__ = ("_block_until", "_cancelling", "_phase", "_rounds", "_soon", "_task")

    def __init__(self, rounds: ExpiryRounds, when: float | None) -> None:
        super().__init__()
        self._rounds = rounds
        self._block_until = when
        self._phase = CREATED
        self._task: Task[Any] | None = None
        self._cancelling = 0
        self._soon: Handle | None = None

    def when(self) -> float | None:
        """Return the deadline in seconds on the loop's clock, or None if there is none."""
        return self._block_until

    def expired(self) -> bool:
        """Return True if the deadline came while the block ran."""
        return self._phase == EXPIRING or self._phase == EXPIRED  # noqa: PLR1714, it is compiled

    def reschedule(self, when: float | None) -> None:
        """Move the deadline of the running block; None removes it."""
        if self._phase == CREATED:
            raise RuntimeError("the time-out has not been entered; reschedule() belongs inside")
        if self._phase != ACTIVE:
            raise RuntimeError(f"the time-out is {self._phase}; its deadline cannot be moved")
        self._arm(when)

    async def __aenter__(self) -> Timeout:
        self._enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave(error)

    def _enter(self) -> None:
        if self._phase != CREATED:
            raise RuntimeError("the time-out has been entered already; make one for each block")
        # There is no current task in another loop than the timer's, or outside any loop.
        rounds = self._rounds
        task = current_task(rounds.loop)
        if task is None:
            raise RuntimeError("a time-out is used inside a task, and of the timer's own loop")
        self._task = task
        self._cancelling = task.cancelling()
        when = self._block_until
        if when is None:
            rounds.check_use()
        else:
            self._arm(when)
        self._phase = ACTIVE

    def _leave(self, error: BaseException | None) -> None:
        assert self._task is not None, "the block has been entered"
        self._disarm()
        task = self._task
        self._task = None
        if self._phase != EXPIRING:
            self._phase = FINISHED
            return
        self._phase = EXPIRED
        if task.uncancel() > self._cancelling or error is None:
            return  # another cancellation came too, or the block ended all the same
        if isinstance(error, CancelledError):
            raise _timeout_by(error)
        _mark_cause(error)
        if isinstance(error, ExceptionGroup):
            for part in error.exceptions:
                _mark_cause(part)

    def expire(self) -> None:
        """Expire the block at its deadline: cancel its task."""
        assert self._phase == ACTIVE
        assert self._task is not None
        self._soon = None
        self._task.cancel()
        self._phase = EXPIRING

    def _expire_soon(self) -> None:
        """Expire the block for a deadline that had passed when it was set; do nothing if a close
        has dropped it.
        """
        if not self._rounds.has_dropped:
            self.expire()

    def _arm(self, when: float | None) -> None:
        """Set the deadline of the task's block.

        A deadline that has passed already goes by `call_soon`, as asyncio's does, and so reaches
        the task before its next step; by the wheel it would come after that.
        """
        rounds = self._rounds
        if when is None or when <= rounds.loop.time():
            rounds.check_use()
            self._disarm()
            if when is not None:
                self._soon = rounds.loop.call_soon(self._expire_soon)
        elif self._state == WAITING:
            rounds.move(self, when)
        else:
            rounds.add(self, when)
            self._forget_soon()
        self._block_until = when

    def _disarm(self) -> None:
        if self._state == WAITING:
            self._rounds.cancel(self)
        self._forget_soon()

    def _forget_soon(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def __repr__(self) -> str:
        when = f" when={self._block_until}" if self._phase == ACTIVE else ""
        return f"<{type(self).__name__} [{self._phase}]{when}>"


def _timeout_by(cancelled: CancelledError) -> TimeoutError:
    # `raise ... from ...` does not work: the compiled form drops the cause.
    timeout = TimeoutError()
    timeout.__cause__ = timeout.__context__ = cancelled
    return timeout


def _mark_cause(error: BaseException) -> None:
    """Replace a cancellation in the chain of contexts by the time-out that caused it."""
    while error.__context__ is not None:
        context = error.__context__
        if isinstance(context, CancelledError):
            error.__context__ = _timeout_by(context)
            return
        error = context
