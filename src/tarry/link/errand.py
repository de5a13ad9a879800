"""Errand: several exchanges, one after the other or at once, that make one answer.

A call is an exchange that is repeated, with pauses, until it is answered or times out.  The steps
of an errand are a generator.  It yields the calls that it waits for, or a pause, and returns the
answer.  A call that failed has its error, and the steps decide what follows.  All retries of
requests are here.  `Router` says which broker a call goes to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from tarry.link.errors import BrokerUnreachable, ClientError, TimedOut
from tarry.link.exchange import Decoder, Exchange, R
from tarry.link.link import Link
from tarry.link.links import Links
from tarry.link.tasks import Task, wake_up

UNKNOWN: Final = -1

# A is the result of a call, or the answer of an errand; K is a key of `Outcomes`.
A = TypeVar("A")
K = TypeVar("K")


class Call(Exchange[R], Generic[R, A]):
    """Call of an errand: one exchange with a result of class `A`; to be subclassed.

    `target` is a broker id, or a negative number whose meaning the router knows.
    """

    # False: every failure ends the call, a retriable one too, and the errand decides.
    repeats = True

    def __init__(self, api_key: int, decode: Decoder[R], target: int) -> None:
        super().__init__(api_key, decode, 0)
        self.target = target
        self.is_done = False
        # Reason why there is no result; None if there is one, or the call is under way.
        self.error: ClientError | None = None
        self.last_error: ClientError | None = None
        self.attempts = 0
        # Version of the router's knowledge when it did not know the target.
        self.known_version = UNKNOWN
        self._result: A | None = None
        self._began_ms = 0
        self._end_ms = 0
        self._deadline = Task(self._give_up)
        self._retry = Task(self._try)

    def interpret(self, response: R) -> A:
        """Return the result.  Raises ClientError; a retriable one repeats the call."""
        raise NotImplementedError

    @property
    def result(self) -> A:
        """Result that `interpret` returned; valid once the call is done without an error."""
        assert self.is_done
        assert self.error is None
        return cast("A", self._result)

    # --- Attempts

    def begin(self, errands: Errands, timeout_ms: int, now_ms: int) -> None:
        self._errands = errands
        self._began_ms = now_ms
        self._end_ms = now_ms + timeout_ms
        errands.links.tasks.schedule(self._deadline, self._end_ms)
        self._try(now_ms)

    def _try(self, now_ms: int) -> None:
        self.attempts += 1
        try:
            link = self._errands.router.link_for(self, now_ms)
        except ClientError as error:
            self.finish(None, error)
            return
        if link is not None:
            left_ms = self._end_ms - now_ms
            self.timeout_ms = min(self._errands.links.settings.request_timeout_ms, left_ms)
            link.send(self, now_ms)
        elif self.repeats:
            self._pause(now_ms)
        else:
            self.finish(None, BrokerUnreachable(f"no broker {self.target} is known"))

    def _pause(self, now_ms: int) -> None:
        links = self._errands.links
        links.tasks.schedule(self._retry, now_ms + links.retry_pause_ms(self.attempts))

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        if self.is_done:
            return
        self.last_error = error
        if not (error.is_retriable and self.repeats):
            self.finish(None, error)
        elif now_ms < self._end_ms:
            self._errands.router.on_failure(now_ms)
            self._pause(now_ms)
        else:
            self._give_up(now_ms)

    def on_response(self, response: R, now_ms: int) -> None:
        if self.is_done:
            return
        try:
            result = self.interpret(response)
        except ClientError as error:
            self.on_failure(error, now_ms)
        else:
            self.finish(result, None)

    def _give_up(self, now_ms: int) -> None:
        self.finish(None, self._errands.router.late_error(self, now_ms - self._began_ms))

    def finish(self, result: A | None, error: ClientError | None) -> None:
        """End the call; do nothing if it has ended."""
        if self.is_done:
            return
        self.is_done = True
        self._result = result
        self.error = error
        tasks = self._errands.links.tasks
        tasks.cancel(self._deadline)
        tasks.cancel(self._retry)
        self._errands.forget(self)


class Router(Protocol):
    """Knowledge of the cluster that calls need."""

    def link_for(self, call: Call[Any, Any], now_ms: int) -> Link | None:
        """Return the link for a call; None if it is unknown, which makes the router look for it.
        Raises ClientError if no broker can be asked."""

    def on_failure(self, now_ms: int) -> None:
        """Note that a call failed: the knowledge of the cluster may be stale."""

    def late_error(self, call: Call[Any, Any], waited_ms: int) -> ClientError:
        """Return the error of a call that timed out, with what stood in its way."""


class Pause(NamedTuple):
    """Pause before the next attempt, longer after each of `failures`.  If the errand times out in
    it, TimedOut with the reason is thrown into the steps."""

    failures: int
    reason: ClientError


Steps = Generator[Sequence[Call[Any, Any]] | Pause, None, A]


class Errand(Generic[A]):
    """Errand under way; `take` returns the answer once it `is_done`."""

    def __init__(self, steps: Steps[A]) -> None:
        self.steps = steps
        self.is_done = False
        self.answer: A | None = None
        self.error: ClientError | None = None
        self.deadline_ms = 0
        self.calls: Sequence[Call[Any, Any]] = ()
        self.pause: Pause | None = None
        self.resume_ms = 0

    def take(self) -> A:
        """Return the answer of an errand that is done.  Raises its error."""
        assert self.is_done
        if self.error is not None:
            raise self.error
        return cast("A", self.answer)


class Errands:
    """Calls and errands under way of one core; an errand continues when all its calls are done."""

    def __init__(self, links: Links, router: Router) -> None:
        self.links = links
        self.router = router
        # Any: each call and errand has its own class of answer.
        self._calls: dict[Call[Any, Any], None] = {}
        self._under_way: dict[Errand[Any], None] = {}
        self._wake_up = wake_up()

    @property
    def are_waiting(self) -> bool:
        """True if a call is under way."""
        return bool(self._calls)

    def ask(self, call: Call[Any, Any], timeout_ms: int, now_ms: int) -> None:
        """Begin one call; at its end `call.is_done` is True."""
        self._calls[call] = None
        call.begin(self, timeout_ms, now_ms)

    def forget(self, call: Call[Any, Any]) -> None:
        self._calls.pop(call, None)

    def begin(self, errand: Errand[Any], timeout_ms: int, now_ms: int) -> None:
        """Begin an errand; at its end `errand.is_done` is True."""
        errand.deadline_ms = now_ms + timeout_ms
        self._under_way[errand] = None
        self._go_on(errand, None, now_ms)

    def work(self, now_ms: int) -> None:
        """Continue the errands whose calls are done or whose pause is over."""
        for errand in list(self._under_way):
            while not errand.is_done and self._is_ready(errand, now_ms):
                self._go_on(errand, self._overdue(errand, now_ms), now_ms)
            if errand.pause is not None and not errand.is_done:
                self.links.tasks.schedule_earlier(self._wake_up, errand.resume_ms)

    def _is_ready(self, errand: Errand[Any], now_ms: int) -> bool:
        if errand.pause is not None:
            return now_ms >= errand.resume_ms
        return all(call.is_done for call in errand.calls)

    def _overdue(self, errand: Errand[Any], now_ms: int) -> ClientError | None:
        if errand.pause is None or now_ms < errand.deadline_ms:
            return None
        return TimedOut(f"no answer came in the time given: {errand.pause.reason}")

    def _go_on(self, errand: Errand[Any], thrown: ClientError | None, now_ms: int) -> None:
        """Take the next step of an errand, and begin the calls or the pause that it yields."""
        try:
            step = next(errand.steps) if thrown is None else errand.steps.throw(thrown)
        except StopIteration as end:
            self._end(errand, end.value, None)
            return
        except ClientError as error:
            self._end(errand, None, error)
            return
        errand.pause = None
        errand.calls = ()
        if isinstance(step, Pause):
            pause_ms = self.links.retry_pause_ms(step.failures)
            errand.pause = step
            errand.resume_ms = min(now_ms + pause_ms, errand.deadline_ms)
            return
        errand.calls = step
        for call in step:
            self.ask(call, max(errand.deadline_ms - now_ms, 0), now_ms)

    def _end(self, errand: Errand[Any], answer: Any, error: ClientError | None) -> None:
        errand.is_done = True
        errand.answer = answer
        errand.error = error
        self._under_way.pop(errand, None)

    def fail_all(self, error: ClientError) -> None:
        """End every errand and call under way with this error."""
        for errand in list(self._under_way):
            self._end(errand, None, error)
        for call in list(self._calls):
            call.finish(None, error)


class Outcomes(Generic[K, A]):
    """Answers of an errand about several keys, and reasons to ask again."""

    def __init__(self, keys: Iterable[K], may_pass: Callable[[ClientError], bool]) -> None:
        self.keys = list(dict.fromkeys(keys))
        self.answers: dict[K, A | ClientError] = {}
        self.reasons: dict[K, ClientError] = {}
        self._may_pass = may_pass

    @property
    def left(self) -> list[K]:
        """Keys without a final answer."""
        return [key for key in self.keys if key not in self.answers]

    def settle(self, key: K, answer: A | ClientError) -> None:
        """Keep a final answer; an error that may pass is kept as a reason to ask again."""
        if isinstance(answer, ClientError) and self._may_pass(answer):
            self.reasons[key] = answer
        else:
            self.answers[key] = answer

    def settle_call(
        self, call: Call[Any, dict[K, A | ClientError]], keys: Iterable[K], silent: ClientError
    ) -> None:
        """Settle the keys of a call; `silent` is the outcome of keys that its answer leaves out."""
        for key in keys:
            self.settle(key, call.error or call.result.get(key, silent))


def until_settled(
    outcomes: Outcomes[K, A],
    attempt: Callable[[Outcomes[K, A]], Steps[None]],
    late_error: Callable[[K, ClientError, TimedOut], ClientError],
) -> Steps[dict[K, A | ClientError]]:
    """Repeat `attempt`, which asks about `outcomes.left`, until each key has its answer.

    A key that is not settled in time gets the error that `late_error` makes of its reason.
    """
    failures = 0
    while True:
        outcomes.reasons.clear()
        yield from attempt(outcomes)
        if not outcomes.reasons:
            break
        failures += 1
        try:
            yield Pause(failures, next(iter(outcomes.reasons.values())))
        except TimedOut as late:
            for key, reason in outcomes.reasons.items():
                outcomes.answers[key] = late_error(key, reason, late)
            break
    return {key: outcomes.answers[key] for key in outcomes.keys}
