"""Threaded purgatory: delayed operations for any number of threads, after Kafka's.

Invariants, whoever races:

* an operation completes once, and `try_complete`, `on_complete` and `on_expiration` of one
  operation never run in two threads at a time: its own code needs no lock for its own state;
* no lock is held while any of them runs, nor while the timer is called.  Nothing waits for
  another thread, so there is nothing to deadlock (KAFKA-2253, 3994, 5970, 6042, 8334);
* no check is lost (KAFKA-6653): who finds an operation being tried leaves word, and whoever is
  trying does it when his try is over.  That is one more try for a check, the expiry for a
  deadline, and `on_complete` for a `force_complete`, which has answered True by then.  Their
  errors reach who runs them: whoever checked, or for the deadline the timer's `on_error`;
* what has completed is not kept alive: under the keys lie small watches, which let go of their
  operation at once and are dropped by checks and purges (KAFKA-19389, KAFKA-19763).

What runs under the lock is ours and short, but for `__hash__` and `__eq__` of the keys: these are
plain values.  The lock is not reentrant: signal handlers stay away from here, as from the timer,
and a finalizer (`__del__`, a callback of `weakref`) that the collector runs is refused if the
lock is taken, for it may be in the middle of a call that it would wait for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import get_ident
from typing import Final

from librt.threading import Lock

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
from tarry.timer.collector import COLLECTOR
from tarry.timer.system_timer import SystemTimer

# What a turn does next.
NOTHING: Final = 0
TRY: Final = 1
EXPIRE: Final = 2
ANSWER: Final = 3

# Nobody's turn.  Identifiers of threads are not zero.
NOBODY: Final = 0


class Watch(Keeper):
    """What stands for an operation under its keys, and knows whose turn it is to run its code.

    `operation` is set while that waits.  Guarded by the lock of the purgatory; the one thread
    that has the turn may look at `trier` without, because nobody else ends its turn.
    """

    __slots__ = (
        "is_asked",
        "is_due",
        "is_owed",
        "is_revoked",
        "key_count",
        "operation",
        "purgatory",
        "trier",
    )

    def __init__(self, purgatory: ThreadedPurgatory, trier: int) -> None:
        self.purgatory = purgatory
        self.trier = trier
        self.operation: DelayedOperation | None = None
        self.key_count = 0
        # What others left to the one who is trying: a try, the expiry, `on_complete`.
        self.is_asked = False
        self.is_due = False
        self.is_owed = False
        # Cancelled by another thread during a try, which therefore must not complete it any more.
        self.is_revoked = False

    def is_waiting(self) -> bool:
        """Whether the operation waits.  A call: what another thread changes is looked up anew."""
        return self.operation is not None

    def complete(self, operation: DelayedOperation) -> bool:
        return self.purgatory._complete(self, operation)

    def expire(self, operation: DelayedOperation) -> None:
        self.purgatory._expire(self, operation)


class ThreadedPurgatory:
    """One kind of operation, in any number of threads.  `name` is for logs and errors.

    Deadlines are on the clock of the timer, which may be shared and is not shut down here: end
    the purgatory first, then the timer.  `watched` counts watchers, one for each key of an
    operation, `delayed` the operations that wait; `completed_total` counts every operation that
    waited here and has completed, `expired_total` those of them that the deadline completed.
    Completed operations are watched until a check of the key, or until more than
    `purge_interval` of them, and more than there are pending ones, have gathered.

    A signal handler must not call it.  A finalizer (`__del__`, a callback of `weakref`) that the
    garbage collector runs in the middle of a call gets a RuntimeError: have a task of the timer
    do it.
    """

    __slots__ = (
        "_is_purging",
        "_is_shut_down",
        "_lock",
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

    def __init__(self, timer: SystemTimer, name: str, purge_interval: int = 1000) -> None:
        if not isinstance(timer, SystemTimer):
            raise TypeError(
                f"a ThreadedPurgatory runs on a SystemTimer, not on {timer!r}; Purgatory runs on a "
                "TimingWheel"
            )
        self.timer = timer
        self.name = name
        self.purge_interval = purge_interval
        self.watched = 0
        self.delayed = 0
        self.completed_total = 0
        self.expired_total = 0
        self._lock = Lock()
        self._watchers: dict[Hashable, list[Watch]] = {}
        self._pending_watched = 0
        self._is_purging = False
        self._is_shut_down = False
        COLLECTOR.listen()

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """True: it is completed.  Else it is watched under every key and timed.

        An operation whose deadline has passed already expires in the timer's executor.  If
        anything raises, the operation does not wait.  Raises ValueError for an operation that was
        handed in before or no keys, TypeError for a key that cannot be hashed, PurgatoryShutDown,
        TimerShutDown if it was the timer, and what its own code raised.
        """
        key_list = keys if isinstance(keys, list) else key_list_of(keys)
        ident = get_ident()
        watch = Watch(self, ident)
        self._check_caller()
        with self._lock:
            if operation._keeper is not None or operation._holder is not None or not key_list:
                raise why_not_taken(operation)
            if self._is_shut_down:
                raise shut_down(self.name)
            operation._keeper = watch
            if operation.is_completed:
                return True
        self._run_turn(watch, operation, TRY)
        try:
            if not self._begin_watch(watch, operation, key_list, ident):
                return True
            # The state may have changed between the first try and the watch.
            self._run_turn(watch, operation, TRY)
            if watch.is_waiting():
                self.timer.add(operation)
                if not watch.is_waiting():  # ended by another thread before it was in the timer
                    self.timer.cancel(operation)
        except BaseException:
            self._drop(watch)
            raise
        return operation.is_completed

    def check_and_complete(self, key: Hashable, limit: int | None = None) -> int:
        """Try what waits under the key, oldest first; how many completed here.

        With a limit the walk ends after so many completions: a result equal to the limit means
        that there may be more, and the caller checks the key again later.  Raises what the code of
        operations raised, several errors as an ExceptionGroup, when all others have been tried.
        """
        if limit is not None and limit <= 0:
            return 0
        self._check_caller()
        with self._lock:
            watchers = self._watchers_of(key)
            if watchers is None:
                return 0
            walk = watchers.copy()
        ident = get_ident()
        completed = 0
        has_finished = False
        errors: list[BaseException] = []
        try:
            for watch in walk:
                operation = watch.operation
                if operation is None:
                    has_finished = True
                    continue
                try:
                    if self._try(watch, operation, ident):
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

        Nothing is completed: whoever cancels answers, or calls `force_complete`.  An operation
        that another thread is trying is no longer completed by that try.
        """
        cancelled: list[DelayedOperation] = []
        self._check_caller()
        with self._lock:
            for watch in self._watchers_of(key) or []:
                operation = watch.operation
                if operation is not None:
                    cancelled.append(operation)
                    self._revoke(watch)
        for operation in cancelled:
            self.timer.cancel(operation)
        self._sweep(key)
        self._maybe_purge()
        return cancelled

    def shutdown(self, expire_pending: bool = False) -> int:
        """End what waits and take nothing any more; how many operations that were.

        They complete as at their deadline, here, or are dropped without an answer as if
        cancelled.  What another thread is trying at this moment is ended by that thread.  Checks
        and cancels find nothing from now on.  Again: nothing to do, 0.
        """
        pending: dict[Watch, DelayedOperation] = {}
        self._check_caller()
        with self._lock:
            self._is_shut_down = True
            for watchers in self._watchers.values():
                for watch in watchers:
                    operation = watch.operation
                    if operation is not None:
                        pending[watch] = operation
            if not expire_pending:
                for watch in pending:
                    self._revoke(watch)
        errors: list[BaseException] = []
        for watch, operation in pending.items():
            if not expire_pending:
                self.timer.cancel(operation)
                continue
            try:
                self._expire(watch, operation)
            except Exception as error:
                errors.append(error)
        self._maybe_purge()
        raise_all(errors)
        return len(pending)

    # -- turns: who runs the code of an operation -----------------------------------------------

    def _try(self, watch: Watch, operation: DelayedOperation, ident: int) -> bool:
        """Try, or leave word to who is trying."""
        with self._lock:
            trier = watch.trier
            if watch.operation is None:
                return False
            if trier == NOBODY:
                watch.trier = ident
            elif trier != ident:
                watch.is_asked = True
                return False
        if trier == ident:
            return try_now(operation)  # from inside its own try
        return self._run_turn(watch, operation, TRY)

    def _expire(self, watch: Watch, operation: DelayedOperation) -> None:
        """The deadline has come: expire it, or leave that to who is trying."""
        self._check_caller()
        ident = get_ident()
        with self._lock:
            trier = watch.trier
            if watch.operation is None:
                return
            if trier == NOBODY:
                watch.trier = ident
            elif trier != ident:
                watch.is_due = True
                return
        if trier == ident:
            self._expire_now(watch, operation)
        else:
            self._run_turn(watch, operation, EXPIRE)

    def _run_turn(self, watch: Watch, operation: DelayedOperation, work: int) -> bool:
        """Do the work, then what others have left meanwhile; True: a try here completed it."""
        ident = watch.trier
        is_done = False
        errors: list[BaseException] | None = None
        while work != NOTHING:
            try:
                if work == TRY:
                    is_done = try_now(operation)
                elif work == EXPIRE:
                    self._expire_now(watch, operation)
                else:
                    operation.on_complete()
            except BaseException as error:
                # What was left to this thread is nobody else's any more: it is done first.
                errors = [error] if errors is None else [*errors, error]
            if watch.trier != ident:
                break  # completed, which ends the turn
            work = self._next_work(watch)
        if errors is not None:
            raise_all(errors)
        return is_done

    def _next_work(self, watch: Watch) -> int:
        """What was left to the thread that has the turn; NOTHING ends the turn."""
        with self._lock:
            if watch.is_owed:
                watch.is_owed = False
                return ANSWER
            if watch.operation is not None:
                if watch.is_due:
                    return EXPIRE  # which ends the wait
                if watch.is_asked:
                    watch.is_asked = False
                    return TRY
            watch.trier = NOBODY
            return NOTHING

    def _expire_now(self, watch: Watch, operation: DelayedOperation) -> None:
        """Expire it in this thread, whose turn it is."""
        try:
            # The condition may hold while its key waits to be checked: what has arrived counts.
            try_now(operation)
        finally:
            with self._lock:
                is_expired = watch.operation is not None
                if is_expired:
                    operation.is_completed = True
                    watch.trier = NOBODY
                    self._leave(watch)
                    self.completed_total += 1
                    self.expired_total += 1
            if is_expired:
                if operation.is_pending:  # a shutdown is early
                    self.timer.cancel(operation)
                self._maybe_purge()
                operation.on_complete()
                operation.on_expiration()

    def _complete(self, watch: Watch, operation: DelayedOperation) -> bool:
        """What `force_complete` of an operation does that was handed to this purgatory."""
        self._check_caller()
        ident = get_ident()
        with self._lock:
            trier = watch.trier
            if operation.is_completed or (watch.is_revoked and trier == ident):
                return False
            operation.is_completed = True
            is_owed = trier not in (NOBODY, ident)
            watch.is_owed = is_owed
            if not is_owed:
                watch.trier = NOBODY
            was_waiting = watch.operation is not None
            if was_waiting:
                self._leave(watch)
                self.completed_total += 1
        if was_waiting:
            self.timer.cancel(operation)
            self._maybe_purge()
        if not is_owed:
            operation.on_complete()
        return True

    def _check_caller(self) -> None:
        """Refuse a finalizer that would wait for a call that it interrupted itself."""
        if self._lock.locked() and COLLECTOR.is_here():
            raise RuntimeError(
                f"a finalizer called purgatory {self.name!r}, and may be in the middle of a call "
                "that it interrupts; have a task of the timer do it"
            )

    # -- watchers -------------------------------------------------------------------------------

    def _watchers_of(self, key: Hashable) -> list[Watch] | None:
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
            self.delayed += 1
            for key in keys:
                watchers = self._watchers_of(key)
                if watchers is None:
                    self._watchers[key] = [watch]
                elif watchers[-1] is watch:
                    continue  # the same key named twice
                else:
                    watchers.append(watch)
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

    def _revoke(self, watch: Watch) -> None:
        """It waits no more, and a try under way in another thread completes it no more."""
        watch.is_revoked = watch.trier not in (NOBODY, get_ident())
        self._leave(watch)

    def _drop(self, watch: Watch) -> None:
        """What could not be handed in does not wait."""
        with self._lock:
            if watch.operation is None:
                return
            if watch.trier == get_ident():
                watch.trier = NOBODY
            self._revoke(watch)
        self._maybe_purge()

    def _sweep(self, key: Hashable) -> None:
        """Drop the watchers of a key that do not wait any more, and the key with the last."""
        with self._lock:
            watchers = self._watchers.get(key)
            if watchers is None:
                return
            pending = [watch for watch in watchers if watch.operation is not None]
            self.watched -= len(watchers) - len(pending)
            if pending:
                self._watchers[key] = pending
            else:
                del self._watchers[key]

    def _maybe_purge(self) -> None:
        """Sweep all keys if enough watchers are finished; one thread does, key by key."""
        # Looked at without the lock: the last of those who change the counts sees them right.
        while self._is_purge_due():
            with self._lock:
                if self._is_purging:
                    return  # that thread looks again
                self._is_purging = True
                keys = list(self._watchers)
            try:
                for key in keys:
                    self._sweep(key)
            finally:
                self._is_purging = False

    def _is_purge_due(self) -> bool:
        # A purge walks all that is watched: never for fewer finished watchers than there are
        # pending ones, so that it costs a few steps a completion with 10,000 waiting readers.
        pending = self._pending_watched
        finished = self.watched - pending
        if self._is_shut_down:
            return finished > 0 and pending == 0
        return finished > self.purge_interval and finished > pending


def try_now(operation: DelayedOperation) -> bool:
    """Try it in this thread, whose turn it is."""
    is_done = operation.try_complete()
    if is_done and not operation.is_completed:
        raise not_completed()
    return is_done
