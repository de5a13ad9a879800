"""Logs of deleted topics: some are closed in each turn, before their directories are renamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.broker.flushes import Flushes
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.metadata.removals import Removals
from tarry.cluster.state.state import DeletedTopic
from tarry.log.logs import Logs
from tarry.partition.replicated_log import ReplicatedLog

# Number of logs of deleted topics that are closed in one turn: each takes some 5 µs.
CLOSED_PER_TURN: Final = 1_000


class Closings:
    """Closer of logs whose leaderships are closed; it wakes the requests that wait for them."""

    def __init__(
        self,
        removals: Removals,
        logs: Logs,
        flushes: Flushes,
        neighbours: Neighbours,
        on_closed: Callable[[ReplicatedLog], None],
    ) -> None:
        self._removals = removals
        self._logs = logs
        self._flushes = flushes
        self._neighbours = neighbours
        self._on_closed = on_closed
        # Deleted topics whose logs are not all closed yet, the oldest first.
        self._unclosed: list[tuple[DeletedTopic, list[ReplicatedLog]]] = []

    def begin(self, deleted: DeletedTopic, logs: list[ReplicatedLog]) -> None:
        """Close the logs of a deleted topic in the next turns, and then remove its directories."""
        self._unclosed.append((deleted, logs))

    def has_work_left(self) -> bool:
        return len(self._unclosed) > 0 or self._removals.has_work_left()

    def step(self) -> None:
        """Close as many logs as this turn has room for, and rename directories of closed ones."""
        left = CLOSED_PER_TURN
        while self._unclosed and left > 0:
            deleted, logs = self._unclosed[0]
            closed = logs[:left]
            for log in closed:
                self.close(log)
            del logs[:left]
            left -= max(len(closed), 1)
            if not logs:
                del self._unclosed[0]
                # Only now: a log that is not closed may open its files again by their names.
                self._removals.remove(deleted)
        self._removals.step()

    def close(self, log: ReplicatedLog) -> None:
        """Close one log now; the logs of a partition have to be closed in their order."""
        self._flushes.refused.pop(log, None)
        self._neighbours.on_closed(log)
        self._logs.forget(log.log)
        self._on_closed(log)
        leadership = log.leadership
        if log is leadership.logs[-1]:
            leadership.let_go()
