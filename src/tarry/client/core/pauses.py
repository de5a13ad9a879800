"""Pauses: the wait before something is tried again, longer after each failure in a row."""

from __future__ import annotations

from tarry.client.core.connections import Connections
from tarry.client.core.tasks import wake_up


class Pauses:
    """Of one thing that is repeated: `begin` after a failure, `holds` before each attempt."""

    def __init__(self, connections: Connections) -> None:
        # In a row: whoever succeeds sets it to 0.
        self.failures = 0
        self._connections = connections
        self._end_ms = 0
        self._wake_up = wake_up()

    def begin(self, now_ms: int) -> None:
        """One more failure, and the pause after it."""
        self.failures += 1
        self._end_ms = now_ms + self._connections.retry_pause_ms(self.failures)
        self._connections.tasks.schedule(self._wake_up, self._end_ms)

    def holds(self, now_ms: int) -> bool:
        """Whether it is too early to try; there is a turn when it is not any more."""
        if now_ms >= self._end_ms:
            return False
        self._connections.tasks.schedule_earlier(self._wake_up, self._end_ms)
        return True

    def end(self) -> None:
        """The pause concerned what is not tried any more."""
        self._end_ms = 0
