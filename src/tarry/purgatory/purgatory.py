"""Purgatory: where delayed operations wait, watched under keys, with one timer behind them.

Invariants: an operation is in the timer until it completes; no operation is watched after its
completion for longer than it takes to gather a purge; a key without watchers is not kept
(KAFKA-2160).  Conditions and completions are user code and may come back into the purgatory:
every walk is over a copy, so a check from inside a check misses nothing (KAFKA-6653).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tarry.purgatory.operation import DelayedOperation
from tarry.timer.wheel import TimingWheel


class Purgatory:
    """One kind of operation.  `name` is for logs and counters; the timer may be shared.

    `completed_total` counts every operation that waited here and has ended, `expired_total`
    those of them that the deadline ended.
    """

    __slots__ = (
        "_pending_watched",
        "_watchers",
        "completed_total",
        "delayed",
        "expired_total",
        "name",
        "purge_interval",
        "timer",
        "watched",
    )

    def __init__(self, timer: TimingWheel, name: str, purge_interval: int = 1000) -> None:
        self.timer = timer
        self.name = name
        self.purge_interval = purge_interval
        self.watched = 0
        self.delayed = 0
        self.completed_total = 0
        self.expired_total = 0
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._pending_watched = 0

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """True: completed now.  Else it is watched under every key and timed.

        An operation whose deadline has passed already expires here.
        """
        assert operation.purgatory is None, "an operation waits once"
        if operation.try_complete():
            return True
        operation.purgatory = self
        for key in keys:
            self._watch(operation, key)
        # The state may have changed between the first try and the watch.
        if operation.try_complete() or operation.is_completed:
            return True
        if self.timer.add(operation):
            operation.is_delayed = True
            self.delayed += 1
            return False
        operation.expire()
        return operation.is_completed

    def check_and_complete(self, key: Hashable, limit: int | None = None) -> int:
        """Try what waits under the key, oldest first; how many completed.

        With a limit the walk ends after so many completions: a result equal to the limit means
        that there may be more, and the caller checks the key again later.
        """
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        try:
            for operation in watchers.copy():
                if operation.purgatory is self and operation.try_complete():
                    completed += 1
                    if completed == limit:
                        break
        finally:
            self._sweep(key)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove what waits under the key, from the timer and its other keys too.

        Nothing is completed: whoever cancels answers, or calls `force_complete`.
        """
        cancelled: list[DelayedOperation] = []
        for operation in self._watchers.get(key, []):
            if operation.purgatory is self:
                self._leave(operation)
                cancelled.append(operation)
        self._sweep(key)
        return cancelled

    def release(self, operation: DelayedOperation) -> None:
        """Called by a completing operation: it waits here no longer."""
        self._leave(operation)
        self.completed_total += 1

    def _watch(self, operation: DelayedOperation, key: Hashable) -> None:
        watchers = self._watchers.get(key)
        if watchers is None:
            self._watchers[key] = [operation]
        elif watchers and watchers[-1] is operation:
            return  # the same key named twice
        else:
            watchers.append(operation)
        operation.watch_count += 1
        self.watched += 1
        self._pending_watched += 1

    def _leave(self, operation: DelayedOperation) -> None:
        """Out of the timer and the counters; the lists under its keys forget it when swept."""
        operation.purgatory = None
        self._pending_watched -= operation.watch_count
        operation.watch_count = 0
        if operation.is_delayed:
            operation.is_delayed = False
            self.delayed -= 1
            self.timer.cancel(operation)
        # A purge walks all that is watched: never for fewer finished watchers than there are
        # pending ones, so that it costs a few steps a completion with 10,000 waiting readers.
        finished = self.watched - self._pending_watched
        if finished > self.purge_interval and finished > self._pending_watched:
            for key in list(self._watchers):
                self._sweep(key)

    def _sweep(self, key: Hashable) -> None:
        """Drop the watchers of a key that do not wait any more, and the key with the last."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return
        pending = [operation for operation in watchers if operation.purgatory is self]
        self.watched -= len(watchers) - len(pending)
        if pending:
            self._watchers[key] = pending
        else:
            del self._watchers[key]
