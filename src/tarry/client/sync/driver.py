"""Driver: turns a core and waits for its sockets.  One thread drives at a time.

A call that waits drives the sockets in its own thread, so that its answer costs no thread switch.
Other calls that wait are woken when the core gives notice of their operations, and one of them
takes over when the driving thread leaves.  `lock` guards the core; the sockets belong to the thread
that holds the role.  Ctrl-C comes through while a call waits, and never in the middle of a turn.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from tarry.client.core.arguments import timeout_ms_of
from tarry.client.core.operation import Answer, Callback, Done, Notice, Operation
from tarry.client.core.reminder import warn
from tarry.client.errors import ClientClosed
from tarry.client.face import forks
from tarry.client.face.driver import Begin, Core, FaceDriver
from tarry.client.settings import ClientSettings
from tarry.client.sync.background import Background
from tarry.client.sync.interrupts import Interrupts
from tarry.client.sync.sockets import Sockets

# Longest poll in ms: a core is turned at least so often, even if nothing is due.
POLL_MS_MAX: Final = 500

# Time to wait for the driving thread at a close, in seconds; a turn takes only milliseconds.
CLOSE_SECONDS_MAX: Final = 5

# Function that is given the reason why the cluster cannot be reached, "" if nothing seems wrong,
# and None when a wait is over.
Tell = Callable[[str | None], None]


def _raised_by(call_back: Callable[[Callback], None], step: Callback) -> Exception | None:
    """Call the user's function; return the exception that it raised."""
    try:
        call_back(step)
    except Exception as error:
        return error
    return None


