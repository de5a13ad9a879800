"""Walks over a broker's logs: duties that visit every log, some logs in each step.

A broker may have tens of thousands of logs, and a turn must stay short.  The first step of a walk
is taken when the walk begins.  Between two steps there is a pause of one tick for requests.
"""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn
from tarry.broker.topics import Topics
from tarry.partition.replicated_log import ReplicatedLog
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

# Number of logs that one step visits: one to two milliseconds.
LOGS_PER_STEP_MAX: Final = 500
# Pause between two steps in ms: a tick of the wheel.
_PAUSE_MS: Final = 1


class LogWalk(TimerEntry):
    """Entry of the timer that is due for the next step of a walk.

    A subclass chooses the logs by `_logs` and does its work on each of them by `_visit`.
    """

    def __init__(self, turn: Turn, timer: TimingWheel, topics: Topics) -> None:
        super().__init__(turn.now_ms)
        self._turn = turn
        self._timer = timer
        self._topics = topics
        # Logs that are still to be visited, the next one last.
        self._left: list[ReplicatedLog] = []

    def begin(self) -> None:
        """Begin a walk; do nothing if one is under way."""
        if self._left:
            return
        self._left = self._logs()
        self._left.reverse()
        self.expire()

    def expire(self) -> None:
        """Take a step."""
        left = self._left
        for _ in range(min(len(left), LOGS_PER_STEP_MAX)):
            log = left.pop()
            if not log.is_closed:
                self._visit(log)
        if left:
            self.deadline_ms = self._turn.now_ms + _PAUSE_MS
            self._timer.add(self)

    def _logs(self) -> list[ReplicatedLog]:
        """Return the logs of a walk that begins now."""
        raise NotImplementedError

    def _visit(self, log: ReplicatedLog) -> None:
        """Do the work on one log."""
        raise NotImplementedError


class RetentionWalk(LogWalk):
    """Walk that deletes the segments that the topics' settings no longer keep.

    Followers leave this to the leader.
    """

    def __init__(self, turn: Turn, timer: TimingWheel, topics: Topics) -> None:
        super().__init__(turn, timer, topics)
        self._begun_wall_ms = turn.now_wall_ms

    def _logs(self) -> list[ReplicatedLog]:
        # The wall clock may be set between two steps.  The time of the beginning counts for all
        # steps, because it was compared with the monotonic clock.
        self._begun_wall_ms = self._turn.now_wall_ms
        return self._topics.partitions()

    def _visit(self, log: ReplicatedLog) -> None:
        if log.leadership.is_leader:
            log.delete_old_segments(self._begun_wall_ms)


class ProducerExpiry(LogWalk):
    """Walk that forgets the producers that have written nothing for `producer.id.expiration.ms`."""

    def _logs(self) -> list[ReplicatedLog]:
        return self._topics.logs()

    def _visit(self, log: ReplicatedLog) -> None:
        log.producers.expire(self._turn.now_ms)
