"""Pauses: the wait before another attempt, longer after each failure in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.doors import Random
from tarry.link.tasks import Tasks, wake_up

JITTER_PERCENT: Final = 20

# Doublings that keep the shift small; 2 ** 20 first pauses exceed every limit.
DOUBLINGS_MAX: Final = 20


def backoff_ms(first_ms: int, ms_max: int, failures: int, random: Random) -> int:
    """Return the pause after the `failures`th failure in a row (1 is the first).

    Pauses double up to a limit and vary by a fifth, so that many clients that failed together do
    not come back together.
    """
    pause_ms = min(first_ms << min(failures - 1, DOUBLINGS_MAX), ms_max)
    spread_ms = pause_ms * JITTER_PERCENT // 100
    return pause_ms - spread_ms + random.randrange(2 * spread_ms + 1)


class Pauses:
    """Pauses of one thing that is repeated: `begin` after a failure, `holds` before an attempt."""

    def __init__(self, tasks: Tasks, pause_ms: Callable[[int], int]) -> None:
        # Failures in a row; code that succeeds sets it to 0.
        self.failures = 0
        self._tasks = tasks
        # Length of the pause after so many failures, in ms.
        self._pause_ms = pause_ms
        self._end_ms = 0
        self._wake_up = wake_up()

    def begin(self, now_ms: int) -> None:
        """Count one more failure, and begin the pause after it."""
        self.failures += 1
        self._end_ms = now_ms + self._pause_ms(self.failures)
        self._tasks.schedule(self._wake_up, self._end_ms)

    def holds(self, now_ms: int) -> bool:
        """Return True if it is too early to try; the core gets a turn at the end of the pause."""
        if now_ms >= self._end_ms:
            return False
        self._tasks.schedule_earlier(self._wake_up, self._end_ms)
        return True

    def end(self) -> None:
        """End the pause, because the thing that failed is not tried any more."""
        self._end_ms = 0
