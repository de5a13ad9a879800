"""Delayed operation: a request that waits for a condition, until a deadline at most.

Invariant: pending, then completed, once, by whoever gets there first.  What the condition is
and what completion means are the subclass's; where it waits is the purgatory's.
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
    """The purgatory was shut down, and takes no operation any more."""


class Keeper:
    """Keeper that an operation was handed to: all its completions go that way, to happen once."""

    __slots__ = ()

    def complete(self, operation: DelayedOperation) -> bool:
        """Complete without asking the condition; True for the first caller only."""
        raise NotImplementedError

    def expire(self, operation: DelayedOperation) -> None:
        """Expire an operation whose deadline has come: its condition is tried once more before."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class OperationListener:
    """Listener to the completions of a `Purgatory`, which it is registered with by `listen`."""

    def on_completed(
        self, operation: DelayedOperation, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        """React to the completion of an operation that waited; `key` is its first.

        Its `on_complete` has not run yet.  A cancelled operation is not reported.  This is called
        inside the purgatory: it must not raise, and must not come back into it.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerEntry):
    """A timer entry with a condition.  A subclass defines `try_complete` and `on_complete`.

    One class for both purgatories, after Kafka's.  It waits once, in one purgatory; if that is a
    `ThreadedPurgatory`, any thread may call `force_complete` at any time.

    Completed, it is out of the timer at once but lingers under its other watch keys until these
    are checked or purged.  So `on_complete` (or `on_expiration`, which comes last) drops what it
    answered with, or hours of answers stay in memory: KAFKA-19389, KAFKA-19763.
    `PayloadOperation` does that by itself.  A `ThreadedPurgatory` keeps nothing of a completed
    operation alive, whatever that forgot.
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
        # Since when it waits in a `Purgatory`, by the clock of that one's wheel.
        self.since_ms = 0
        # The purgatory's notes: which one it was handed to, whether it still waits there, under
        # how many keys.
        self._keeper: Keeper | None = None
        self._is_waiting = False
        # What it is watched under, for a cancel.
        self._keys: list[Hashable] | None = None
        self._watch_count = 0
        # The walk over several keys that has tried it last.
        self._walk = 0

    def _described(self) -> str:
        waiting = "waiting" if self.is_pending else "not waiting"
        return f"due at {self.deadline_ms} ms, {'completed' if self.is_completed else waiting}"

    def try_complete(self) -> bool:
        """Return `self.force_complete()` when the condition holds, else False.

        The purgatory calls it: to have it called, check one of the keys.  Answering True for an
        operation that is not completed is a RuntimeError there.  It looks and changes nothing: in
        a `Purgatory` it must not check its own keys.  In a `ThreadedPurgatory` such a check does
        not try it again there and then: when the try is over it is repeated, twice at most.
        """
        return False

    def force_complete(self) -> bool:
        """Complete without asking the condition; True for the first caller only."""
        keeper = self._keeper
        if keeper is not None:
            return keeper.complete(self)
        # Not in a purgatory yet.  Threads may race here too: the interpreter lets no other one in
        # between the look at the keeper and the mark.
        if self.is_completed:
            return False
        self.is_completed = True
        self.on_complete()
        return True

    def on_complete(self) -> None:
        """Answer, and drop what was needed for it.  Runs once, out of the timer already.

        It may check keys, of which the completions run inside it: a chain of a hundred operations
        that each check the next one's key is as deep as the stack allows, beyond that the timer's
        executor or the loop checks.
        """

    def on_expiration(self) -> None:
        """Runs after `on_complete` when the deadline, not the condition, completed it."""

    def expire(self) -> None:
        """Called by who advances the timer.  A condition that fails at last expires as well."""
        keeper = self._keeper
        if keeper is not None:
            keeper.expire(self)
            return
        try:
            # The condition may hold while its key waits to be checked: what has arrived counts.
            self.try_complete()
        finally:
            if self.force_complete():
                self.on_expiration()


@mypyc_attr(allow_interpreted_subclasses=True)
class PayloadOperation(DelayedOperation, Generic[P]):
    """Delayed operation that holds what it needs as its payload, and only until it completes.

    A subclass defines `is_ready` and `complete_with`.  `payload` is None from the completion on, so
    that nothing of it stays in memory while the operation lingers under its keys.
    """

    __slots__ = ("payload",)

    def __init__(self, deadline_ms: SupportsIndex, payload: P) -> None:
        super().__init__(deadline_ms)
        self.payload: P | None = payload

    def is_ready(self, payload: P) -> bool:
        """Return whether the condition holds; until the deadline it never does by default."""
        return False

    def complete_with(self, payload: P) -> None:
        """Answer.  Runs once, when the condition holds, at the deadline or by `force_complete`."""
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
    """Refuse a class of operations that would answer nobody."""
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
    """Make the error for what cannot wait: an operation that waits or waited, or no keys."""
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
    """Return the keys as a list; refuses a string, which would be watched letter by letter."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"keys is a list of keys, not a string: [{keys!r}]")
    return list(keys)


def not_completed() -> RuntimeError:
    """Make the error for a condition that says what is not so."""
    return RuntimeError(
        "try_complete answered True for an operation that is not completed; end it with "
        "`return self.force_complete()`"
    )


def unhashable(key: object, cause: TypeError) -> TypeError:
    """Make the error for a key that cannot be looked up."""
    error = TypeError(
        f"{key!r} cannot be hashed; a key is a plain value such as a str, an int or a tuple of them"
    )
    error.__cause__ = cause  # mypyc leaves out what stands after `raise ... from`
    return error


def shut_down(name: str) -> PurgatoryShutDown:
    """Make the error for an operation that comes too late."""
    return PurgatoryShutDown(
        f"purgatory {name} was shut down and takes no operation any more; complete the operation "
        "by force_complete() or make a new purgatory"
    )
