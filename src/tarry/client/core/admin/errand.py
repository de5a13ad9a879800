"""Errand: several calls, one after the other or at once, that make one answer.

The steps of an errand are a generator.  It yields the calls that it waits for, or a pause, and
returns the answer; a call that failed has its error, and the steps decide what comes of it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from tarry.client.core.call import Call
from tarry.client.core.core import ClientCore
from tarry.client.core.events import CALL_DONE, Notice
from tarry.client.core.tasks import wake_up
from tarry.client.errors import ClientError, TimedOut

Answer = TypeVar("Answer")


class Pause(NamedTuple):
    """Wait before the next attempt, longer after each of `failures`; at the end of the time
    TimedOut is thrown into the steps, with the reason."""

    failures: int
    reason: ClientError


Steps = Generator[Sequence[Call] | Pause, None, Answer]


class Errand(Generic[Answer]):
    """Steps under way; `answer` holds once it is done without an `error`."""

    def __init__(self, steps: Steps[Answer]) -> None:
        self.steps = steps
        self.is_done = False
        self.answer: Answer | None = None
        self.error: ClientError | None = None
        self.deadline_ms = 0
        self.calls: Sequence[Call] = ()
        self.pause: Pause | None = None
        self.resume_ms = 0

    def take(self) -> Answer:
        """The answer of an errand that is done.  Raises its error."""
        assert self.is_done
        if self.error is not None:
            raise self.error
        return cast("Answer", self.answer)


class Errands:
    """The errands of one core, each moved on when all of its calls are done."""

    def __init__(self, core: ClientCore) -> None:
        self.core = core
        # Any: each errand has an answer of its own class.
        self._under_way: dict[Errand[Any], None] = {}
        self._wake_up = wake_up()

    def begin(self, errand: Errand[Any], timeout_ms: int) -> None:
        errand.deadline_ms = self.core.now_ms + timeout_ms
        self._under_way[errand] = None
        self._go_on(errand, None)

    def work(self, now_ms: int) -> None:
        """Move on what can move."""
        for errand in list(self._under_way):
            while not errand.is_done and self._is_ready(errand, now_ms):
                self._go_on(errand, self._overdue(errand, now_ms))
            if errand.pause is not None and not errand.is_done:
                self.core.tasks.schedule_earlier(self._wake_up, errand.resume_ms)

    def _is_ready(self, errand: Errand[Any], now_ms: int) -> bool:
        if errand.pause is not None:
            return now_ms >= errand.resume_ms
        return all(call.is_done for call in errand.calls)

    def _overdue(self, errand: Errand[Any], now_ms: int) -> ClientError | None:
        if errand.pause is None or now_ms < errand.deadline_ms:
            return None
        return TimedOut(f"no answer came in the time given: {errand.pause.reason}")

    def _go_on(self, errand: Errand[Any], thrown: ClientError | None) -> None:
        """Take the next step and begin what it waits for."""
        try:
            step = next(errand.steps) if thrown is None else errand.steps.throw(thrown)
        except StopIteration as end:
            errand.answer = end.value
            self._end(errand)
            return
        except ClientError as error:
            errand.error = error
            self._end(errand)
            return
        errand.pause = None
        errand.calls = ()
        if isinstance(step, Pause):
            self._begin_pause(errand, step)
            return
        errand.calls = step
        left_ms = max(errand.deadline_ms - self.core.now_ms, 0)
        for call in step:
            self.core.begin_call(call, left_ms)

    def _begin_pause(self, errand: Errand[Any], pause: Pause) -> None:
        pause_ms = self.core.connections.retry_pause_ms(pause.failures)
        errand.pause = pause
        errand.resume_ms = min(self.core.now_ms + pause_ms, errand.deadline_ms)

    def _end(self, errand: Errand[Any]) -> None:
        errand.is_done = True
        self._under_way.pop(errand, None)
        self.core.connections.put(Notice(CALL_DONE))

    def fail_all(self, error: ClientError) -> None:
        for errand in list(self._under_way):
            errand.error = error
            self._end(errand)
