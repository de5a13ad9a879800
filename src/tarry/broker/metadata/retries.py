"""Steps that the disk refused, tried again a second later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.turn import Turn
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

RETRY_MS: Final = 1_000


class Retries:
    """Has steps tried again by the broker's timer; `waiting` says how many."""

    def __init__(self, turn: Turn, timer: TimingWheel) -> None:
        self._turn = turn
        self._timer = timer
        self.waiting = 0

    def later(self, step: Callable[[], None]) -> None:
        """Have this step tried once more in a second."""
        self.waiting += 1
        self._timer.add(Retry(self._turn.now_ms + RETRY_MS, self, step))


class Retry(TimerEntry):
    """Retry of one step, waiting for its next try."""

    def __init__(self, deadline_ms: int, retries: Retries, step: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._retries = retries
        self._step = step

    def expire(self) -> None:
        self._retries.waiting -= 1
        self._step()
