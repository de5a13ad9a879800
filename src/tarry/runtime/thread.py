"""Broker in a thread of another program's process, as tests need it.

It leaves the process unchanged: no signal handlers, no limits of descriptors, no settings of the
collector, no levels of loggers.  Its files need not outlive the process, so a flush ends as soon as
it begins.  Other threads reach the broker by `call`, between two turns.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker
from tarry.runtime.clock import Clock
from tarry.runtime.loop import Machine, StartBroker, start_on, take_turn

# Connections of a broker whose process may open any number of files.
CONNECTIONS_MAX: Final = 10_000

# Longest wait for the thread's end; a turn takes milliseconds, so a later end means a hang.
END_S_MAX: Final = 10.0

# Turns of `rest` at most: more than any work takes if no new work comes.
REST_TURNS_MAX: Final = 10_000

Result = TypeVar("Result")

# Running brokers, which the child of a fork must disown.
_RUNNING: Final[WeakKeyDictionary[BrokerThread, None]] = WeakKeyDictionary()


class BrokerStopped(RuntimeError):
    """The broker of this thread has stopped; the text says why."""


class BrokerThread:
    """Broker that serves until `stop`.  `StartRefused` says why it cannot start."""

    def __init__(
        self,
        settings: Settings,
        broker_clock: Clock | None = None,
        start: StartBroker[Broker] = start_broker,
    ) -> None:
        self.settings = settings
        self._machine = machine = Machine(
            settings, _connections_max(), broker_clock, is_temporary=True
        )
        self._calls: deque[_Call[Any]] = deque()
        self._is_stop_requested = False
        self._end_reason = ""
        try:
            machine.transport.bind()
            self.broker: Broker = start_on(machine, settings, start)
            machine.transport.listen()
        except BaseException:
            machine.close()
            raise
        self._thread = threading.Thread(target=self._run, name="tarry-broker", daemon=True)
        self._thread.start()
        _RUNNING[self] = None

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self.settings.open_listeners[0].port

    @property
    def is_running(self) -> bool:
        """True while the broker serves."""
        return not self._end_reason

    def call(self, function: Callable[[Broker], Result]) -> Result:
        """Call a function in the broker's thread, between two turns, and return its result."""
        if threading.current_thread() is self._thread:
            return function(self.broker)
        call = _Call(function)
        self._calls.append(call)
        self._wake()
        while not call.is_over.wait(0.1):
            if not self._thread.is_alive():
                self._refuse_calls()
        return call.result()

    def take_turn(self) -> None:
        """Give the broker a turn now; call it inside `call` only."""
        take_turn(self._machine, self.broker, 0)

    def rest(self) -> None:
        """Give the broker turns until no work is left and nothing is due; inside `call` only."""
        broker, clock = self.broker, self._machine.clock
        for _ in range(REST_TURNS_MAX):
            self.take_turn()
            is_idle = broker.flushes.is_idle() and not broker.has_work_left()
            if is_idle and broker.next_due_ms() > clock.now_ms():
                return

    def stop(self) -> None:
        """End the broker at once, as a kill would, and close everything that it has opened."""
        self._is_stop_requested = True
        self._wake()
        self._thread.join(END_S_MAX)

    def _wake(self) -> None:
        # After the end the descriptors are closed, and their numbers may be reused.
        if not self._end_reason:
            with suppress(OSError):
                self._machine.wake.wake()

    def disown(self) -> None:
        """Give up the broker in the child of a fork; it continues in the parent."""
        self._end_reason = "it belongs to the process from which this one was forked"
        self._machine.disown()

    def _run(self) -> None:
        reason = "it was stopped"
        try:
            while not self._is_stop_requested:
                take_turn(self._machine, self.broker)
                while self._calls:
                    self._calls.popleft().run(self.broker)
                if self.broker.is_stopped:
                    reason = self.broker.stop_reason or "it was asked to"
                    return
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._end_reason = reason
            _RUNNING.pop(self, None)
            self._machine.close()
            self._refuse_calls()

    def _refuse_calls(self) -> None:
        while self._calls:
            self._calls.popleft().refuse(
                BrokerStopped(f"the broker does not run any more: {self._end_reason}")
            )


class _Call(Generic[Result]):
    """Function that another thread has passed to `call`, and its outcome."""

    def __init__(self, function: Callable[[Broker], Result]) -> None:
        self._function = function
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self.is_over = threading.Event()

    def run(self, broker: Broker) -> None:
        try:
            self._results.append(self._function(broker))
        except BaseException as error:
            self._error = error
        self.is_over.set()

    def refuse(self, error: BaseException) -> None:
        self._error = error
        self.is_over.set()

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._results[0]


def _connections_max() -> int:
    """Return how many connections this process has descriptors for, beside its other files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else min(soft // 2, CONNECTIONS_MAX)


def _let_go() -> None:
    for thread in list(_RUNNING):
        thread.disown()
    _RUNNING.clear()


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
