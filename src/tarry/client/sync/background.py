"""Background: the one thread of a client, which drives the core while no user waits.

A producer's sends what nobody waits for, a consumer's beats while the user works on records; when
that is due the core says.  While it is busy it naps, so that telling it something costs no thread
switch; when nothing has been due for a while it sleeps until it is told.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from tarry.client.face.at_exit import has_end_begun
from tarry.client.face.clock import monotonic_ms

if TYPE_CHECKING:
    from tarry.client.sync.driver import Driver

# After so long without a turn nobody is busy any more.
BUSY_MS: Final = 1_000

# When somebody else drives, he does what is due; asked again when he may have gone.
GRACE_MS: Final = 50

# Nothing is due: it looks up now and then all the same.
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
        # It looks by itself soon enough, without being told.
        self.is_awake = False
        self.is_stopping = False
        self.is_abandoned = False
        self._wakes_ms = 0

    def look(self) -> None:
        """Have the thread there in time for what is due; called with the driver's lock held."""
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
                # From Python 3.12 on no thread starts at the end of the process: the call that is
                # made there drives by itself.
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
        """Forget the thread, in the child of a fork: it runs in the parent only."""
        self.is_stopping = True
        self._thread = None
        self._told = threading.Condition(self._driver.lock)

    def abandon(self) -> bool:
        """Have the thread close the client, which nobody uses any more, when its work is done;
        False if there is no thread.

        Never waits for the lock: the collector may call this in a thread that holds it.  Such a
        thread is awake, and sees the mark before it sleeps.
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
        """True if the thread has nothing left to do; ask with the lock held, or in the thread."""
        return self.is_stopping or (self.is_abandoned and not self._driver.core.has_work)

    def _is_needed(self) -> bool:
        """Return true if the thread must drive now, else set in `_wakes_ms` when to ask again; call
        it with the lock held."""
        driver = self._driver
        if driver.is_closed or self.is_over or driver.core.has_callbacks:
            return True
        now_ms = monotonic_ms()
        due_ms = driver.core.unattended_due_ms
        naps = self._nap_ms > 0 and now_ms - driver.core.turned_ms <= BUSY_MS
        self.is_awake = naps or due_ms is not None
        if due_ms is not None and due_ms <= now_ms:
            # Whoever drives does what is due.
            self._wakes_ms = now_ms + (self._nap_ms or GRACE_MS)
            return not driver.is_driven
        self._wakes_ms = now_ms + (self._nap_ms if naps else SLEEP_MS_MAX)
        if due_ms is not None:
            self._wakes_ms = min(self._wakes_ms, due_ms)
        return False
