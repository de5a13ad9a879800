"""Throttling: pauses that the broker's answers require of clients.

A client that knows throttle times pauses by itself.  For all other clients, the broker handles no
more requests of their connection until the pause is over, as Kafka does (KIP-219).
"""

from __future__ import annotations

from heapq import heappop, heappush

from tarry.base.turn import Turn
from tarry.broker.delayed.long_answers import LongAnswers
from tarry.broker.kafka_connection import KafkaConnection
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel


class Throttling:
    """Connections under a pause, with the times at which their pauses end."""

    def __init__(self, turn: Turn, timer: TimingWheel, long_answers: LongAnswers) -> None:
        self._turn = turn
        self._long_answers = long_answers
        # End of the pause and connection id, as a heap; an entry is stale unless its end is that in
        # `_ends`.
        self._queue: list[tuple[int, int]] = []
        self._ends: dict[int, int] = {}
        self._paused: dict[int, KafkaConnection] = {}
        self._alarm = Alarm(timer, turn, self._end)

    def pause(self, connection: KafkaConnection, pause_ms: int) -> None:
        """Handle no more requests of a connection for `pause_ms`; a longer pause under way is
        kept.
        """
        if pause_ms <= 0 or connection.is_closed:
            return
        end_ms = self._turn.now_ms + pause_ms
        if end_ms <= self._ends.get(connection.id, 0):
            return
        if connection.id not in self._paused:
            self._paused[connection.id] = connection
            connection.hold()
        self._ends[connection.id] = end_ms
        heappush(self._queue, (end_ms, connection.id))
        self._alarm.arm(self._queue[0][0] - self._turn.now_ms)

    def _end(self) -> None:
        queue = self._queue
        while queue and queue[0][0] <= self._turn.now_ms:
            end_ms, connection_id = heappop(queue)
            if self._ends.get(connection_id) == end_ms:
                del self._ends[connection_id]
                self._long_answers.let_go_on(self._paused.pop(connection_id))
        if queue:
            self._alarm.arm(queue[0][0] - self._turn.now_ms)
