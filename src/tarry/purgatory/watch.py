"""Watches: what stands for operations under their keys in a purgatory of many threads.

A lock guards them and the counters.  Nothing here runs the code of an operation.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from librt.threading import Lock

from tarry.purgatory.operation import DelayedOperation, Keeper, shut_down, unhashable
from tarry.purgatory.watchers import NOWHERE, Sweep, Watchers
from tarry.timer.collector import COLLECTOR

# Nobody's turn.  Identifiers of threads are not zero.
NOBODY: Final = 0

# What a turn does next.
NOTHING: Final = 0
TRY: Final = 1
EXPIRE: Final = 2
ANSWER: Final = 3
LEAVE: Final = 4

# How often a try is repeated for whoever checks meanwhile, and for its own checks.
REPEATS_MAX: Final = 2

# With the lock held so many watches are gone through, and in a purge the last of its lists whole.
PART_MAX: Final = 1000


class Watch(Keeper):
    """Watch that stands for an operation under its keys, and knows whose turn it is to run its
    code.

    `operation` is set while that waits.  Guarded by the lock of the purgatory; the one thread
    that has the turn may look at `trier` without, because nobody else ends its turn.
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
        # What it lies under, for a cancel.
        self.keys: list[Hashable] | None = None
        self.key_count = 0
        # What others left to the one who is trying: a try, the expiry, `on_complete`.
        self.is_asked = False
        self.is_due = False
        self.is_owed = False
        # The try is left to the timer's executor, which has not come to it yet.
        self.is_left = False
        # The thread that tries checked a key of the operation from inside the try.
        self.is_nested = False
        # Cancelled by another thread during a try, which therefore must not complete it any more.
        self.is_revoked = False

    def is_waiting(self) -> bool:
        """Return true if the operation waits.  A call: what another thread changes is looked up
        anew.
        """
        return self.operation is not None

    def next_work(self, repeats: int) -> int:
        """Return what was left to the thread that has the turn; NOTHING and LEAVE end the turn.

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
                # Those who check are no reason to keep this thread from what it is here for.
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
    """The watches under one key."""

    __slots__ = ()

    def pending_of(self, items: list[Any]) -> list[Any]:
        watches: list[Watch | None] = items
        return [watch for watch in watches if watch is not None and watch.operation is not None]


class WatchTable:
    """The watches of a purgatory by key, and the counters of them."""

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
        # The class that was taken last, and so is known to be complete.
        self._kind: type[DelayedOperation] | None = None

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut_down else f"{self.delayed} waiting"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def _complete(self, watch: Watch, operation: DelayedOperation) -> bool:
        """Complete an operation that was handed to this purgatory, for its `force_complete`."""
        raise NotImplementedError

    def _expire(self, watch: Watch, operation: DelayedOperation) -> None:
        """Expire an operation whose deadline has come, or leave that to a thread that tries."""
        raise NotImplementedError

    def _check_caller(self) -> None:
        """Refuse a finalizer that would wait for a call that it interrupted itself."""
        if self._lock.locked() and COLLECTOR.is_here():
            raise RuntimeError(
                f"a finalizer called purgatory {self.name!r}, and may be in the middle of a call "
                "that it interrupts; have a task of the timer do it"
            )

    def _watchers_of(self, key: Hashable) -> WatchList | None:
        """Lock held."""
        try:
            return self._watchers.get(key)
        except TypeError as error:
            raise unhashable(key, error) from error

    def _begin_watch(
        self, watch: Watch, operation: DelayedOperation, keys: list[Hashable], ident: int
    ) -> bool:
        """Watch it and take the turn again; False: it is completed."""
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
                    continue  # the same key named twice
                items.append(watch)
                watch.key_count += 1
                self.watched += 1
                self._pending_watched += 1
        return True

    def _leave(self, watch: Watch) -> None:
        """Out of the counters; the lists under its keys forget it when swept.  Lock held."""
        watch.operation = None
        self.delayed -= 1
        self._pending_watched -= watch.key_count
        watch.key_count = 0

    def _revoke(self, watch: Watch, ident: int) -> None:
        """Revoke the wait: a try under way in another thread completes the operation no more."""
        watch.is_revoked = watch.trier not in (NOBODY, ident)
        self._leave(watch)

    def _take_out(self, watch: Watch, ident: int) -> bool:
        """Cancel one watch; True if its operation waited.  Lock held."""
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
                continue  # It can no longer be hashed or compared; the next purge comes by.
            if watchers is None:
                continue
            # What is longer than a part is left to the purges: only a small watch lies there.
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
        """Gather what waits in a part of a list, and revoke it if this thread is to do so."""
        with self._lock:
            for watch in items[number : number + PART_MAX]:
                operation = None if watch is None else watch.operation
                if watch is not None and operation is not None:
                    found[watch] = operation
                    if revoker != NOBODY:
                        self._revoke(watch, revoker)

    def _is_purge_due(self) -> bool:
        # A purge walks all that is watched: never for fewer finished watchers than there are
        # pending ones, so that it costs a few steps a completion with 10,000 waiting readers.
        pending = self._pending_watched
        if self._is_shut_down:
            return pending == 0 and len(self._watchers) > 0
        finished = self.watched - pending
        return (finished > self.purge_interval and finished > pending) or self._sweeping.number > 0

    def _purge_part(self) -> None:
        """Lock held."""
        steps = 0
        while steps < PART_MAX:
            watchers = self._sweeping.next()
            if watchers is None:
                return
            length = len(watchers.items)
            steps += 1 + length
            self._sweep(watchers, length)

    def _drop_part(self) -> None:
        """After a shutdown nothing waits, and no key needs to be looked up.  Lock held."""
        self._sweeping.clear()
        steps = 0
        while self._watchers and steps < PART_MAX:
            _, watchers = self._watchers.popitem()
            steps += 1 + len(watchers.items)
            self.watched -= watchers.clear()

    def _sweep(self, watchers: Watchers, end: int) -> None:
        """Drop the watches before `end` that do not wait any more, and the key with the last.

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
            # A key that can no longer be hashed or compared concerns nobody who gets here.  It
            # stays until nothing is watched.
            return


def raise_all(errors: list[BaseException]) -> None:
    """Raise what the code of operations has raised: the error, or several as a group."""
    if len(errors) == 1:
        # Popped, lest a list in a frame of the error's traceback keep the error alive.
        raise errors.pop()
    if errors:
        raise _group(errors)


def _group(errors: list[BaseException]) -> BaseException:
    group = BaseExceptionGroup(f"{len(errors)} errors of delayed operations", tuple(errors))
    errors.clear()
    return group