class Driver(FaceDriver[Core]):
    """The sockets, the clock, the threads and the turns of one core."""

    def __init__(
        self,
        settings: ClientSettings,
        make_core: Callable[[Driver[Core]], Core],
        thread: str = "",
        nap_ms: int = 0,
    ) -> None:
        super().__init__(settings, make_core)
        self.lock: threading.Lock = threading.Lock()
        self.background = Background(self, thread, nap_ms)
        self._role = threading.Lock()
        self._is_leave_asked = False
        # Warnings for the log.  They are written while no lock is held: a handler of the log may
        # use the client.
        self._warnings: deque[str] = deque()
        self.core.reminder.tell = self._warnings.append
        # Bells of calls that wait while another thread drives: each is a lock that a notice
        # releases.
        self._bells: dict[Operation[Any], threading.Lock] = {}
        # Function that is called once, when the client is closed.
        self.when_closed: Callable[[], None] | None = None
        with forks.DESCRIPTORS:
            self._sockets = Sockets(settings)
            forks.watch(self)

    @property
    def is_driven(self) -> bool:
        return self._role.locked()

    def disown(self) -> None:
        super().disown()
        # Threads that do not exist in the child may have held the old locks.
        self.lock = threading.Lock()
        self._role = threading.Lock()
        # This thread may wait for a bell, if it has forked in the handler of a signal.
        self._ring_all()
        self._bells = {}
        self.background.disown()
        self._sockets.disown()

    def abandon(self) -> None:
        # The thread of a producer first sends the records that it has.
        if not self.background.abandon():
            self.close()

    # --- Operations

    def perform(
        self,
        begin: Begin[Answer],
        timeout: float | None,
        default_ms: int,
        call_back: Callable[[Callback], None] | None = None,
        tell: Tell | None = None,
        *,
        interrupts: Interrupts | None = None,
    ) -> Answer:
        """Begin an operation and take its steps to the end; return the answer, or raise the error.

        `timeout` is in seconds; without one it is `default_ms`.  `tell` is called repeatedly while
        the call waits.  A caller that passes `interrupts` releases them itself.
        """
        timeout_ms = timeout_ms_of(timeout, default_ms)
        self.check_usable()
        held = interrupts or Interrupts()
        held.hold()
        try:
            with self.lock:
                operation = begin(timeout_ms, self.now_ms())
            try:
                return self._take_steps(operation, held, call_back, tell)
            finally:
                try:
                    held.hold()
                finally:
                    self._end(operation, tell)
        finally:
            if interrupts is None:
                held.release()

    def _take_steps(
        self,
        operation: Operation[Answer],
        interrupts: Interrupts,
        call_back: Callable[[Callback], None] | None,
        tell: Tell | None,
    ) -> Answer:
        while True:
            if interrupts.has_come:
                # Let the signal through now, and not between a callback's turn and its call.
                interrupts.release()
                interrupts.hold()
            with self.lock:
                step = operation.step(self.now_ms())
                self.background.look()
            if isinstance(step, Done):
                return step.answer
            if isinstance(step, Callback):
                assert call_back is not None
                interrupts.release()
                error = _raised_by(call_back, step)
                interrupts.hold()
                self.check_parent()
                with self.lock:
                    operation.end_callback(self.now_ms(), error)
            else:
                self._wait(operation, interrupts, tell)
                self.check_parent()

    def _end(self, operation: Operation[Any], tell: Tell | None) -> None:
        if not self.is_forked:
            with self.lock:
                operation.end(self.now_ms())
                self.background.look()
        if tell is not None:
            tell(None)

    def _wait(self, operation: Operation[Any], interrupts: Interrupts, tell: Tell | None) -> None:
        """Drive, or let another thread drive, until the core gives notice of the operation."""
        while not operation.is_ready:
            self.check_usable()
            if self._role.acquire(blocking=False):
                self._drive_in_role(
                    lambda now_ms: operation.is_ready or bool(self._warnings), interrupts, tell
                )
                self._warn(interrupts)
            else:
                self._wait_for_others(operation, interrupts)

    def _warn(self, interrupts: Interrupts) -> None:
        """Write the warnings to the log, without the lock and the role."""
        while self._warnings:
            interrupts.release()
            try:
                # A handler of the log that fails must end neither a call nor the thread.
                with contextlib.suppress(Exception):
                    warn(self._warnings.popleft())
            finally:
                interrupts.hold()

    def _wait_for_others(self, operation: Operation[Any], interrupts: Interrupts) -> None:
        """Wait until the driving thread rings: notice was given, or the role is free."""
        bell = threading.Lock()
        bell.acquire()
        with self.lock:
            self._bells[operation] = bell
        try:
            # The driving thread looks for bells after it has given the role up.  So a call that
            # waits registers its bell before it checks the role.
            if self._role.locked() and not operation.is_ready:
                self.ask_to_leave()
                interrupts.release()
                bell.acquire()
        finally:
            try:
                interrupts.hold()
            finally:
                with self.lock:
                    self._bells.pop(operation, None)

    def drive_in_background(self) -> None:
        """Drive while turns are needed, until a call that waits wants the role."""
        if self._role.acquire(blocking=False):
            core, background, interrupts = self.core, self.background, Interrupts()
            self._drive_in_role(
                lambda now_ms: (
                    background.is_over
                    or core.has_callbacks
                    or bool(self._warnings)
                    or not core.needs_turns(now_ms)
                ),
                interrupts,
                yields=True,
            )
            self._warn(interrupts)

    def nudge(self, interrupts: Interrupts | None = None) -> None:
        """Turn once without waiting; if another thread drives, wake it, since there is work."""
        held = interrupts or Interrupts()
        held.hold()
        try:
            if self._role.acquire(blocking=False):
                self._drive_in_role(lambda now_ms: True, held)
            else:
                self.ask_to_leave()
        finally:
            if interrupts is None:
                held.release()

    def ask_to_leave(self) -> None:
        """End the poll of the driving thread; one in the background also gives the role up."""
        self._is_leave_asked = True
        self._sockets.wake()

    # --- Turns, with the role

    def _drive_in_role(
        self,
        is_done: Callable[[int], bool],
        interrupts: Interrupts,
        tell: Tell | None = None,
        *,
        yields: bool = False,
    ) -> None:
        role = self._role
        try:
            self._is_leave_asked = False
            # Events from before are read first, so that nothing counts as late that has arrived.
            events = self._sockets.take(self._sockets.wait(0))
            while not self.is_closed:
                now_ms = self.now_ms()
                with self.lock:
                    outputs = self.core.turn(events, now_ms, self.wall_ms())
                    done = is_done(now_ms)
                    due_ms = self.core.next_due_ms()
                    trouble = self.core.trouble(now_ms) if tell is not None else ""
                    self._give_notice(outputs)
                    if self.core.has_callbacks:
                        self.background.look()
                self._sockets.perform(outputs)
                if done or (yields and self._is_leave_asked):
                    return
                interrupts.release()
                if tell is not None:
                    tell(trouble)
                wait_ms = POLL_MS_MAX if due_ms is None else max(due_ms - now_ms, 0)
                ready = self._sockets.wait(min(wait_ms, POLL_MS_MAX))
                interrupts.hold()
                events = self._sockets.take(ready)
        finally:
            # `hold` may raise a second Ctrl-C.  So the role is released before it, and the bells
            # ring in any case: otherwise no thread could take the role again.
            role.release()
            try:
                interrupts.hold()
            finally:
                self._ring_waiting()

    def _give_notice(self, outputs: Sequence[object]) -> None:
        """Wake the calls whose operations may continue; with the lock held."""
        if self._bells:
            for output in outputs:
                if isinstance(output, Notice) and output.operation in self._bells:
                    _ring(self._bells[output.operation])

    def _ring_waiting(self) -> None:
        """Wake the calls that wait, because the role is free now."""
        if self._bells:
            with self.lock:
                self._ring_all()

    def _ring_all(self) -> None:
        """Wake all calls that wait, so that one of them takes the role; with the lock held."""
        for bell in self._bells.values():
            _ring(bell)

    def end_all(self) -> None:
        """End every operation; the calls that perform them raise ClientClosed."""
        with self.lock:
            self.core.operations.fail_all(ClientClosed("the client was closed"))
        self.ask_to_leave()

    def close(self) -> None:
        """Close the core and the sockets.  Calls that wait raise ClientClosed."""
        if self.is_closed:
            return
        try:
            self._close()
        finally:
            self.tell_users()

    def _close(self) -> None:
        interrupts = Interrupts()
        interrupts.hold()
        try:
            self.is_closed = True
            self.background.stop()
            self.ask_to_leave()
            # The driving thread checks `is_closed` after its poll, which `ask_to_leave` has just
            # ended.
            has_role = self._role.acquire(timeout=CLOSE_SECONDS_MAX)
            with self.lock:
                self.core.close(self.now_ms())
                self._ring_all()
            self._sockets.close()
            self.let_go()
            if has_role:
                self._role.release()
            if self.when_closed is not None:
                self.when_closed()
        finally:
            interrupts.release()


def _ring(bell: threading.Lock) -> None:
    """Wake the call that waits for the bell; with the driver's lock held."""
    if bell.locked():
        bell.release()
