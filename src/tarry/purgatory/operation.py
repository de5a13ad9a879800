"""Delayed operation: a request that waits for a condition, until a deadline at most.

Invariant: an operation is pending, then completed, exactly once, whichever caller is first.  The
subclass defines the condition and the completion; the purgatory defines where it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from inspect import CO_COROUTINE
from typing import Generic, SupportsIndex, TypeVar, cast

from mypy_extensions import mypyc_attr

from tarry.timer.entry import TimerEntry

P = TypeVar("P")


@mypyc_attr(native_class=False)
class PurgatoryShutDown(RuntimeError):
    """The purgatory was shut down, and takes no more operations."""


class Keeper:
    """Keeper of an operation: the purgatory or the watch that completes it, exactly once."""

    __slots__ = ()

    def complete(self, operation: DelayedOperation) -> bool:
        """Complete without asking the condition; return True for the first caller only."""
        raise NotImplementedError

    def expire(self, operation: DelayedOperation) -> None:
        """Expire an operation at its deadline; try its condition once more before."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class OperationListener:
    """Listener to the completions of a `Purgatory`, which it is registered with by `listen`."""

    def on_completed(
        self, operation: DelayedOperation, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        """React to the completion of an operation that waited; `key` is its first.

        Its `on_complete` has not run yet.  A cancelled operation is not reported.  The purgatory
        calls this in the middle of its work: it must not raise, and must not call the purgatory.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerEntry):
    """A timer entry with a condition.  A subclass defines `try_complete` and `on_complete`.

    Both purgatories use this one class, after Kafka's.  An operation waits once, in one purgatory;
    if that is a `ThreadedPurgatory`, any thread may call `force_complete` at any time.

    A completed operation leaves the timer at once but stays under its other watch keys until these
    are checked or purged.  Therefore `on_complete` (or `on_expiration`, which comes last) must drop
    the data of the answer, or hours of answers stay in memory: KAFKA-19389, KAFKA-19763.
    `PayloadOperation` does that by itself.  A `ThreadedPurgatory` keeps no completed operation
    alive, even one that drops nothing.
    """

    __slots__ = (
        "_is_waiting",
        "_keeper",
        "_keys",
        "_walk",
        "_watch_count",
        "is_completed",
        "since_ms",
    )

    def __init__(self, deadline_ms: SupportsIndex) -> None:
        super().__init__(deadline_ms)
        self.is_completed = False
        # Time at which the wait in a `Purgatory` began, by the clock of its wheel.
        self.since_ms = 0
        # Notes of the purgatory: which one has taken the operation, whether it waits there, and
        # under how many keys.
        self._keeper: Keeper | None = None
        self._is_waiting = False
        # Keys that it is watched under, for a cancel.
        self._keys: list[Hashable] | None = None
        self._watch_count = 0
        # Number of the last walk over several keys that tried the operation.
        self._walk = 0

    def _described(self) -> str:
        waiting = "waiting" if self.is_pending else "not waiting"
        return f"due at {self.deadline_ms} ms, {'completed' if self.is_completed else waiting}"

    def try_complete(self) -> bool:
        """Return `self.force_complete()` if the condition holds, else False.

        The purgatory calls it; to cause a call, check one of the keys.  If it returns True for an
        operation that is not completed, the purgatory raises RuntimeError.  It looks and changes
        nothing: in a `Purgatory` it must not check its own keys.  In a `ThreadedPurgatory` such a
        check does not try the operation at once: the try is repeated at its end, twice at most.
        """
        return False

    def force_complete(self) -> bool:
        """Complete without asking the condition; return True for the first caller only."""
        keeper = self._keeper
        if keeper is not None:
            return keeper.complete(self)
        # No purgatory has taken it yet.  Threads may race here too: the interpreter does not switch
        # threads between the look at the keeper and the mark.
        if self.is_completed:
            return False
        self.is_completed = True
        self.on_complete()
        return True

    def on_complete(self) -> None:
        """Answer, and drop the data of the answer.  Runs once, out of the timer already.

        It may check keys; their completions then run inside it.  A chain of a hundred operations
        that each check the next one's key is as deep as the stack allows; for longer chains leave
        the check to the timer's executor or the loop.
        """

    def on_expiration(self) -> None:
        """React to a completion by the deadline, not the condition; runs after `on_complete`."""

    def expire(self) -> None:
        """Expire at the deadline, even if the condition raises; the timer's caller calls it."""
        keeper = self._keeper
        if keeper is not None:
            keeper.expire(self)
            return
        try:
            # Try once more, since a change may not have been checked yet: what has arrived counts.
            self.try_complete()
        finally:
            if self.force_complete():
                self.on_expiration()


@mypyc_attr(allow_interpreted_subclasses=True)
class PayloadOperation(DelayedOperation, Generic[P]):
    """Delayed operation that holds the data of its answer as its payload, until it completes.

    A subclass defines `is_ready` and `complete_with`.  `payload` is None from the completion on, so
    none of it stays in memory while the operation lies under its keys.
    """

    __slots__ = ("payload",)

    def __init__(self, deadline_ms: SupportsIndex, payload: P) -> None:
        super().__init__(deadline_ms)
        self.payload: P | None = payload

    def is_ready(self, payload: P) -> bool:
        """Return True if the condition holds; the default waits until the deadline."""
        return False

    def complete_with(self, payload: P) -> None:
        """Answer with the payload.  Runs once: by condition, deadline or `force_complete`."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        if self.is_completed:
            return False
        return self.is_ready(cast(P, self.payload)) and self.force_complete()

    def on_complete(self) -> None:
        payload = cast(P, self.payload)
        self.payload = None
        self.complete_with(payload)


def check_kind(kind: type[DelayedOperation]) -> None:
    """Refuse a class of operations that lacks its completion or has a coroutine function."""
    methods: list[Callable[..., object]] = [kind.try_complete, kind.on_complete, kind.on_expiration]
    if kind.on_complete is DelayedOperation.on_complete:
        raise _unanswered(kind, "on_complete")
    if issubclass(kind, PayloadOperation):
        if kind.complete_with is PayloadOperation.complete_with:
            raise _unanswered(kind, "complete_with")
        methods += [kind.is_ready, kind.complete_with]
    for method in methods:
        code = getattr(method, "__code__", None)
        if code is not None and code.co_flags & CO_COROUTINE:
            raise TypeError(
                f"{method.__qualname__} is a coroutine function, which a purgatory calls and does "
                "not await; define it without async"
            )


def _unanswered(kind: type[DelayedOperation], method: str) -> TypeError:
    return TypeError(
        f"{kind.__name__} has no {method}, so nobody who waits for it would be answered; "
        f"define {method} in the class"
    )


def why_not_cancelled() -> ValueError:
    """Return the error for cancelling an operation of another purgatory."""
    return ValueError(
        "the operation was handed to another purgatory; only that one cancels the operation"
    )


def why_not_taken(operation: DelayedOperation) -> ValueError:
    """Return the error for an operation that waits or has waited, or that has no keys."""
    if operation._keeper is not None:
        return ValueError(
            "an operation waits once, and this one was handed to a purgatory before; make a new one"
        )
    if operation._holder is not None:
        return ValueError(
            "the operation is pending in a timer already; the purgatory adds it to its own"
        )
    return ValueError(
        "no keys: an operation is watched under at least one, or nothing could complete it "
        "before its deadline"
    )


def key_list_of(keys: Sequence[Hashable]) -> list[Hashable]:
    """Return the keys as a list; refuse a string, whose letters would be the keys."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"keys is a list of keys, not a string: [{keys!r}]")
    return list(keys)


def not_completed() -> RuntimeError:
    """Return the error for a `try_complete` that returned True without a completion."""
    return RuntimeError(
        "try_complete answered True for an operation that is not completed; end it with "
        "`return self.force_complete()`"
    )


def unhashable(key: object, cause: TypeError) -> TypeError:
    """Return the error for a key that cannot be hashed."""
    error = TypeError(
        f"{key!r} cannot be hashed; a key is a plain value such as a str, an int or a tuple of them"
    )
    error.__cause__ = cause  # mypyc leaves out what stands after `raise ... from`
    return error


def shut_down(name: str) -> PurgatoryShutDown:
    """Return the error for an operation that comes after the shutdown."""
    return PurgatoryShutDown(
        f"purgatory {name} was shut down and takes no operation any more; complete the operation "
        "by force_complete() or make a new purgatory"
    )
