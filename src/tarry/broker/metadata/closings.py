"""Logs of deleted topics: closed some in each turn, before their directories are renamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.broker.flushes import Flushes
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.metadata.removals import Removals
from tarry.cluster.state.state import DeletedTopic
from tarry.log.logs import Logs
from tarry.partition.replicated_log import ReplicatedLog

# Logs of deleted topics that are closed in one turn: some 5 µs for each.
CLOSED_PER_TURN: Final = 1_000


class Closings:
    """Closes logs whose leaderships are closed, and wakes whoever waits for them."""

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
        # Deleted topics whose logs are still to be closed, oldest first.
        self._unclosed: list[tuple[DeletedTopic, list[ReplicatedLog]]] = []

    def begin(self, deleted: DeletedTopic, logs: list[ReplicatedLog]) -> None:
        """Have the logs of a deleted topic closed, and then its directories removed."""
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
                # A log that is open may open its files again by their names.
                self._removals.remove(deleted)
        self._removals.step()

    def close(self, log: ReplicatedLog) -> None:
        """Close one log now; those of a partition come in their order."""
        self._flushes.refused.pop(log, None)
        self._neighbours.on_closed(log)
        self._logs.forget(log.log)
        self._on_closed(log)
        leadership = log.leadership
        if log is leadership.logs[-1]:
            leadership.let_go()
