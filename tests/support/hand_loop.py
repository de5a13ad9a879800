"""An asyncio loop whose clock the test moves: waiting takes no time, it only moves the clock."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class HandSelector(selectors.SelectSelector):
    """Hands every wait over to its loop, after a look at the real files."""

    loop: HandLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events:
            self.loop.wait(timeout)
        return events


class HandLoop(asyncio.SelectorEventLoop):
    """Runs asyncio as it is; `now` is its clock, and nobody else moves it.

    Errors that reach the exception handler are kept in `errors`.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.turns = 0
        # How much too early the loop calls, as it may within the resolution of a clock.
        self.coarse = 0.0
        selector = HandSelector()
        selector.loop = self
        super().__init__(selector)
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self.now

    def wait(self, timeout: float | None) -> None:
        """What the selector would wait: to the next timer, exactly."""
        self.turns += 1
        if timeout is None:
            raise AssertionError("the loop would wait for ever")
        if timeout > 0:
            self.now = max(self.now, self._scheduled[0].when())
        # Entries due at `now` come now, but none that is due later, were it a moment.
        self._clock_resolution = self.coarse or math.ulp(self.now)

    def turn(self, count: int = 1) -> None:
        """One iteration, in which the clock stands still."""
        for _ in range(count):
            self.call_soon(self.stop)
            self.run_forever()

    def run_until(self, time: float) -> None:
        """Let the time pass; the loop wakes whenever it wants to."""
        self.call_at(time, self.stop)
        self.run_forever()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.run_until_complete(coroutine)

    def heap(self) -> list[asyncio.TimerHandle]:
        """The loop's own heap, the cancelled ones among it."""
        return list(self._scheduled)

    def live(self) -> list[asyncio.TimerHandle]:
        """Handles with a time that are still to come, be it in this very turn."""
        due = [handle for handle in self._ready if isinstance(handle, asyncio.TimerHandle)]
        return [handle for handle in [*self._scheduled, *due] if not handle.cancelled()]


class Recorder:
    """Callbacks that tell when they came."""

    def __init__(self, loop: HandLoop) -> None:
        self.loop = loop
        self.calls: list[tuple[float, str]] = []

    def __call__(self, name: str) -> None:
        self.calls.append((self.loop.now, name))

    def names(self) -> list[str]:
        return [name for _, name in self.calls]

    def then(self, name: str, action: Callable[[], object]) -> Callable[[], None]:
        """A callback that records its name and does something else as well."""

        def call() -> None:
            self(name)
            action()

        return call
