"""Watches, which stand for operations under their keys in a purgatory of many threads.

A lock guards them and the counters.  This module never runs the code of an operation.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from librt.threading import Lock

from tarry.purgatory.operation import DelayedOperation, Keeper, shut_down, unhashable
from tarry.purgatory.watchers import NOWHERE, Sweep, Watchers
from tarry.timer.collector import COLLECTOR

# Value of `trier` if no thread has the turn.  Identifiers of threads are not zero.
NOBODY: Final = 0

# Next work of a turn.
NOTHING: Final = 0
TRY: Final = 1
EXPIRE: Final = 2
ANSWER: Final = 3
LEAVE: Final = 4

# Number of repeats of a try, for checks of other threads, and for those from inside it.
REPEATS_MAX: Final = 2

# Watches that one hold of the lock walks over; a purge finishes its last list.
PART_MAX: Final = 1000


class Watch(Keeper):
    """Watch: stands for an operation under its keys, and knows which thread may run its code.

    `operation` is set while the operation waits.  The lock of the purgatory guards all fields.  The
    thread that has the turn may read `trier` without it, because no other thread ends its turn.
    """

    __slots__ = (
        "is_asked",
        "is_due",
        "is_left",
        "is_nested",
        "is_owed",
        "is_revoked",
        "key_count",
        "keys",
        "operation",
        "purgatory",
        "trier",
    )

    def __init__(self, purgatory: WatchTable, trier: int) -> None:
        self.purgatory = purgatory
        self.trier = trier
        self.operation: DelayedOperation | None = None
        # Keys that the watch lies under, for a cancel.
        self.keys: list[Hashable] | None = None
        self.key_count = 0
        # Work that other threads left to the one that is trying: a try, the expiry, `on_complete`.
        self.is_asked = False
        self.is_due = False
        self.is_owed = False
        # True if the try is left to the timer's executor, which has not begun it yet.
        self.is_left = False
        # True if the trying thread checked a key of the operation from inside the try.
        self.is_nested = False
        # True if another thread cancelled during a try, which then must not complete the operation.
        self.is_revoked = False

    def is_waiting(self) -> bool:
        """Return True if the operation waits.  A method, so that compiled code reads the field
        again: another thread may have changed it.
        """
        return self.operation is not None

    def next_work(self, repeats: int) -> int:
        """Return the next work of the thread that has the turn; NOTHING and LEAVE end the turn.

        Lock held.
        """
        if self.is_owed:
            self.is_owed = False
            return ANSWER
        if self.operation is not None:
            if self.is_due:
                return EXPIRE  # which ends the wait
            if self.is_asked:
                if repeats < REPEATS_MAX:
                    self.is_asked = False
                    return TRY
                # Checks of other threads must not keep this thread from its own work for longer.
                self.trier = NOBODY
                if self.is_left:
                    return NOTHING
                self.is_left = True
                return LEAVE
        self.trier = NOBODY
        return NOTHING

    def complete(self, operation: DelayedOperation) -> bool:
        return self.purgatory._complete(self, operation)

    def expire(self, operation: DelayedOperation) -> None:
        self.purgatory._expire(self, operation)


class WatchList(Watchers):
    """Watches under one key."""

    __slots__ = ()

    def pending_of(self, items: list[Any]) -> list[Any]:
        watches: list[Watch | None] = items
        return [watch for watch in watches if watch is not None and watch.operation is not None]


class WatchTable:
    """Watches of a purgatory by key, and their counters."""

    __slots__ = (
        "_is_shut_down",
        "_kind",
        "_lock",
        "_pending_watched",
        "_sweeping",
        "_watchers",
        "delayed",
        "name",
        "purge_interval",
        "watched",
    )

    def __init__(self, name: str, purge_interval: int) -> None:
        self.name = name
        self.purge_interval = purge_interval
        self.watched = 0
        self.delayed = 0
        self._lock = Lock()
        self._watchers: dict[Hashable, WatchList] = {}
        self._sweeping = Sweep()
        self._pending_watched = 0
        self._is_shut_down = False
        # Class of the last operation, which `check_kind` has accepted.
        self._kind: type[DelayedOperation] | None = None

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut_down else f"{self.delayed} waiting"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def _complete(self, watch: Watch, operation: DelayedOperation) -> bool:
        """Complete an operation of this purgatory; its `force_complete` calls this."""
        raise NotImplementedError

    def _expire(self, watch: Watch, operation: DelayedOperation) -> None:
        """Expire an operation at its deadline, or leave that to the thread that is trying it."""
        raise NotImplementedError

    def _check_caller(self) -> None:
        """Refuse a finalizer that may have interrupted the very call that it would wait for."""
        if self._lock.locked() and COLLECTOR.is_here():
            raise RuntimeError(
                f"a finalizer called purgatory {self.name!r}, and may be in the middle of a call "
                "that it interrupts; have a task of the timer do it"
            )

    def _watchers_of(self, key: Hashable) -> WatchList | None:
        """Return the list under the key, or None.  Lock held."""
        try:
            return self._watchers.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error

    def _begin_watch(
        self, watch: Watch, operation: DelayedOperation, keys: list[Hashable], ident: int
    ) -> bool:
        """Watch the operation and take the turn again; return False if it is completed."""
        with self._lock:
            if operation.is_completed:
                return False
            if self._is_shut_down:
                raise shut_down(self.name)
            watch.trier = ident
            watch.operation = operation
            watch.keys = keys
            self.delayed += 1
            for key in keys:
                watchers = self._watchers_of(key)
                if watchers is None:
                    watchers = WatchList(key)
                    self._watchers[key] = watchers
                if watchers.place == NOWHERE:
                    self._sweeping.add(watchers)
                items = watchers.items
                if items and items[-1] is watch:
                    continue  # the keys name it twice
                items.append(watch)
                watch.key_count += 1
                self.watched += 1
                self._pending_watched += 1
        return True

    def _leave(self, watch: Watch) -> None:
        """Take it out of the counters; the lists under its keys drop it when swept.  Lock held."""
        watch.operation = None
        self.delayed -= 1
        self._pending_watched -= watch.key_count
        watch.key_count = 0

    def _revoke(self, watch: Watch, ident: int) -> None:
        """Revoke the wait: a try under way in another thread cannot complete the operation."""
        watch.is_revoked = watch.trier not in (NOBODY, ident)
        self._leave(watch)

    def _take_out(self, watch: Watch, ident: int) -> bool:
        """Cancel one watch; return True if its operation waited.  Lock held."""
        was_waiting = watch.operation is not None
        if was_waiting:
            self._revoke(watch, ident)
        keys = watch.keys
        watch.keys = None
        steps = 0
        for key in keys or ():
            try:
                watchers = self._watchers.get(key)
            except Exception:
                continue  # The key can no longer be hashed or compared; a purge drops it.
            if watchers is None:
                continue
            # Leave a longer list to the purges: only a small watch stays in it.
            steps += 1 + len(watchers.items)
            if steps > PART_MAX:
                break
            self._sweep(watchers, len(watchers.items))
        return was_waiting

    def _gather(
        self,
        items: list[Watch | None],
        number: int,
        found: dict[Watch, DelayedOperation],
        revoker: int,
    ) -> None:
        """Gather the waiting operations in a part of a list; revoke them if there is a revoker."""
        with self._lock:
            for watch in items[number : number + PART_MAX]:
                operation = None if watch is None else watch.operation
                if watch is not None and operation is not None:
                    found[watch] = operation
                    if revoker != NOBODY:
                        self._revoke(watch, revoker)

    def _is_purge_due(self) -> bool:
        # A purge walks all watches.  It begins only when more are finished than pending, so it
        # costs a few steps a completion even with 10,000 waiting readers.
        pending = self._pending_watched
        if self._is_shut_down:
            return pending == 0 and len(self._watchers) > 0
        finished = self.watched - pending
        return (finished > self.purge_interval and finished > pending) or self._sweeping.number > 0

    def _purge_part(self) -> None:
        """Sweep a part of the lists.  Lock held."""
        steps = 0
        while steps < PART_MAX:
            watchers = self._sweeping.next()
            if watchers is None:
                return
            length = len(watchers.items)
            steps += 1 + length
            self._sweep(watchers, length)

    def _drop_part(self) -> None:
        """Drop a part of the lists after a shutdown, without a look-up of each key.  Lock held."""
        self._sweeping.clear()
        steps = 0
        while self._watchers and steps < PART_MAX:
            _, watchers = self._watchers.popitem()
            steps += 1 + len(watchers.items)
            self.watched -= watchers.clear()

    def _sweep(self, watchers: Watchers, end: int) -> None:
        """Drop the watches before `end` that do not wait any more; drop the key if none is left.

        Lock held.
        """
        self.watched -= watchers.sweep(end)
        if len(watchers) == 0:
            self._forget(watchers)

    def _forget(self, watchers: Watchers) -> None:
        """Drop a key without watches.  Lock held."""
        self._sweeping.remove(watchers)
        if self.watched == 0:
            self._watchers.clear()
            return
        try:
            if self._watchers.get(watchers.key) is watchers:
                del self._watchers[watchers.key]
        except Exception:
            # No operation can be found by a key that can no longer be hashed or compared.  It stays
            # until there are no watches at all.
            return


def raise_all(errors: list[BaseException]) -> None:
    """Raise the error of operations' code, or several as a group; return if there is none."""
    if len(errors) == 1:
        # Pop the error: a list in a frame of its traceback would keep the error alive.
        raise errors.pop()
    if errors:
        raise _group(errors)


def _group(errors: list[BaseException]) -> BaseException:
    group = BaseExceptionGroup(f"{len(errors)} errors of delayed operations", tuple(errors))
    errors.clear()
    return group
