"""Reminder: a warning about trouble with the cluster while an operation waits.

A poll without records and a send that waits look like a quiet cluster.  After two seconds the log
says what is wrong, and repeats it at growing intervals as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.link.tasks import Task, Tasks

# A separate logger, so that a program that informs its user itself can turn it off.
LOGGER: Final = "tarry.client.waiting"

LOOK_MS: Final = 500
QUIET_MS: Final = 2_000
# Pause between the first two warnings in ms; it doubles each time, up to the maximum.
PAUSE_MS_FIRST: Final = 8_000
PAUSE_MS_MAX: Final = 60_000


class Reminder:
    """Reminder that looks for trouble twice a second while `work` says that an operation waits."""

    def __init__(self, tasks: Tasks, trouble: Callable[[int], str], what_waits: str) -> None:
        self._tasks = tasks
        self._trouble = trouble
        self._what_waits = what_waits
        self._look = Task(self._on_look)
        self._began_ms = 0
        self._since_ms = -1
        self._warn_at_ms = 0
        self._pause_ms = PAUSE_MS_FIRST
        # Writes a warning; a face delays it, because a handler of the log may use the client.
        self.tell: Callable[[str], None] = warn

    def work(self, is_waiting: bool, now_ms: int) -> None:
        """Look for trouble if it is time; called in each turn."""
        if not is_waiting:
            self._since_ms = -1
        elif not self._look.is_armed:
            self._began_ms = now_ms
            self._tasks.schedule(self._look, now_ms + LOOK_MS)

    def stop(self) -> None:
        self._tasks.cancel(self._look)

    def _on_look(self, now_ms: int) -> None:
        trouble = self._trouble(now_ms)
        if not trouble:
            self._since_ms = -1
            return
        if self._since_ms < 0:
            self._since_ms = self._began_ms
            self._warn_at_ms = self._began_ms + QUIET_MS
            self._pause_ms = PAUSE_MS_FIRST
        if now_ms < self._warn_at_ms:
            return
        seconds = (now_ms - self._since_ms) // 1000
        self.tell(f"{self._what_waits}, for {seconds} s now: {trouble}")
        self._warn_at_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MS_MAX)


def warn(text: str) -> None:
    """Write a warning to the log."""
    # Imported with the first warning, so that a program without trouble does not load it.
    import logging

    logging.getLogger(LOGGER).warning("%s", text)
