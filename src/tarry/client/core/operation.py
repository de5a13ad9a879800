"""Operation: a wait of the user, in the steps that every face takes alike.

    operation = core.begin_flush(timeout_ms, now_ms)      or begin_poll, begin_commit, ..
    step = operation.step(now_ms)      raises what went wrong
        Done      its `answer` is there
        Callback  `step.call(listener, consumer)`, then `operation.end_callback(now_ms, error)` with
                  what it raised, then step again
        WAIT      step again when the core gave notice of the operation
    operation.end(now_ms)              always, and at any time

A deadline is a task of the core, so that a face minds no time but the core's `next_due_ms`.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

from tarry.link.errors import ClientError
from tarry.link.tasks import Task, Tasks

Answer = TypeVar("Answer")


class Done(Generic[Answer]):
    """The end of an operation that succeeded."""

    __slots__ = ("answer",)

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class UserEvent(Protocol):
    """Event that a callback tells the user."""

    @property
    def callback(self) -> str:
        """Name of what is called, for the text of errors."""

    def tell(self, listener: object, consumer: object) -> object:
        """Call the user back; returns what the callback returned, a coroutine perhaps."""


class Callback:
    """Event that the user is told now, by a callback."""

    __slots__ = ("event",)

    def __init__(self, event: UserEvent) -> None:
        self.event = event

    def call(self, listener: object, consumer: object) -> object:
        """Call the user back; returns what the callback returned, a coroutine perhaps."""
        return self.event.tell(listener, consumer)


class Wait:
    """Order to wait until the core gives notice of the operation."""


WAIT: Final = Wait()


class Notice:
    """Notice that an operation can go on: the face that waits for it steps it again."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation


class Operation(Generic[Answer]):
    """Operation to be subclassed; `is_ready` is set with the notice, and says that `step` will not
    wait."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.is_ready = False
        self.is_late = False
        self.timeout_ms = 0
        # Why nothing more will come of it.
        self.failure: ClientError | None = None
        self.deadline = Task(self._on_deadline)

    def step(self, now_ms: int) -> Done[Answer] | Callback | Wait:
        """Return what the face does next; raise what went wrong."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if self.look(now_ms):
            return Done(self.answer(now_ms))
        if self.is_late:
            raise self.late_error(now_ms)
        return self.wait()

    def wait(self) -> Wait:
        """Return WAIT: the next notice is a new one."""
        self.is_ready = False
        return WAIT

    def end_callback(self, now_ms: int, error: Exception | None = None) -> None:
        """Go on behind a `Callback`, which has returned or raised `error`."""

    def end(self, now_ms: int) -> None:
        """Forget the operation, whether it is done or not."""
        self.operations.forget(self)

    # --- For subclasses

    def look(self, now_ms: int) -> bool:
        """Return whether there is something else to do than to wait; asked after each turn."""
        raise NotImplementedError

    def answer(self, now_ms: int) -> Answer:
        """Return what came, or raise why it did not; asked once `look` is true."""
        raise NotImplementedError

    def late_error(self, now_ms: int) -> ClientError:
        """Return the error of an operation whose time is up."""
        raise NotImplementedError

    def _on_deadline(self, now_ms: int) -> None:
        self.is_late = True
        self.operations.notify(self)


Begun = TypeVar("Begun", bound="Operation[Any]")


class Operations:
    """The operations under way of one core, and the notices of those that may go on."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        # An ordered set.  Any: each operation has an answer of its own class.
        self._under_way: dict[Operation[Any], None] = {}
        self._notices: list[Notice] = []
        # No operation lasts beyond this time, because the client is being closed.
        self.ends_ms: int | None = None

    def begin(self, operation: Begun, timeout_ms: int | None, now_ms: int) -> Begun:
        """Look at the operation from now on; without a timeout it ends by itself in time."""
        self._under_way[operation] = None
        self.set_deadline(operation, timeout_ms, now_ms)
        return operation

    def set_deadline(self, operation: Operation[Any], timeout_ms: int | None, now_ms: int) -> None:
        """Give notice of the operation in `timeout_ms` at the latest."""
        if timeout_ms is not None:
            operation.timeout_ms = self.limited(timeout_ms, now_ms)
            self._tasks.schedule_earlier(operation.deadline, now_ms + operation.timeout_ms)

    def limited(self, timeout_ms: int, now_ms: int) -> int:
        """Return the timeout, or what is left until the end of the client if that is less."""
        if self.ends_ms is None:
            return timeout_ms
        return min(timeout_ms, max(self.ends_ms - now_ms, 0))

    def look(self, now_ms: int) -> None:
        """Give notice of every operation that a turn has moved."""
        for operation in list(self._under_way):
            if not operation.is_ready and operation.look(now_ms):
                self.notify(operation)

    def notify(self, operation: Operation[Any]) -> None:
        """Give notice of one operation, in the outputs of this turn or of the next."""
        if not operation.is_ready:
            operation.is_ready = True
            self._notices.append(Notice(operation))

    def forget(self, operation: Operation[Any]) -> None:
        """Look at the operation no more."""
        self._under_way.pop(operation, None)
        self._tasks.cancel(operation.deadline)

    def fail_all(self, error: ClientError) -> None:
        """End everything that is under way."""
        for operation in list(self._under_way):
            operation.failure = error
            self.notify(operation)

    def take_notices(self) -> list[Notice]:
        """Return the notices that were not taken yet."""
        notices = self._notices
        self._notices = []
        return notices
