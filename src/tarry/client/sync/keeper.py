"""The keeper: the one thread of a consumer, which beats while the user works on records.

It turns the core when a heartbeat is due and nobody polls, and stops at `max.poll.interval.ms`,
where the core leaves the group.  What is assigned, revoked or lost waits for the next poll.
"""

from __future__ import annotations

import threading
from typing import Final

from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.sync.driver import Driver, monotonic_ms

# Nothing is due: it looks up now and then all the same.
SLEEP_MS_MAX: Final = 10_000

# An answer may take as long as a rebalance does; the thread looks up in between.
DRIVE_MS_MAX: Final = 10_000

# A user who polls again soon reads the answer himself, without a thread switch.
GRACE_MS: Final = 50

STOP_SECONDS_MAX: Final = 5


class Keeper:
    """Started with the first poll of a member, ended by `stop`."""

    def __init__(self, driver: Driver, core: GroupConsumerCore) -> None:
        self._driver = driver
        self._core = core
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self._is_abandoned = False
        self._wakes_ms = 0

    def look(self, now_ms: int) -> None:
        """A poll has ended: the keeper wakes in time.  Called with the driver's lock held."""
        due_ms = self._core.keeper_due_ms
        if due_ms is None or self._is_stopping or not self._core.consumer_settings.has_keeper:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tarry-keeper", daemon=True)
            self._thread.start()
        elif max(due_ms, now_ms + GRACE_MS) < self._wakes_ms:
            self._driver.changed.notify_all()

    def stop(self) -> None:
        with self._driver.changed:
            self._is_stopping = True
            self._driver.changed.notify_all()
        self._driver.ask_to_leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS_MAX)

    def abandon(self) -> bool:
        """Nobody holds the consumer any more: the thread closes it; False if there is no thread.

        Never waits for the lock: the collector may call this in a thread that holds it.  Such a
        thread is awake, and sees the mark before it sleeps.
        """
        if self._thread is None:
            return False
        self._is_abandoned = True
        if self._driver.lock.acquire(blocking=False):
            self._driver.changed.notify_all()
            self._driver.lock.release()
        return True

    def _run(self) -> None:
        driver = self._driver
        while True:
            with driver.changed:
                while not self._is_needed():
                    driver.changed.wait((self._wakes_ms - monotonic_ms()) / 1000)
            if self._is_stopping or driver.is_closed:
                return
            if self._is_abandoned:
                driver.close()
                return
            driver.drive_in_background(self._is_done, DRIVE_MS_MAX)

    def _is_needed(self) -> bool:
        """With the lock held; says in `_wakes_ms` when to ask again."""
        if self._is_stopping or self._is_abandoned or self._driver.is_closed:
            return True
        now_ms = monotonic_ms()
        due_ms = self._core.keeper_due_ms
        if due_ms is None:
            self._wakes_ms = now_ms + SLEEP_MS_MAX
            return False
        if self._core.membership.is_busy:
            due_ms += GRACE_MS
        self._wakes_ms = min(due_ms, now_ms + SLEEP_MS_MAX)
        if due_ms > now_ms:
            return False
        if self._driver.is_driven:
            # Whoever drives does what is due; asked again when he has gone.
            self._wakes_ms = now_ms + GRACE_MS
            return False
        return True

    def _is_done(self) -> bool:
        if self._is_stopping or self._is_abandoned:
            return True
        due_ms = self._core.keeper_due_ms
        return due_ms is None or due_ms > monotonic_ms()
