"""Purgatory: where delayed operations wait, watched under keys, with one timer behind them.

Invariants: an operation is in the timer until it completes; after its completion it is watched
only until the next purge; a key without watchers is not kept (KAFKA-2160).  A condition looks and
changes nothing.  A completion may call the purgatory: a check inside a check misses no operation
(KAFKA-6653).  An error of an operation's own code reaches the caller at once, with the counters
right; the next check tries the rest.  If an error occurs between an operation's completion and its
`on_complete`, the answer is given all the same.

This class is for one thread, with the time as an argument; `ThreadedPurgatory` is for many.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from mypy_extensions import i64

from tarry.purgatory.operation import (
    DelayedOperation,
    Keeper,
    OperationListener,
    check_kind,
    key_list_of,
    not_completed,
    shut_down,
    unhashable,
    why_not_cancelled,
    why_not_taken,
)
from tarry.purgatory.watchers import NOWHERE, Sweep, Watchers
from tarry.timer.wheel import TimingWheel

# Watchers and keys that one call of a purge sweeps; it finishes the last key.
PURGE_PART_MAX: Final = 1000
# Bits of the longest wait; the last number of `Purgatory.waits` counts from 2 ** 30 ms, 12 days.
WAIT_BITS_MAX: Final = 31


class OperationWatchers(Watchers):
    """Operations under one key."""

    __slots__ = ()

    def pending_of(self, items: list[Any]) -> list[Any]:
        operations: list[DelayedOperation | None] = items
        return [
            operation for operation in operations if operation is not None and operation._is_waiting
        ]


class Purgatory(Keeper):
    """Purgatory of one kind of operation.  `name` is for logs and counters; the wheel may be
    shared.

    `watched` counts watchers, one for each key of an operation, `delayed` the operations that
    wait; `completed_total` counts every operation that waited here and has completed,
    `expired_total` those of them that the deadline completed.  `waits` counts them by the bit
    length of their wait in ms: number 0 is a wait of 0 ms, number n one of 2 ** (n - 1) ms or more.
    """

    __slots__ = (
        "_is_shut_down",
        "_kind",
        "_listeners",
        "_pending_watched",
        "_sweeping",
        "_watchers",
        "completed_total",
        "delayed",
        "expired_total",
        "name",
        "purge_interval",
        "timer",
        "waits",
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
        self.waits: list[int] = [0] * (WAIT_BITS_MAX + 1)
        self._listeners: list[OperationListener] = []
        self._watchers: dict[Hashable, OperationWatchers] = {}
        self._sweeping = Sweep()
        self._pending_watched = 0
        self._is_shut_down = False
        # Class of the last operation, which `check_kind` has accepted.
        self._kind: type[DelayedOperation] | None = None

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut_down else f"{self.delayed} waiting"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def listen(self, listener: OperationListener) -> None:
        """Register a listener, to which each completion is reported."""
        self._listeners.append(listener)

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Try an operation, and watch it under every key until its deadline if it is not ready.
        Return whether it is completed.

        An operation whose deadline has passed already expires here.  If anything raises, the
        operation does not wait.  Raises ValueError for an operation that was handed in before or no
        keys, TypeError for a key that cannot be hashed or a class without `on_complete`,
        PurgatoryShutDown, and what its own code raised.
        """
        key_list = self._take(operation, keys)
        if not operation.is_completed:
            self._try(operation)
        return operation.is_completed or self._watch_all(operation, key_list)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Watch an operation that the caller has tried.  Return whether it is completed already,
        because its deadline has passed.

        Raises as `try_complete_else_watch`.
        """
        key_list = self._take(operation, keys)
        return operation.is_completed or self._watch_all(operation, key_list)

    def check_and_complete(self, key: Hashable, limit: int | None = None, *, walk: int = 0) -> int:
        """Try the operations under the key, oldest first; return how many completed.

        With a limit the walk ends after so many completions: a result equal to the limit means
        that there may be more, and the caller checks the key again later.  An error of an
        operation's code ends the walk as well.

        Checks of several keys with the same `walk`, a number above 0, try an operation once: the
        conditions must not change between these checks.
        """
        if limit is not None and limit <= 0:
            return 0
        watchers = self._watchers_of(key)
        if watchers is None:
            return 0
        # The walk ends at the present end; operations that are added meanwhile come behind it.
        items: list[DelayedOperation | None] = watchers.items
        end = len(items)
        number = watchers.head
        completed = 0
        has_finished = False
        while number < end:
            operation = items[number]
            number += 1
            if operation is None or not operation._is_waiting:
                has_finished = True
                continue
            if walk > 0:
                if operation._walk == walk:
                    continue
                operation._walk = walk
            if self._try(operation):
                has_finished = True
                completed += 1
                if completed == limit:
                    break
        if has_finished:
            if watchers.items is items:
                self._sweep(watchers, number)
            elif limit is None:
                self._sweep(watchers, len(watchers.items))
        return completed

    def cancel(self, operation: DelayedOperation) -> bool:
        """Remove one operation from its keys and from the timer, at once; return True if it waited.

        It is not completed: the caller answers, or calls `force_complete`.  An operation that has
        completed or expired is only removed from the keys under which it still lies.  The cost
        grows with the operations under its keys: it is little for a key of its own.  Raises
        ValueError for an operation of another purgatory.
        """
        if operation._keeper is not self:
            if operation._keeper is None:
                return False
            raise why_not_cancelled()
        was_waiting = operation._is_waiting
        if was_waiting:
            self._leave(operation)
        keys = operation._keys
        if keys is not None:
            operation._keys = None
            self._unwatch(keys)
        if was_waiting:
            self.timer.cancel(operation)
            self._maybe_purge()
        return was_waiting

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove the operations that wait under the key, from the timer and their other keys too.

        They are not completed: the caller answers, or calls `force_complete`.
        """
        cancelled: list[DelayedOperation] = []
        watchers = self._watchers_of(key)
        if watchers is None:
            return cancelled
        waiting: list[DelayedOperation] = watchers.items[watchers.head :]
        for operation in waiting:
            if operation._is_waiting:
                cancelled.append(operation)
                self._leave(operation)
                self.timer.cancel(operation)
        self._sweep(watchers, len(watchers.items))
        self._maybe_purge()
        return cancelled

    def shutdown(self, expire_pending: bool = False) -> int:
        """End all waits and take no more operations; return how many waited.

        They complete as at their deadline, or are dropped without an answer as if cancelled.
        Checks and cancels find none from now on.  After an error of an operation's own code, call
        it again to end the others.
        """
        pending = self.delayed
        self._is_shut_down = True
        for watchers in list(self._watchers.values()):
            waiting: list[DelayedOperation] = watchers.items[watchers.head :]
            for operation in waiting:
                if not operation._is_waiting:
                    continue
                if expire_pending:
                    self.expire(operation)
                else:
                    self._leave(operation)
                    self.timer.cancel(operation)
        if self._pending_watched == 0:
            # Drop all watchers without a look-up of each key.
            everything = self._watchers
            self._watchers = {}
            self._sweeping.clear()
            for watchers in everything.values():
                self.watched -= watchers.clear()
        return pending

    def complete(self, operation: DelayedOperation) -> bool:
        """Complete an operation of this purgatory; its `force_complete` calls this."""
        if operation.is_completed:
            return False
        operation.is_completed = True
        if operation._is_waiting:
            self._end(operation, False)
        else:
            operation.on_complete()
        return True

    def expire(self, operation: DelayedOperation) -> None:
        """Expire an operation at its deadline; do nothing if it does not wait any more."""
        if not operation._is_waiting:
            return
        try:
            # Try once more, since a change may not have been checked yet: what has arrived counts.
            self._try(operation)
        finally:
            if operation._is_waiting:
                operation.is_completed = True
                self._end(operation, True)

    def _take(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> list[Hashable]:
        """Take an operation that may wait here; return its keys as a list."""
        # A list is walked faster than another sequence: a watch takes 235 ns, else 280.
        key_list = keys if isinstance(keys, list) else key_list_of(keys)
        if operation._keeper is not None or operation._holder is not None or not key_list:
            raise why_not_taken(operation)
        if self._is_shut_down:
            raise shut_down(self.name)
        kind = type(operation)
        if kind is not self._kind:
            check_kind(kind)
            self._kind = kind
        operation._keeper = self
        return key_list

    def _watch_all(self, operation: DelayedOperation, key_list: list[Hashable]) -> bool:
        """Begin the wait; return True if the deadline has passed already, which completes it."""
        timer = self.timer
        is_due = not timer.add(operation)
        operation._is_waiting = True
        operation._keys = key_list
        operation.since_ms = timer.now_ms
        self.delayed += 1
        if is_due:
            operation.is_completed = True
            self._end(operation, True)
            return True
        try:
            for key in key_list:
                self._watch(operation, key)
        except BaseException:
            self.cancel(operation)
            raise
        return False

    def _try(self, operation: DelayedOperation) -> bool:
        is_done = operation.try_complete()
        if is_done and not operation.is_completed:
            raise not_completed()
        return is_done

    def _end(self, operation: DelayedOperation, is_expired: bool) -> None:
        """End the wait of an operation that is completed, and call its `on_complete`."""
        try:
            self._leave(operation)
            self.completed_total += 1
            if is_expired:
                self.expired_total += 1
            self._count_wait(operation, is_expired)
            self.timer.cancel(operation)
            self._maybe_purge()
        finally:
            operation.on_complete()
            if is_expired:
                operation.on_expiration()

    def _count_wait(self, operation: DelayedOperation, is_expired: bool) -> None:
        waited_ms = self.timer.now_ms - operation.since_ms
        rest: i64 = waited_ms
        bits: i64 = 0
        while rest > 0 and bits < WAIT_BITS_MAX:
            rest >>= 1
            bits += 1
        self.waits[bits] += 1
        if self._listeners:
            keys = operation._keys
            assert keys is not None
            for listener in self._listeners:
                listener.on_completed(operation, keys[0], waited_ms, is_expired)

    def _watchers_of(self, key: Hashable) -> OperationWatchers | None:
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
            watchers = OperationWatchers(key)
            self._watchers[key] = watchers
        if watchers.place == NOWHERE:
            self._sweeping.add(watchers)
        items = watchers.items
        if items and items[-1] is operation:
            return  # the keys name it twice
        items.append(operation)
        operation._watch_count += 1
        self.watched += 1
        self._pending_watched += 1

    def _leave(self, operation: DelayedOperation) -> None:
        """Take it out of the counters; the lists under its keys drop it when they are swept."""
        operation._is_waiting = False
        self.delayed -= 1
        self._pending_watched -= operation._watch_count
        operation._watch_count = 0

    def _unwatch(self, keys: list[Hashable]) -> None:
        """Drop operations that do not wait any more under these keys."""
        for key in keys:
            try:
                watchers = self._watchers.get(key)
            except Exception:
                continue  # The key can no longer be hashed or compared; a purge drops it.
            if watchers is not None:
                self._sweep(watchers, len(watchers.items))

    def _maybe_purge(self) -> None:
        """Sweep part of the watchers if many are finished, or if a purge is under way."""
        # A purge walks all watchers.  It begins only when more are finished than pending, so it
        # costs a few steps a completion even with 10,000 waiting readers.
        if self._sweeping.number == 0:
            finished = self.watched - self._pending_watched
            if finished <= self.purge_interval or finished <= self._pending_watched:
                return
        steps = 0
        while steps < PURGE_PART_MAX:
            watchers = self._sweeping.next()
            if watchers is None:
                return
            length = len(watchers.items)
            steps += 1 + length
            self._sweep(watchers, length)

    def _sweep(self, watchers: Watchers, end: int) -> None:
        """Drop the watchers before `end` that have ended; drop the key if none is left."""
        self.watched -= watchers.sweep(end)
        if len(watchers) == 0:
            self._forget(watchers)

    def _forget(self, watchers: Watchers) -> None:
        """Drop a key without watchers."""
        self._sweeping.remove(watchers)
        if self.watched == 0:
            self._watchers.clear()
            return
        try:
            if self._watchers.get(watchers.key) is watchers:
                del self._watchers[watchers.key]
        except Exception:
            # No operation can be found by a key that can no longer be hashed or compared.  It stays
            # until there are no watchers at all.
            return
