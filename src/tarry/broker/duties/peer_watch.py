"""Watches of connections: an unfinished frame must be completed in time, and idle peers are closed.

There is one timer entry for each connection.  It moves only when it is due, so a request costs
nothing here.
"""

from __future__ import annotations

from typing import Final

from tarry.broker.answers import Answers
from tarry.broker.connection import Connection
from tarry.timer.entry import TimerEntry

NEVER_MS: Final = 1 << 60
# Time until the next look at a connection that is idle for too long but has a request to answer.
LOOK_AGAIN_MS: Final = 1_000


class PeerWatch(TimerEntry):
    """Entry that is due when a connection's unfinished frame is too old, or its idle time is
    over.
    """

    def __init__(self, answers: Answers, connection: Connection, idle_ms: int) -> None:
        super().__init__(0)
        self.answers = answers
        self.connection = connection
        self.idle_ms = idle_ms

    def watch(self) -> None:
        """Begin to watch."""
        self.connection.watch = self
        self.connection.active_ms = self.answers.turn.now_ms
        self._add()

    def expire(self) -> None:
        answers = self.answers
        connection = self.connection
        now_ms = answers.turn.now_ms
        if connection.is_closed:
            return
        is_read = not connection.is_reading_paused or connection.is_short_of_room()
        if is_read and connection.is_late(now_ms):
            answers.close(
                connection,
                f"a frame was not whole {connection.age_ms_max // 1000} s after its first byte",
            )
            return
        # Requests that wait because the peer takes no answers are not this broker's work.
        is_at_work = connection.has_unanswered() or (
            connection.has_unhandled() and not connection.is_blocked()
        )
        if now_ms >= self._idle_due_ms() and not is_at_work:
            if connection.has_waiting():
                answers.close(
                    connection, "it took no answers for longer than connections.max.idle.ms"
                )
            else:
                answers.let_go(connection, "idle for longer than connections.max.idle.ms")
            return
        self._add()

    def _idle_due_ms(self) -> int:
        idle_ms = self.idle_ms
        return NEVER_MS if idle_ms < 0 else self.connection.active_ms + idle_ms

    def _add(self) -> None:
        # The entry is due after at most the bound on a frame's age, so that a frame that begins
        # meanwhile is checked in time.  While nothing is read the age does not count; it begins
        # again with reading.
        now_ms = self.answers.turn.now_ms
        connection = self.connection
        is_read = not connection.is_reading_paused or connection.is_short_of_room()
        begun_ms = connection.begun_ms if is_read else now_ms
        due_ms = (now_ms if begun_ms < 0 else begun_ms) + connection.age_ms_max
        idle_due_ms = self._idle_due_ms()
        if idle_due_ms <= now_ms:
            idle_due_ms = now_ms + LOOK_AGAIN_MS
        self.deadline_ms = max(min(due_ms, idle_due_ms), now_ms + 1)
        self.answers.timer.add(self)
