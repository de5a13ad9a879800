"""LoopDriver: turns a core in one asyncio event loop.  It needs no thread and no task.

The loop watches the sockets and has one timer for what the core does next; each event is one turn.
A call that waits has a future, which the core's notice resolves.  A call also turns the core
itself, so that its request leaves at once.  The next call then first lets the loop run, so that no
task keeps the others from running.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from asyncio import _get_running_loop
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any

from tarry.client.aio.blocked import BlockedLoop
from tarry.client.aio.streams import LoopStreams
from tarry.client.core.arguments import timeout_ms_of
from tarry.client.core.operation import Answer, Callback, Done, Notice, Operation
from tarry.client.core.reminder import warn
from tarry.client.errors import ClientClosed, ConcurrentUse
from tarry.client.face import forks
from tarry.client.face.driver import Begin, Core, FaceDriver
from tarry.client.settings import ClientSettings

# Function that calls the user back; the operation raises what it raises.
CallBack = Callable[[Callback], Awaitable[None]]


class LoopDriver(FaceDriver[Core]):
    """The loop, the sockets, the timer and the turns of one core.  It belongs to the loop in which
    it is first used."""

    prefix = "aio."

    def __init__(
        self,
        settings: ClientSettings,
        make_core: Callable[[LoopDriver[Core]], Core],
        session_timeout_ms: int = 0,
    ) -> None:
        """Make a driver; with a session time-out it warns if the loop was blocked for too long."""
        super().__init__(settings, make_core)
        # True if a call has turned the core, so that the next call lets the loop run first.
        self.owes_way = False
        # True if the loop will turn the core after the events that are ready in it.
        self.is_turn_wanted = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams: LoopStreams | None = None
        # Operations of calls under way, as an ordered set.
        self._under_way: dict[Operation[Any], None] = {}
        self._waiting: dict[Operation[Any], asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._is_abandoned = False
        # True once a call has begun to end the client; and the futures of calls that wait for the
        # end.
        self._is_ending = False
        self._enders: list[asyncio.Future[None]] = []
        # Empty context of the loop's calls, instead of a copy of the one that is current by chance.
        self._context = Context()
        self._blocked = BlockedLoop(session_timeout_ms)
        self.core.reminder.tell = self._warn_soon
        forks.watch(self)

    def open_streams(self, loop: asyncio.AbstractEventLoop) -> LoopStreams:
        return LoopStreams(self.settings, loop, self.turn_in_loop)

    # --- Refusals

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Event loop that the client belongs to; None before its first use."""
        return self._loop

    @property
    def is_stranded(self) -> bool:
        """True if the loop was closed before the client was."""
        return self._loop is not None and self._loop.is_closed()

    def check_here(self) -> None:
        """Raise an error if the client was closed, copied by a fork, or belongs to another loop."""
        super().check_usable()
        loop, running = self._loop, _get_running_loop()
        if loop is running or loop is None:
            return
        # Between two runs of its loop no other code can be inside the client.
        if self.is_stranded or running is not None or loop.is_running():
            self._refuse()

    def _refuse(self) -> None:
        if self.is_stranded:
            raise ConcurrentUse(
                "the event loop that this client was used in is closed; make a new client in the "
                "loop that runs now"
            )
        raise ConcurrentUse(
            "a client of asyncio belongs to the event loop in which it was first used, and this "
            "is another loop or thread; make a client in each loop"
        )

    def check_usable(self) -> None:
        """Raise an error as `check_here` does; bind the client to the running loop at its first
        use."""
        loop = self._loop
        if loop is not None and _get_running_loop() is loop and not self.is_closed:
            return
        self.check_here()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._streams = self.open_streams(self._loop)

    # --- Operations

    async def perform(
        self,
        begin: Begin[Answer],
        timeout: float | None,
        default_ms: int,
        call_back: CallBack | None = None,
    ) -> Answer:
        """Begin an operation and take its steps to the end; return the answer, or raise the error.
        `timeout` is in seconds; without one it is `default_ms`."""
        timeout_ms = timeout_ms_of(timeout, default_ms)
        self.check_usable()
        if self.owes_way:
            await self.give_way()
        operation = begin(timeout_ms, self.now_ms())
        self._under_way[operation] = None
        try:
            while True:
                step = operation.step(self.now_ms())
                if isinstance(step, Done):
                    return step.answer
                error: Exception | None = None
                if isinstance(step, Callback):
                    assert call_back is not None
                    error = await _raised_by(call_back, step)
                else:
                    await self._wait(operation)
                self.check_parent()
                if operation not in self._under_way:
                    raise ClientClosed("the client was closed")
                if isinstance(step, Callback):
                    operation.end_callback(self.now_ms(), error)
        finally:
            self.end(operation)

    async def _wait(self, operation: Operation[Any]) -> None:
        """Let the loop run until the core gives notice of the operation."""
        self.turn()
        if operation.is_ready or self.is_closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting[operation] = future
        try:
            await future
        finally:
            del self._waiting[operation]

    def end(self, operation: Operation[Any]) -> None:
        """End an operation; the call that performs it raises ClientClosed."""
        if operation not in self._under_way:
            return
        del self._under_way[operation]
        operation.end(self.now_ms())
        self._wake(operation)
        # Requests that the end has caused are sent in that turn.
        self.turn_soon()

    def end_all(self) -> None:
        """End every operation; the calls that perform them raise ClientClosed."""
        for operation in list(self._under_way):
            self.end(operation)

    def _wake(self, operation: Operation[Any]) -> None:
        future = self._waiting.get(operation)
        if future is not None and not future.done() and not self.is_stranded:
            future.set_result(None)

    async def give_way(self) -> None:
        """Let the loop run everything that is ready in it."""
        self.owes_way = False
        await asyncio.sleep(0)
        self.check_here()

    # --- Turns

    def turn(self) -> None:
        """Turn the core in the middle of a call."""
        self.owes_way = True
        self._turn()

    def turn_soon(self) -> None:
        """Let the loop turn the core after the events that are ready in it."""
        loop = self._loop
        if self.is_turn_wanted or loop is None or self.is_closed or loop.is_closed():
            return
        self.is_turn_wanted = True
        loop.call_soon(self._on_soon, context=self._context)

    def _warn_soon(self, text: str) -> None:
        """Let the loop write a warning to the log after the turn: a handler of the log may use the
        client."""
        if self._loop is not None:
            self._loop.call_soon(warn, text, context=self._context)

    def _on_soon(self) -> None:
        if self.is_turn_wanted:
            self.turn_in_loop()

    def _on_timer(self) -> None:
        self._timer = None
        self.turn_in_loop()

    def turn_in_loop(self) -> None:
        """Turn the core because of an event; the loop calls this, and no user's call."""
        self.owes_way = False
        try:
            self._turn()
        except Exception:
            # A fault of the core: closing ends the calls that wait, and the loop reports the
            # exception.
            self.close()
            raise

    def _turn(self) -> None:
        streams = self._streams
        if self.is_closed or streams is None:
            return
        self.is_turn_wanted = False
        now_ms = self.now_ms()
        if self._timer_ms:
            self._blocked.look(now_ms - self._timer_ms, now_ms)
        outputs = self.core.turn(streams.take_events(), now_ms, self.wall_ms())
        streams.perform(outputs)
        self._give_notice(outputs)
        if streams.events:
            self.turn_soon()
        self._set_timer(now_ms)
        if self.core.has_callbacks:
            self.tell_users()
        if self._is_abandoned and not self.core.has_work:
            self.close()

    def _give_notice(self, outputs: Sequence[object]) -> None:
        """Wake the calls whose operations may continue."""
        if self._waiting:
            for output in outputs:
                if isinstance(output, Notice):
                    self._wake(output.operation)

    def _set_timer(self, now_ms: int) -> None:
        """Let the loop turn the core when something is due.  A timer that fires too early costs
        less than moving it in every turn."""
        due_ms = self.core.next_due_ms()
        look_ms = self._blocked.look_ms
        if look_ms is not None:
            due_ms = now_ms + look_ms if due_ms is None else min(due_ms, now_ms + look_ms)
        if self._timer is not None:
            if due_ms is None or self._timer_ms <= due_ms:
                return
            self._timer.cancel()
            self._timer = None
        self._timer_ms = 0
        if due_ms is not None:
            loop = asyncio.get_running_loop()
            # The time is relative, because the loop's clock may differ from the monotonic one.
            at = loop.time() + max(due_ms - now_ms, 0) / 1000
            self._timer_ms = due_ms
            self._timer = loop.call_at(at, self._on_timer, context=self._context)

    # --- The end

    def close(self) -> None:
        """Close the core and the sockets.  Calls that wait raise ClientClosed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.let_go()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.core.close(self.now_ms())
        if self._streams is not None:
            self._streams.close()
        for operation in self._waiting:
            self._wake(operation)
        for future in self._enders:
            if not future.done() and not self.is_stranded:
                future.set_result(None)
        if self.core.has_callbacks:
            self.tell_users()

    def begin_end(self) -> bool:
        """Begin the end of the client; false if another call has begun it."""
        is_first, self._is_ending = not self._is_ending, True
        return is_first

    async def until_closed(self) -> None:
        """Wait until the call that has begun the end has closed the client."""
        if not self.is_closed:
            future = asyncio.get_running_loop().create_future()
            self._enders.append(future)
            await future

    def disown(self) -> None:
        # The loop is not touched, because the parent waits with the same descriptor.
        super().disown()
        self._under_way = {}
        self._waiting = {}
        if self._streams is not None:
            self._streams.disown()

    async def settle(self) -> None:
        """Wait until the closed client has no task left in the loop."""
        if self._streams is not None and _get_running_loop() is self._loop:
            await self._streams.settle()

    def abandon(self) -> None:
        if self._loop is None or self.is_stranded:
            self.close()
            return
        # The loop may be closed meanwhile; it drops its references to the client then, and the
        # sockets are closed with it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_abandoned)

    def _on_abandoned(self) -> None:
        self._is_abandoned = True
        self.turn_in_loop()

    def wake_from_anywhere(self) -> None:
        """Turn the core soon; from any thread."""
        if self._loop is None:
            return
        if _get_running_loop() is self._loop:
            self.turn_soon()
        else:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.turn_soon)


async def awaited(answer: object) -> None:
    """Await what a callback of the user has returned, if it is awaitable."""
    if inspect.isawaitable(answer):
        await answer


async def _raised_by(call_back: CallBack, step: Callback) -> Exception | None:
    try:
        await call_back(step)
    except Exception as error:
        return error
    return None
