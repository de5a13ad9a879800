"""Driver: turns a core and waits for its sockets.  One thread drives at a time.

Whoever waits drives the sockets himself, so that a call and its answer cost no thread switch;
others that wait are woken when the core gives notice of what they wait for, and take over when the
driver leaves.  `lock` guards the core; the sockets belong to whoever holds the role.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from tarry.client.core.arguments import timeout_ms_of
from tarry.client.core.core import ClientCore
from tarry.client.core.operation import Answer, Callback, Done, Notice, Operation
from tarry.client.errors import ClientClosed, ClientForked
from tarry.client.face.clock import monotonic_ms, wall_ms
from tarry.client.settings import ClientSettings
from tarry.client.sync.background import Background
from tarry.client.sync.sockets import Sockets
from tarry.link.events import LinkEvent

# The longest poll: a core with nothing due is looked at so often.
POLL_MS_MAX: Final = 500

# A turn takes milliseconds; a driver that does not leave in this time never will.
CLOSE_SECONDS_MAX: Final = 5

Core = TypeVar("Core", bound=ClientCore)


# Told why the cluster cannot be reached, "" if nothing seems wrong, None when a wait is over.
Tell = Callable[[str | None], None]

# Begins an operation of the core, given its timeout and the time.
Begin = Callable[[int, int], Operation[Answer]]


def _raised_by(call_back: Callable[[Callback], None], step: Callback) -> Exception | None:
    """Call the user back; return what that raised."""
    try:
        call_back(step)
    except Exception as error:
        return error
    return None


class Driver(Generic[Core]):
    """The sockets, the clock, the threads and the turns of one core."""

    def __init__(
        self,
        settings: ClientSettings,
        make_core: Callable[[Driver[Core]], Core],
        thread: str = "",
        nap_ms: int = 0,
    ) -> None:
        self.core = make_core(self)
        self.settings = settings
        self.lock = threading.Lock()
        self.is_closed = False
        self.background = Background(self, thread, nap_ms)
        # Calls users back for what the core has for them; a client that never does has none.
        self.tell_users: Callable[[], None] = _tell_nobody
        self._role = threading.Lock()
        self._is_leave_asked = False
        self._waiting: dict[Operation[Any], threading.Condition] = {}
        self._sockets = Sockets(settings)
        self._process_id = os.getpid()

    @property
    def is_driven(self) -> bool:
        return self._role.locked()

    @property
    def is_forked(self) -> bool:
        """True in a forked copy of the process: the sockets belong to the process that made the
        client."""
        return os.getpid() != self._process_id

    def check_usable(self) -> None:
        """Refuse a client that was closed, or that a fork copied."""
        if self.is_closed:
            raise ClientClosed("the client is closed")
        if self.is_forked:
            raise ClientForked(
                "the client was made before a fork, its sockets belong to the parent; "
                "make a new client in this process"
            )

    def describe(self, face: object, what: str = "") -> str:
        """Describe a face for `repr`: its bootstrap servers, and whether it is closed."""
        words = [type(face).__name__, self.settings.text("bootstrap.servers"), what]
        words.append("closed" if self.is_closed else "")
        return f"<{' '.join(word for word in words if word)}>"

    # --- Operations

    def perform(
        self,
        begin: Begin[Answer],
        timeout: float | None,
        default_ms: int,
        call_back: Callable[[Callback], None] | None = None,
        tell: Tell | None = None,
    ) -> Answer:
        """Begin an operation and take its steps to the end; returns the answer, raises why there
        is none.  `timeout` is in seconds; without one it is `default_ms`.  `tell` is called again
        and again while it waits."""
        timeout_ms = timeout_ms_of(timeout, default_ms)
        self.check_usable()
        with self.lock:
            operation = begin(timeout_ms, monotonic_ms())
        try:
            while True:
                with self.lock:
                    step = operation.step(monotonic_ms())
                    self.background.look()
                if isinstance(step, Done):
                    return step.answer
                if isinstance(step, Callback):
                    assert call_back is not None
                    error = _raised_by(call_back, step)
                    with self.lock:
                        operation.end_callback(monotonic_ms(), error)
                else:
                    self._wait(operation, tell)
        finally:
            with self.lock:
                operation.end(monotonic_ms())
                self.background.look()
            if tell is not None:
                tell(None)

    def _wait(self, operation: Operation[Any], tell: Tell | None) -> None:
        """Drive, or let others drive, until the core gives notice of the operation."""
        while not operation.is_ready:
            self.check_usable()
            if self._role.acquire(blocking=False):
                self._drive_in_role(lambda now_ms: operation.is_ready, tell)
                continue
            with self.lock:
                # Who leaves looks for those who wait after he has given the role up: whoever
                # waits is there to be seen before he looks at the role.
                self._waiting[operation] = threading.Condition(self.lock)
                try:
                    if self._role.locked() and not operation.is_ready:
                        self.ask_to_leave()
                        self._waiting[operation].wait()
                finally:
                    del self._waiting[operation]

    def drive_in_background(self) -> None:
        """Drive while turns are needed, until somebody who waits wants the role."""
        if self._role.acquire(blocking=False):
            core, background = self.core, self.background
            self._drive_in_role(
                lambda now_ms: (
                    background.is_over or core.has_callbacks or not core.needs_turns(now_ms)
                ),
                yields=True,
            )

    def nudge(self) -> None:
        """Turn once without waiting; if another thread drives, tell it that there is work."""
        if self._role.acquire(blocking=False):
            self._drive_in_role(lambda now_ms: True)
        else:
            self.ask_to_leave()

    def ask_to_leave(self) -> None:
        """End the poll of a background driver, and his driving."""
        self._is_leave_asked = True
        self._sockets.wake()

    # --- Turns, with the role

    def _drive_in_role(
        self, is_done: Callable[[int], bool], tell: Tell | None = None, *, yields: bool = False
    ) -> None:
        try:
            self._is_leave_asked = False
            # What came while nobody drove is read before anything is judged by the time.
            events: Sequence[LinkEvent] = self._sockets.poll(0)
            while not self.is_closed:
                now_ms = monotonic_ms()
                with self.lock:
                    outputs = self.core.turn(events, now_ms, wall_ms())
                    done = is_done(now_ms)
                    due_ms = self.core.next_due_ms()
                    trouble = self.core.trouble(now_ms) if tell is not None else ""
                    self._give_notice(outputs)
                    if self.core.has_callbacks:
                        self.background.look()
                self._sockets.perform(outputs)
                if done or (yields and self._is_leave_asked):
                    return
                if tell is not None:
                    tell(trouble)
                wait_ms = POLL_MS_MAX if due_ms is None else max(due_ms - now_ms, 0)
                events = self._sockets.poll(min(wait_ms, POLL_MS_MAX))
        finally:
            self._leave()

    def _give_notice(self, outputs: Sequence[object]) -> None:
        """Wake those whose operations may go on; with the lock held."""
        if self._waiting:
            for output in outputs:
                if isinstance(output, Notice) and output.operation in self._waiting:
                    self._waiting[output.operation].notify()

    def _leave(self) -> None:
        self._role.release()
        if self._waiting:
            with self.lock:
                self._wake_all()

    def _wake_all(self) -> None:
        """Have one of those who wait take over; with the lock held."""
        for condition in self._waiting.values():
            condition.notify()

    def close(self) -> None:
        """Close the core and the sockets.  Whoever waits gets ClientClosed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.background.stop()
        self.ask_to_leave()
        # A driver looks at `is_closed` after each poll, which has just been ended.
        has_role = self._role.acquire(timeout=CLOSE_SECONDS_MAX)
        with self.lock:
            self.core.close(monotonic_ms())
            self._wake_all()
        self._sockets.close()
        if has_role:
            self._role.release()
        self.tell_users()


def _tell_nobody() -> None:
    pass
