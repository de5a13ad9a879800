"""Operation: a user's call that waits, in the steps that every face takes alike.

    operation = core.begin_flush(timeout_ms, now_ms)      or begin_poll, begin_commit, ..
    step = operation.step(now_ms)      raises the error of the operation
        Done      its `answer` is there
        Callback  `step.call(listener, consumer)`, then `operation.end_callback(now_ms, error)` with
                  the error that it raised, then step again
        WAIT      step again when the core has given notice of the operation
    operation.end(now_ms)              always, and at any time

A deadline is a task of the core, so a face needs no other time than the core's `next_due_ms`.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

from tarry.link.errand import A, Errand
from tarry.link.errors import ClientError
from tarry.link.tasks import Task, Tasks

Answer = TypeVar("Answer")


class Done(Generic[Answer]):
    """The end of an operation that succeeded."""

    __slots__ = ("answer",)

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class UserEvent(Protocol):
    """Event that a callback reports to the user."""

    @property
    def callback(self) -> str:
        """Name of the callback, for the text of errors."""

    def tell(self, listener: object, consumer: object) -> object:
        """Call the user's function; return what it returned, which may be a coroutine."""


class Callback:
    """Step of an operation: the face must call the user's callback for this event now."""

    __slots__ = ("event",)

    def __init__(self, event: UserEvent) -> None:
        self.event = event

    def call(self, listener: object, consumer: object) -> object:
        """Call the user's function; return what it returned, which may be a coroutine."""
        return self.event.tell(listener, consumer)


class Wait:
    """Order to wait until the core gives notice of the operation."""


WAIT: Final = Wait()


class Notice:
    """Notice that an operation may continue: the face that waits for it steps it again."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation


class Operation(Generic[Answer]):
    """Operation to be subclassed; `is_ready` is set with the notice, and means that `step` will not
    wait."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.is_ready = False
        self.is_late = False
        self.timeout_ms = 0
        # Error that ends the operation; None while it may succeed.
        self.failure: ClientError | None = None
        self.deadline = Task(self._on_deadline)

    def step(self, now_ms: int) -> Done[Answer] | Callback | Wait:
        """Return what the face has to do next; raise the error of the operation."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if self.look(now_ms):
            return Done(self.answer(now_ms))
        if self.is_late:
            raise self.late_error(now_ms)
        return self.wait()

    def wait(self) -> Wait:
        """Return WAIT, and expect a new notice."""
        self.is_ready = False
        return WAIT

    def end_callback(self, now_ms: int, error: Exception | None = None) -> None:
        """Continue after a `Callback`, which has returned or raised `error`."""

    def end(self, now_ms: int) -> None:
        """End the operation, whether it is done or not."""
        self.operations.forget(self)

    # --- Defined by subclasses

    def look(self, now_ms: int) -> bool:
        """Return whether `step` has more to do than to wait; called after each turn."""
        raise NotImplementedError

    def answer(self, now_ms: int) -> Answer:
        """Return the result, or raise the error; called once `look` is true."""
        raise NotImplementedError

    def late_error(self, now_ms: int) -> ClientError:
        """Return the error of an operation whose time is up."""
        raise NotImplementedError

    def _on_deadline(self, now_ms: int) -> None:
        self.is_late = True
        self.operations.notify(self)


Begun = TypeVar("Begun", bound="Operation[Any]")


class Operations:
    """The operations under way of one core, and the notices of those that may continue."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        # Operations under way, as an ordered set.  Each has its own type of answer, so the type is
        # Any.
        self._under_way: dict[Operation[Any], None] = {}
        self._notices: list[Notice] = []
        # Time at which all operations end, because the client is being closed; None before.
        self.ends_ms: int | None = None

    def begin(self, operation: Begun, timeout_ms: int | None, now_ms: int) -> Begun:
        """Begin an operation; without a time-out it has to end by itself."""
        self._under_way[operation] = None
        self.set_deadline(operation, timeout_ms, now_ms)
        return operation

    def set_deadline(self, operation: Operation[Any], timeout_ms: int | None, now_ms: int) -> None:
        """Set the time at which notice of the operation is given at the latest."""
        if timeout_ms is not None:
            operation.timeout_ms = self.limited(timeout_ms, now_ms)
            self._tasks.schedule_earlier(operation.deadline, now_ms + operation.timeout_ms)

    def limited(self, timeout_ms: int, now_ms: int) -> int:
        """Return the time-out, or the time until the end of the client if that is less."""
        if self.ends_ms is None:
            return timeout_ms
        return min(timeout_ms, max(self.ends_ms - now_ms, 0))

    def look(self, now_ms: int) -> None:
        """Give notice of every operation that may continue after a turn."""
        for operation in list(self._under_way):
            if not operation.is_ready and operation.look(now_ms):
                self.notify(operation)

    def notify(self, operation: Operation[Any]) -> None:
        """Give notice of one operation in the outputs of this turn or the next."""
        if not operation.is_ready:
            operation.is_ready = True
            self._notices.append(Notice(operation))

    def forget(self, operation: Operation[Any]) -> None:
        """Stop looking at an operation, which has ended."""
        self._under_way.pop(operation, None)
        self._tasks.cancel(operation.deadline)

    def fail_all(self, error: ClientError) -> None:
        """End all operations with this error."""
        for operation in list(self._under_way):
            operation.failure = error
            self.notify(operation)

    def take_notices(self) -> list[Notice]:
        """Return the notices that were not taken yet."""
        notices = self._notices
        self._notices = []
        return notices


class ErrandOperation(Operation[A]):
    """Operation that waits for one errand; its calls give up by themselves in time."""

    def __init__(self, operations: Operations, errand: Errand[A]) -> None:
        super().__init__(operations)
        self._errand = errand

    def look(self, now_ms: int) -> bool:
        return self._errand.is_done

    def answer(self, now_ms: int) -> A:
        return self._errand.take()
