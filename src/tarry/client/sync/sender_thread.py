"""The sender's thread: drives a producer when nobody else does.

While the user's own calls drive the producer it naps for a linger at a time; when nothing has been
sent for a while it sleeps until `send` wakes it.  So a tight loop of sends costs no thread switch,
and a record is never left alone for longer than its linger.
"""

from __future__ import annotations

import threading
from typing import Final

from tarry.client.core.producer.core import ProducerCore
from tarry.client.sync.driver import Driver, monotonic_ms

# After so long without a record the thread sleeps for good.
AWAKE_MS: Final = 1_000
NAP_MS_MIN: Final = 1

# A sleeper that nobody could wake looks up by himself.
SLEEP_SECONDS_MAX: Final = 10

# It looks up now and then, in case a due time was moved by somebody else.
DRIVE_MS_MAX: Final = 10_000


class SenderThread:
    """Started with the first record, ended by `stop`."""

    def __init__(self, driver: Driver, core: ProducerCore, linger_ms: int) -> None:
        self._driver = driver
        self._core = core
        self._nap_ms = max(linger_ms, NAP_MS_MIN)
        self._thread: threading.Thread | None = None
        self.is_abandoned = False
        self._is_stopping = False
        self._is_asleep = False
        self._sent_ms = 0

    def on_send(self, now_ms: int) -> None:
        """A record was appended; called with the lock held."""
        self._sent_ms = now_ms
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tarry-sender", daemon=True)
            self._thread.start()
        elif self._is_asleep:
            self._driver.changed.notify_all()

    def stop(self, timeout_ms: int) -> None:
        with self._driver.lock:
            self._is_stopping = True
            self._driver.changed.notify_all()
        self._driver.ask_to_leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_ms / 1000)

    def close_when_done(self) -> None:
        """Nobody uses the producer any more: close it when everything is sent.

        Never waits for the lock: the collector may call this in a thread that holds it.  Such a
        thread is awake, and sees the mark before it sleeps.
        """
        self.is_abandoned = True
        if self._thread is None:
            self._driver.close()
        elif self._driver.lock.acquire(blocking=False):
            self._driver.changed.notify_all()
            self._driver.lock.release()

    def _run(self) -> None:
        driver = self._driver
        while not self._is_stopping:
            with driver.changed:
                self._rest()
            if self._is_stopping or driver.is_closed:
                return
            if self.is_abandoned and not self._core.has_work:
                driver.close()
                return
            is_idle = monotonic_ms() - driver.driven_ms >= self._nap_ms
            if self._core.has_work and is_idle and not driver.is_driven:
                driver.drive_in_background(self._is_done, DRIVE_MS_MAX)

    def _rest(self) -> None:
        """Nap while there may be work soon, else sleep until the next record."""
        is_quiet = monotonic_ms() - self._sent_ms > AWAKE_MS
        if self._core.has_work or not is_quiet:
            self._driver.changed.wait(self._nap_ms / 1000)
            return
        self._is_asleep = True
        while not (self._is_stopping or self.is_abandoned or self._core.has_work):
            self._driver.changed.wait(SLEEP_SECONDS_MAX)
        self._is_asleep = False

    def _is_done(self) -> bool:
        return not self._core.has_work or self._is_stopping
