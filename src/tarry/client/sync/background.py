"""Background: the one thread of a client, which drives the core while no user's call waits.

A producer's thread sends records for which no call waits; a consumer's thread sends heartbeats
while the user works on records.  The core says when that is due.  While the client is busy the
thread naps, so that giving it work costs no thread switch.  When nothing was due for a while, it
sleeps until it is notified.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from tarry.client.face.at_exit import has_end_begun
from tarry.client.face.clock import monotonic_ms

if TYPE_CHECKING:
    from tarry.client.sync.driver import Driver

# Time without a turn after which the client no longer counts as busy, in ms.
BUSY_MS: Final = 1_000

# Pause in ms before the next look of the thread, if another thread drives the core.
GRACE_MS: Final = 50

# Longest sleep in ms when nothing is due.
SLEEP_MS_MAX: Final = 10_000

STOP_SECONDS_MAX: Final = 5


class Background:
    """Thread that is started when the core first needs a turn of its own, and ended by `stop`."""

    def __init__(self, driver: Driver[Any], name: str, nap_ms: int) -> None:
        self._driver = driver
        self._name = name
        self._nap_ms = nap_ms
        self._told = threading.Condition(driver.lock)
        self._thread: threading.Thread | None = None
        # True while the thread wakes by itself soon enough, without a notification.
        self.is_awake = False
        self.is_stopping = False
        self.is_abandoned = False
        self._wakes_ms = 0

    def look(self) -> None:
        """Wake or start the thread in time for what is due; call it with the driver's lock held."""
        if self.is_stopping:
            return
        due_ms = self._driver.core.unattended_due_ms
        if due_ms is None:
            return
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # From Python 3.12 on no thread starts at the end of the process; a call that is
                # made then drives the core itself.
                if not has_end_begun():
                    raise
                return
            self._thread = thread
        elif due_ms < self._wakes_ms:
            self._told.notify()

    def stop(self) -> None:
        """End the thread, and wait for its end."""
        with self._driver.lock:
            self.is_stopping = True
            self._told.notify()
        self._driver.ask_to_leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS_MAX)

    def disown(self) -> None:
        """Forget the thread in the child of a fork, since it runs only in the parent."""
        self.is_stopping = True
        self._thread = None
        self._told = threading.Condition(self._driver.lock)

    def abandon(self) -> bool:
        """Let the thread close the client, whose face is gone, when its work is done; return false
        if there is no thread.

        Never waits for the lock: the collector may call this in a thread that holds it.  That
        thread is awake then, and sees the mark before it sleeps.
        """
        self.is_abandoned = True
        if self._thread is None:
            return False
        if self._driver.lock.acquire(blocking=False):
            self._told.notify()
            self._driver.lock.release()
        return True

    def _run(self) -> None:
        driver = self._driver
        while True:
            with driver.lock:
                while not self._is_needed():
                    self._told.wait(max(self._wakes_ms - monotonic_ms(), 0) / 1000)
            if self.is_stopping or driver.is_closed:
                return
            if self.is_over:
                driver.close()
                return
            if driver.core.has_callbacks:
                driver.tell_users()
            else:
                driver.drive_in_background()

    @property
    def is_this_thread(self) -> bool:
        return self._thread is threading.current_thread()

    @property
    def is_over(self) -> bool:
        """True if the thread has nothing left to do; read it in the thread, or with the lock
        held."""
        return self.is_stopping or (self.is_abandoned and not self._driver.core.has_work)

    def _is_needed(self) -> bool:
        """Return true if the thread must drive now.  Otherwise `_wakes_ms` is the time to ask
        again.  Call it with the lock held."""
        driver = self._driver
        if driver.is_closed or self.is_over or driver.core.has_callbacks:
            return True
        now_ms = monotonic_ms()
        due_ms = driver.core.unattended_due_ms
        naps = self._nap_ms > 0 and now_ms - driver.core.turned_ms <= BUSY_MS
        self.is_awake = naps or due_ms is not None
        if due_ms is not None and due_ms <= now_ms:
            # If another thread drives the core, it does the due work.
            self._wakes_ms = now_ms + (self._nap_ms or GRACE_MS)
            return not driver.is_driven
        self._wakes_ms = now_ms + (self._nap_ms if naps else SLEEP_MS_MAX)
        if due_ms is not None:
            self._wakes_ms = min(self._wakes_ms, due_ms)
        return False
