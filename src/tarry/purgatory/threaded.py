"""Threaded purgatory: delayed operations for any number of threads, after Kafka's.

Invariants, whichever threads race:

* an operation completes once, and `try_complete`, `on_complete` and `on_expiration` of one
  operation never run in two threads at a time: its own code needs no lock for its own state;
* no lock is held while any of them runs, nor while the timer is called.  No thread waits for
  another one, so there can be no deadlock (KAFKA-2253, 3994, 5970, 6042, 8334);
* no check is lost (KAFKA-6653).  A thread that finds an operation being tried leaves its work to
  the trying thread, which does it at the end of its try: one more try for a check, the expiry for a
  deadline, `on_complete` for a `force_complete` (which has returned True by then).  Errors of that
  work reach the thread that does it: its caller, or the timer's `on_error` for a deadline.  A
  thread that gets such work again and again gives it to the timer's executor;
* if an error occurs between a completion and its `on_complete`, the answer is given all the same;
* no thread blocks the others for longer than a walk over a thousand watches takes: a longer walk
  goes in parts, and between them the others get the lock and the interpreter;
* a completed operation is not kept alive: the keys hold small watches, which drop their operation
  at once and are removed by checks and purges (KAFKA-19389, KAFKA-19763).

The code under the lock is the purgatory's own and short, except `__hash__` and `__eq__` of the
keys, which are plain values.  The lock is not reentrant: a signal handler must not call the
purgatory or the timer.  A finalizer (`__del__`, a callback of `weakref`) that the collector runs is
refused if the lock is taken, because it may interrupt the very call that it would wait for.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from threading import get_ident
from typing import Final

from tarry.purgatory.operation import (
    DelayedOperation,
    check_kind,
    key_list_of,
    not_completed,
    shut_down,
    why_not_cancelled,
    why_not_taken,
)
from tarry.purgatory.watch import (
    ANSWER,
    EXPIRE,
    LEAVE,
    NOBODY,
    NOTHING,
    PART_MAX,
    REPEATS_MAX,
    TRY,
    Watch,
    WatchTable,
    raise_all,
)
from tarry.timer.collector import COLLECTOR
from tarry.timer.system_timer import SystemTimer

FOR_EVER: Final = -(1 << 60)


class ThreadedPurgatory(WatchTable):
    """Purgatory of one kind of operation, in any number of threads.  `name` is for logs and errors.

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
        "completed_total",
        "expired_total",
        "timer",
    )

    def __init__(self, timer: SystemTimer, name: str, purge_interval: int = 1000) -> None:
        if not isinstance(timer, SystemTimer):
            raise TypeError(
                f"a ThreadedPurgatory runs on a SystemTimer, not on {timer!r}; Purgatory runs on a "
                "TimingWheel"
            )
        super().__init__(name, purge_interval)
        self.timer = timer
        self.completed_total = 0
        self.expired_total = 0
        COLLECTOR.listen()

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Try an operation, and watch it under every key until its deadline if it is not ready.
        Return True if it is completed.

        An operation whose deadline has passed already expires in the timer's executor.  False,
        too, for an operation that was cancelled meanwhile, even by its own second try; it does not
        wait.  If anything raises, the operation does not wait.  Raises ValueError for an operation
        that was handed in before or no keys, TypeError for a key that cannot be hashed
        or a class without `on_complete`, PurgatoryShutDown, TimerShutDown if it was the timer, and
        any error of its own code.
        """
        key_list = keys if isinstance(keys, list) else key_list_of(keys)
        ident = get_ident()
        watch = Watch(self, ident)
        self._check_caller()
        kind = type(operation)
        if kind is not self._kind:
            check_kind(kind)
            self._kind = kind
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
        """Try the operations under the key, oldest first; return how many completed here.

        With a limit the walk ends after so many completions: a result equal to the limit means
        that there may be more, and the caller checks the key again later.  Errors of operations'
        code are raised after all others have been tried, several as an ExceptionGroup.
        """
        if limit is not None and limit <= 0:
            return 0
        self._check_caller()
        with self._lock:
            watchers = self._watchers_of(key)
            if watchers is None:
                return 0
            # The walk ends at the present end; operations that are added meanwhile come behind it.
            items: list[Watch | None] = watchers.items
            number = watchers.head
            end = len(items)
        ident = get_ident()
        completed = 0
        has_finished = False
        errors: list[BaseException] = []
        try:
            while number < end:
                watch = items[number]
                number += 1
                operation = None if watch is None else watch.operation
                if watch is None or operation is None:
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
                with self._lock:
                    if watchers.items is items:
                        self._sweep(watchers, number)
                    elif limit is None:
                        self._sweep(watchers, len(watchers.items))
        raise_all(errors)
        return completed

    def cancel(self, operation: DelayedOperation) -> bool:
        """Remove one operation from its keys and from the timer, at once; return True if it waited.

        It is not completed: the caller answers, or calls `force_complete`.  If another thread is
        trying the operation, that try cannot complete it any more.  Raises ValueError for an
        operation of another purgatory.
        """
        self._check_caller()
        watch = operation._keeper
        if watch is None:
            return False
        if not isinstance(watch, Watch) or watch.purgatory is not self:
            raise why_not_cancelled()
        with self._lock:
            was_waiting = self._take_out(watch, get_ident())
        if was_waiting:
            self.timer.cancel(operation)
        self._maybe_purge()
        return was_waiting

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove the operations that wait under the key, from the timer and their other keys too.

        They are not completed: the caller answers, or calls `force_complete`.  If another thread
        is trying one of them, that try cannot complete it any more.
        """
        cancelled: list[DelayedOperation] = []
        self._check_caller()
        with self._lock:
            watchers = self._watchers_of(key)
            if watchers is None:
                return cancelled
            # Operations that come later are not cancelled, and no other thread finds this list now.
            del self._watchers[key]
            self._sweeping.remove(watchers)
            items = watchers.items
        ident = get_ident()
        number = 0
        try:
            while number < len(items):
                if number > 0:
                    step_back()
                found: dict[Watch, DelayedOperation] = {}
                self._gather(items, number, found, ident)
                cancelled.extend(found.values())
                for operation in found.values():
                    self.timer.cancel(operation)
                number += PART_MAX
        finally:
            with self._lock:
                self.watched -= watchers.clear()
        self._maybe_purge()
        return cancelled

    def shutdown(self, expire_pending: bool = False) -> int:
        """End all waits and take no more operations; return how many waited.

        They complete as at their deadline, here, or are dropped without an answer as if cancelled.
        An operation that another thread is trying at this moment is ended by that thread.  Checks
        and cancels find none from now on.  A second call does nothing and returns 0.
        """
        revoker = NOBODY if expire_pending else get_ident()
        pending: dict[Watch, DelayedOperation] = {}
        errors: list[BaseException] = []
        self._check_caller()
        with self._lock:
            self._is_shut_down = True
            lists = list(self._watchers.values())
        count = 0
        steps = 0
        for watchers in lists:
            items = watchers.items
            number = 0
            while number < len(items):
                found: dict[Watch, DelayedOperation] = {}
                self._gather(items, number, found, revoker)
                if expire_pending:
                    pending.update(found)
                else:
                    count += len(found)
                    self._cancel_all(found, errors)
                number += PART_MAX
                steps = another_step(steps + min(len(items), PART_MAX))
        if expire_pending:
            for watch, operation in pending.items():
                try:
                    self._expire(watch, operation)
                except Exception as error:
                    errors.append(error)
                steps = another_step(steps)
        self._maybe_purge()
        raise_all(errors)
        return count + len(pending)

    def _cancel_all(
        self, found: dict[Watch, DelayedOperation], errors: list[BaseException]
    ) -> None:
        for operation in found.values():
            try:
                self.timer.cancel(operation)
            except Exception as error:
                errors.append(error)

    # -- turns: the thread that runs the code of an operation -----------------------------------

    def _try(self, watch: Watch, operation: DelayedOperation, ident: int) -> bool:
        """Try an operation, or leave the try to the thread that is trying it."""
        with self._lock:
            trier = watch.trier
            if watch.operation is None:
                return False
            if trier == ident:  # from inside its own try
                watch.is_nested = True
                return False
            watch.is_asked = trier != NOBODY
            if trier != NOBODY:
                return False
            watch.trier = ident
        return self._run_turn(watch, operation, TRY)

    def _expire(self, watch: Watch, operation: DelayedOperation) -> None:
        """Expire an operation at its deadline, or leave that to the thread that is trying it."""
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
        if trier == ident:  # from inside its own try
            self._end_expired(watch, operation)
        else:
            self._run_turn(watch, operation, EXPIRE)

    def _run_turn(
        self, watch: Watch, operation: DelayedOperation, work: int, repeats: int = 0
    ) -> bool:
        """Do the work, then the work that other threads have left; return True if a try here
        completed the operation.
        """
        ident = watch.trier
        is_done = False
        errors: list[BaseException] | None = None
        while work != NOTHING:
            try:
                if work == TRY:
                    is_done = self._try_now(watch, operation)
                elif work == EXPIRE:
                    self._expire_now(watch, operation)
                elif work == ANSWER:
                    operation.on_complete()
                else:
                    self._leave_to_timer(watch)
                    break
            except BaseException as error:
                # No other thread will do the work left to this one, so do it before the error is
                # raised.
                errors = [error] if errors is None else [*errors, error]
            if work == LEAVE or watch.trier != ident:
                break  # completed, which ends the turn
            with self._lock:
                work = watch.next_work(repeats)
            repeats += 1
        if errors is not None:
            raise_all(errors)
        return is_done

    def _leave_to_timer(self, watch: Watch) -> None:
        """Give the remaining try to the timer's executor."""
        try:
            self.timer.call_later(0, self._take_up, watch)
        except Exception:
            # The timer was shut down: only this thread can do it.
            self._take_up(watch, FOR_EVER)

    def _take_up(self, watch: Watch, repeats: int = 0) -> None:
        """Do a try that was left, unless another thread has done it or is trying."""
        with self._lock:
            watch.is_left = False
            operation = watch.operation
            if operation is None or not watch.is_asked or watch.trier != NOBODY:
                return
            watch.is_asked = False
            watch.trier = get_ident()
        self._run_turn(watch, operation, TRY, repeats)

    def _try_now(self, watch: Watch, operation: DelayedOperation) -> bool:
        """Try an operation in this thread, which has its turn."""
        is_done = False
        try:
            is_done = operation.try_complete()
        finally:
            if watch.is_nested:
                is_done = self._try_again(watch, operation, is_done)
        if is_done and not operation.is_completed:
            raise not_completed()
        return is_done

    def _try_again(self, watch: Watch, operation: DelayedOperation, is_done: bool) -> bool:
        """Repeat the try for checks from inside it; a condition that always checks is stopped."""
        repeats = 0
        try:
            while watch.is_nested and watch.is_waiting() and repeats < REPEATS_MAX:
                repeats += 1
                watch.is_nested = False
                is_done = operation.try_complete()
        finally:
            watch.is_nested = False
        return is_done

    def _expire_now(self, watch: Watch, operation: DelayedOperation) -> None:
        """Expire an operation in this thread, which has its turn."""
        try:
            # Try once more, since a change may not have been checked yet: what has arrived counts.
            self._try_now(watch, operation)
        finally:
            self._end_expired(watch, operation)

    def _end_expired(self, watch: Watch, operation: DelayedOperation) -> None:
        """End an operation that has expired, unless it has ended already."""
        is_expired = False
        try:
            with self._lock:
                is_expired = watch.operation is not None
                if is_expired:
                    operation.is_completed = True
                    watch.trier = NOBODY
                    self._leave(watch)
                    self.completed_total += 1
                    self.expired_total += 1
            if is_expired:
                if operation.is_pending:  # a shutdown ends it early
                    self.timer.cancel(operation)
                self._maybe_purge()
        finally:
            if is_expired:
                operation.on_complete()
                operation.on_expiration()

    def _complete(self, watch: Watch, operation: DelayedOperation) -> bool:
        """Complete an operation of this purgatory; its `force_complete` calls this."""
        self._check_caller()
        ident = get_ident()
        is_mine = False
        try:
            with self._lock:
                trier = watch.trier
                if operation.is_completed or (watch.is_revoked and trier == ident):
                    return False
                operation.is_completed = True
                is_mine = trier in (NOBODY, ident)
                if is_mine:
                    watch.trier = NOBODY
                else:
                    watch.is_owed = True
                was_waiting = watch.operation is not None
                if was_waiting:
                    self._leave(watch)
                    self.completed_total += 1
            if was_waiting:
                self.timer.cancel(operation)
                self._maybe_purge()
        finally:
            if is_mine:
                operation.on_complete()
        return True

    # -- watchers -------------------------------------------------------------------------------

    def _drop(self, watch: Watch) -> None:
        """Drop an operation that could not be handed in, so that it does not wait."""
        with self._lock:
            if watch.operation is None:
                return
            ident = get_ident()
            if watch.trier == ident:
                watch.trier = NOBODY
            self._revoke(watch, ident)
        self._maybe_purge()

    def _maybe_purge(self) -> None:
        """Sweep part of the watches if many are finished; drop all of them after a shutdown."""
        # Read without the lock: the last thread that changes the counts sees them right.
        while self._is_purge_due():
            with self._lock:
                if not self._is_shut_down:
                    self._purge_part()
                    return
                self._drop_part()
            step_back()


def step_back() -> None:
    """Let other threads run; compiled code never releases the interpreter by itself."""
    time.sleep(0)


def another_step(steps: int) -> int:
    """Return `steps` + 1; at PART_MAX let other threads run and return 0."""
    if steps < PART_MAX:
        return steps + 1
    step_back()
    return 0
