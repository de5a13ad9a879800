"""Purgatory: where delayed operations wait, watched under keys, with one timer behind them.

Invariants: an operation is in the timer until it completes; no operation is watched after its
completion for longer than it takes to gather a purge; a key without watchers is not kept
(KAFKA-2160).  Conditions and completions are user code and may come back into the purgatory:
every walk is over a copy, so a check from inside a check misses nothing (KAFKA-6653).  They may
also raise: the counters are right before any of them is called, what else was to be done is
done, and then the caller gets the error.

For one thread, with the time as an argument; `ThreadedPurgatory` is the same for many.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tarry.purgatory.operation import (
    DelayedOperation,
    Keeper,
    key_list_of,
    not_completed,
    raise_all,
    shut_down,
    unhashable,
    why_not_taken,
)
from tarry.timer.wheel import TimingWheel


class Purgatory(Keeper):
    """One kind of operation.  `name` is for logs and counters; the wheel may be shared.

    `watched` counts watchers, one for each key of an operation, `delayed` the operations that
    wait; `completed_total` counts every operation that waited here and has completed,
    `expired_total` those of them that the deadline completed.
    """

    __slots__ = (
        "_is_shut_down",
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
        if not isinstance(timer, TimingWheel):
            raise TypeError(
                f"a Purgatory runs on a TimingWheel, not on {timer!r}; ThreadedPurgatory runs on a "
                "SystemTimer"
            )
        self.timer = timer
        self.name = name
        self.purge_interval = purge_interval
        self.watched = 0
        self.delayed = 0
        self.completed_total = 0
        self.expired_total = 0
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._pending_watched = 0
        self._is_shut_down = False

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """True: it is completed.  Else it is watched under every key and timed.

        An operation whose deadline has passed already expires here.  If anything raises, the
        operation does not wait.  Raises ValueError for an operation that was handed in before
        or no keys, TypeError for a key that cannot be hashed, PurgatoryShutDown, and what its own
        code raised.
        """
        # A list is walked faster than any sequence: a watch takes 235 ns, else 280.
        key_list = keys if isinstance(keys, list) else key_list_of(keys)
        if operation._keeper is not None or operation._holder is not None or not key_list:
            raise why_not_taken(operation)
        if self._is_shut_down:
            raise shut_down(self.name)
        operation._keeper = self
        is_done = operation.is_completed or operation.try_complete()
        if operation.is_completed:
            return True
        if is_done:
            raise not_completed()
        if self._is_shut_down:
            raise shut_down(self.name)
        operation._is_waiting = True
        self.delayed += 1
        try:
            for key in key_list:
                self._watch(operation, key)
            # The state may have changed between the first try and the watch.
            is_done = operation.try_complete()
            if is_done and not operation.is_completed:
                raise not_completed()
            if not operation._is_waiting:
                return operation.is_completed
            if self.timer.add(operation):
                return False
        except BaseException:
            if operation._is_waiting:
                self._leave(operation)
            raise
        self.expire(operation)
        return operation.is_completed

    def check_and_complete(self, key: Hashable, limit: int | None = None) -> int:
        """Try what waits under the key, oldest first; how many completed.

        With a limit the walk ends after so many completions: a result equal to the limit means
        that there may be more, and the caller checks the key again later.  Raises what the code of
        operations raised, several errors as an ExceptionGroup, when all others have been tried.
        """
        if limit is not None and limit <= 0:
            return 0
        watchers = self._watchers_of(key)
        if watchers is None:
            return 0
        completed = 0
        has_finished = False
        errors: list[BaseException] = []
        try:
            for operation in watchers.copy():
                if not operation._is_waiting:
                    has_finished = True
                    continue
                try:
                    if operation.try_complete():
                        if not operation.is_completed:
                            raise not_completed()
                        has_finished = True
                        completed += 1
                        if completed == limit:
                            break
                except Exception as error:
                    errors.append(error)
        finally:
            if has_finished or errors:
                self._sweep(key)
        raise_all(errors)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove what waits under the key, from the timer and its other keys too.

        Nothing is completed: whoever cancels answers, or calls `force_complete`.
        """
        cancelled: list[DelayedOperation] = []
        for operation in self._watchers_of(key) or []:
            if operation._is_waiting:
                self._leave(operation)
                self.timer.cancel(operation)
                cancelled.append(operation)
        self._sweep(key)
        return cancelled

    def shutdown(self, expire_pending: bool = False) -> int:
        """End what waits and take nothing any more; how many operations that were.

        They complete as at their deadline, or are dropped without an answer as if cancelled.
        Checks and cancels find nothing from now on.  Again: nothing to do, 0.
        """
        pending = self.delayed
        self._is_shut_down = True
        errors: list[BaseException] = []
        for watchers in list(self._watchers.values()):
            for operation in watchers.copy():
                if not operation._is_waiting:
                    continue
                if not expire_pending:
                    self._leave(operation)
                    self.timer.cancel(operation)
                    continue
                try:
                    self.expire(operation)
                except Exception as error:
                    errors.append(error)
        self._purge()
        raise_all(errors)
        return pending

    def complete(self, operation: DelayedOperation) -> bool:
        """What `force_complete` of an operation does that was handed to this purgatory."""
        if operation.is_completed:
            return False
        operation.is_completed = True
        if operation._is_waiting:
            self._leave(operation)
            self.timer.cancel(operation)
            self.completed_total += 1
        operation.on_complete()
        return True

    def expire(self, operation: DelayedOperation) -> None:
        """What the deadline of an operation does; nothing if it does not wait any more."""
        if not operation._is_waiting:
            return
        try:
            # The condition may hold while its key waits to be checked: what has arrived counts.
            if operation.try_complete() and not operation.is_completed:
                raise not_completed()
        finally:
            if operation._is_waiting:
                operation.is_completed = True
                self._leave(operation)
                self.timer.cancel(operation)
                self.completed_total += 1
                self.expired_total += 1
                operation.on_complete()
                operation.on_expiration()

    def _watchers_of(self, key: Hashable) -> list[DelayedOperation] | None:
        try:
            return self._watchers.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error

    def _watch(self, operation: DelayedOperation, key: Hashable) -> None:
        try:
            watchers = self._watchers.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error
        if watchers is None:
            self._watchers[key] = [operation]
        elif watchers[-1] is operation:
            return  # the same key named twice
        else:
            watchers.append(operation)
        operation._watch_count += 1
        self.watched += 1
        self._pending_watched += 1

    def _leave(self, operation: DelayedOperation) -> None:
        """Out of the counters; the lists under its keys forget it when they are swept."""
        operation._is_waiting = False
        self.delayed -= 1
        self._pending_watched -= operation._watch_count
        operation._watch_count = 0
        # A purge walks all that is watched: never for fewer finished watchers than there are
        # pending ones, so that it costs a few steps a completion with 10,000 waiting readers.
        finished = self.watched - self._pending_watched
        if finished > self.purge_interval and finished > self._pending_watched:
            self._purge()

    def _purge(self) -> None:
        for key in list(self._watchers):
            self._sweep(key)

    def _sweep(self, key: Hashable) -> None:
        """Drop the watchers of a key that do not wait any more, and the key with the last."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return
        pending = [operation for operation in watchers if operation._is_waiting]
        self.watched -= len(watchers) - len(pending)
        if pending:
            self._watchers[key] = pending
        else:
            del self._watchers[key]
