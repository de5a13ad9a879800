"""Steps that run later: one that the disk refused after a second, part of long work at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.turn import Turn
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

RETRY_MS: Final = 1_000


class Retries:
    """Steps that the broker's timer runs later; `waiting` is their number."""

    def __init__(self, turn: Turn, timer: TimingWheel) -> None:
        self._turn = turn
        self._timer = timer
        self.waiting = 0

    @property
    def now_ms(self) -> int:
        """The attended time, in ms."""
        return self._turn.now_ms

    def later(self, step: Callable[[], None]) -> None:
        """Run this step in a second."""
        self.waiting += 1
        self._timer.add(Retry(self._turn.now_ms + RETRY_MS, self, step))

    def soon(self, step: Callable[[], None]) -> None:
        """Run this step, a part of long work, in the next turn."""
        self.waiting += 1
        # The wheel refuses an entry that is due already.
        self._timer.add(Retry(self._turn.now_ms + 1, self, step))


class Retry(TimerEntry):
    """Retry of one step, waiting for its next try."""

    def __init__(self, deadline_ms: int, retries: Retries, step: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._retries = retries
        self._step = step

    def expire(self) -> None:
        self._retries.waiting -= 1
        self._step()
