"""Driver: turns a core and waits for its sockets.  One thread drives at a time.

Whoever waits drives the sockets himself, so that a call and its answer cost no thread switch;
others that wait are told after each turn and take over when the driver leaves.  `lock` guards the
core; the sockets belong to whoever holds the role.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Final

from tarry.client.core.core import ClientCore
from tarry.client.errors import ClientClosed, ClientForked
from tarry.client.settings import ClientSettings
from tarry.client.sync.sockets import Sockets
from tarry.link.events import LinkEvent

# The longest poll: a core with nothing due is looked at so often.
POLL_MS_MAX: Final = 500

# A turn takes milliseconds; a driver that does not leave in this time never will.
CLOSE_SECONDS_MAX: Final = 5


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def system_random() -> SystemRandom:
    return SystemRandom()


# Told why the cluster cannot be reached, "" if nothing seems wrong, None when a wait is over.
Tell = Callable[[str | None], None]


class Driver:
    """The sockets, the clock and the turns of one core."""

    def __init__(self, core: ClientCore, settings: ClientSettings) -> None:
        self.core = core
        self.settings = settings
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.is_closed = False
        # When somebody drove last, so that the sender's thread need not.
        self.driven_ms = 0
        self._role = threading.Lock()
        self._is_leave_asked = False
        self._waiters = 0
        self._sockets = Sockets(settings)
        self._process_id = os.getpid()

    @property
    def is_driven(self) -> bool:
        return self._role.locked()

    @property
    def is_forked(self) -> bool:
        """This process is a copy: the sockets belong to the one that made the client."""
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
        """A face for whoever prints it: what it is connected to, and whether it still is."""
        words = [type(face).__name__, self.settings.text("bootstrap.servers"), what]
        words.append("closed" if self.is_closed else "")
        return f"<{' '.join(word for word in words if word)}>"

    # --- Waiting

    def wait(self, is_done: Callable[[], bool], timeout_ms: int) -> bool:
        """Drive, or let others drive, until `is_done()` (asked with the lock held) or the time is
        up; returns whether it is done."""
        deadline_ms = monotonic_ms() + timeout_ms
        while True:
            self.check_usable()
            if self._role.acquire(blocking=False):
                try:
                    self._is_leave_asked = False
                    done = self._drive(is_done, deadline_ms, yields=False)
                finally:
                    self._leave()
                if not done:
                    self.check_usable()
                return done
            with self.changed:
                if is_done():
                    return True
                left_ms = deadline_ms - monotonic_ms()
                if left_ms <= 0:
                    return False
                if self._role.locked():
                    self.ask_to_leave()
                    self._waiters += 1
                    self.changed.wait(left_ms / 1000)
                    self._waiters -= 1

    def drive_in_background(self, is_done: Callable[[], bool], timeout_ms: int) -> None:
        """Drive until it is done, the time is up, or somebody who waits wants the role."""
        if not self._role.acquire(blocking=False):
            return
        try:
            self._is_leave_asked = False
            self._drive(is_done, monotonic_ms() + timeout_ms, yields=True)
        finally:
            self._leave()

    def nudge(self) -> None:
        """One turn without waiting; if somebody else drives, he is told that there is work."""
        if self._role.acquire(blocking=False):
            try:
                self._drive(_at_once, 0, yields=False)
            finally:
                self._leave()
        else:
            self.ask_to_leave()

    def ask_to_leave(self) -> None:
        """End the poll of a background driver, and his driving."""
        self._is_leave_asked = True
        self._sockets.wake()

    def _leave(self) -> None:
        self._role.release()
        with self.changed:
            if self._waiters:
                self.changed.notify_all()

    # --- Turns, with the role

    def _drive(self, is_done: Callable[[], bool], deadline_ms: int, *, yields: bool) -> bool:
        # What came while nobody drove is read before anything is judged by the time.
        events: Sequence[LinkEvent] = self._sockets.poll(0)
        while True:
            now_ms = monotonic_ms()
            with self.lock:
                outputs = self.core.turn(events, now_ms, wall_ms())
                done = is_done()
                due_ms = self.core.next_due_ms()
                if self._waiters:
                    self.changed.notify_all()
            self.driven_ms = now_ms
            self._sockets.perform(outputs)
            left_ms = deadline_ms - now_ms
            is_over = left_ms <= 0 or self.is_closed or (yields and self._is_leave_asked)
            if done or is_over:
                return done
            wait_ms = min(left_ms, POLL_MS_MAX)
            if due_ms is not None:
                wait_ms = min(wait_ms, max(due_ms - now_ms, 0))
            events = self._sockets.poll(wait_ms)

    def close(self) -> None:
        """Close the core and the sockets.  Whoever waits gets ClientClosed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.ask_to_leave()
        # A driver looks at `is_closed` after each poll, which has just been ended.
        has_role = self._role.acquire(timeout=CLOSE_SECONDS_MAX)
        with self.changed:
            self.core.close()
            self.changed.notify_all()
        self._sockets.close()
        if has_role:
            self._role.release()


def _at_once() -> bool:
    return True


def wait_telling(
    driver: Driver,
    core: ClientCore,
    is_done: Callable[[], bool],
    timeout_ms: int,
    tell: Tell | None,
) -> bool:
    """Wait as `driver.wait` does, and `tell` again and again how it stands."""
    if tell is None:
        return driver.wait(is_done, timeout_ms)

    def look() -> bool:
        if is_done():
            return True
        tell(core.trouble)
        return False

    try:
        return driver.wait(look, timeout_ms)
    finally:
        tell(None)
