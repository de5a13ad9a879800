"""Steps that the disk refused, tried again a second later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.turn import Turn
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

RETRY_MS: Final = 1_000


class Retry(TimerEntry):
    """One step that waits for its next try."""

    def __init__(self, deadline_ms: int, step: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._step = step

    def expire(self) -> None:
        self._step()


class Retries:
    """Has steps tried again by the broker's timer."""

    def __init__(self, turn: Turn, timer: TimingWheel) -> None:
        self._turn = turn
        self._timer = timer

    def later(self, step: Callable[[], None]) -> None:
        """Have this step tried once more in a second."""
        self._timer.add(Retry(self._turn.now_ms + RETRY_MS, step))
