"""Both purgatories behind one face: the timer, its clock and its executor in the test's hand."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from tarry.purgatory import DelayedOperation, Purgatory, ThreadedPurgatory
from tarry.timer import SystemTimer, TimerEntry, TimingWheel


class Inline(Executor):
    """Runs everything at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class PureFace:
    """The purgatory of the broker, on a wheel."""

    name = "pure"
    # How often an operation is tried that is handed in.
    tries = 1

    def __init__(self, purge_interval: int = 1000) -> None:
        self.wheel = TimingWheel(0)
        self.purgatory = Purgatory(self.wheel, "test", purge_interval)
        self.errors: list[BaseException] = []

    def another(self, name: str) -> Purgatory:
        """One more purgatory on the same timer."""
        return Purgatory(self.wheel, name)

    def advance(self, now_ms: int) -> None:
        """Let the time come; what expiring operations raise gathers in `errors`."""
        for entry in self.wheel.advance(now_ms):
            try:
                entry.expire()
            except Exception as error:
                self.errors.append(error)

    def in_timer(self) -> int:
        return len(self.wheel)


class ThreadedFace:
    """The purgatory for threads, on a timer that only the test turns."""

    name = "threaded"
    tries = 2

    def __init__(self, purge_interval: int = 1000) -> None:
        self.now_ms = 0
        self.errors: list[BaseException] = []
        self.on_clock: Callable[[], object] = list
        self.timer = SystemTimer(
            "test", clock=self.clock, reaper=False, executor=Inline(), on_error=self.on_error
        )
        self.purgatory = ThreadedPurgatory(self.timer, "test", purge_interval)

    def clock(self) -> int:
        self.on_clock()
        return self.now_ms

    def on_error(self, entry: TimerEntry | None, error: BaseException) -> None:
        self.errors.append(error)

    def another(self, name: str) -> ThreadedPurgatory:
        return ThreadedPurgatory(self.timer, name)

    def advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.timer.advance()

    def in_timer(self) -> int:
        return len(self.timer)


Face = PureFace | ThreadedFace
FACES: tuple[type[PureFace], type[ThreadedFace]] = (PureFace, ThreadedFace)

# Each try of an operation that is handed in.
TRIES: tuple[tuple[type[Face], int], ...] = ((PureFace, 1), (ThreadedFace, 1), (ThreadedFace, 2))


class Operation(DelayedOperation):
    """Completes once `is_ready`; writes down what happened to it."""

    def __init__(self, deadline_ms: int = 1000, *, is_ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = is_ready
        self.tries = 0
        self.happened: list[str] = []
        self.in_try: Callable[[], object] = list
        self.then: Callable[[], object] = list
        self.at_last: Callable[[], object] = list

    def try_complete(self) -> bool:
        self.tries += 1
        was_ready = self.is_ready
        self.in_try()
        return was_ready and self.force_complete()

    def on_complete(self) -> None:
        self.happened.append("completed")
        self.then()

    def on_expiration(self) -> None:
        self.happened.append("expired")
        self.at_last()


class Failing(Operation):
    """Raises from the try with the given number on."""

    def __init__(self, first: int, deadline_ms: int = 1000) -> None:
        super().__init__(deadline_ms)
        self.first = first

    def try_complete(self) -> bool:
        self.tries += 1
        if self.tries >= self.first:
            raise ValueError(f"try {self.tries}")
        return False


def watch(
    purgatory: Purgatory | ThreadedPurgatory, *keys: str, deadline_ms: int = 1000
) -> Operation:
    """An operation that waits under the keys."""
    operation = Operation(deadline_ms)
    assert not purgatory.try_complete_else_watch(operation, list(keys))
    return operation
