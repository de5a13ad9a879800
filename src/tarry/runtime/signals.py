"""Signals: SIGTERM and SIGINT stop the broker, a second one ends the process; SIGHUP rereads.

A signal that was ignored when the process began stays ignored, as `nohup` and shells that start a
command in the background ask for.  A terminal that closes sends SIGHUP as well; a broker that was
started there then stops cleanly, because Ctrl-C could not end it any more.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any, Final

from tarry.base.doors import Event, stop_requested
from tarry.runtime.wake import Wake

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_TERMINAL: Final = "/dev/tty"


class Signals:
    """Signal handlers, installed while the loop runs; used by the main thread."""

    def __init__(self, wake: Wake) -> None:
        self.is_stop_requested = False
        self._is_told = False
        self._has_hung_up = False
        self._is_reread_due = False
        self._had_terminal = _has_terminal()
        # Install the handlers last, so that no signal comes before the wake-up works.
        wake.add_collector(self._collect)
        self._descriptor_before = signal.set_wakeup_fd(
            wake.write_descriptor, warn_on_full_buffer=False
        )
        self._before: dict[signal.Signals, Any] = {}
        for one in (*_STOP_SIGNALS, signal.SIGHUP):
            before = signal.getsignal(one)
            if before != signal.SIG_IGN:
                self._before[one] = before
                signal.signal(one, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._has_hung_up = True
        else:
            self._stop()

    def _stop(self) -> None:
        self.is_stop_requested = True
        # The system's default action: a second signal ends the process without Python.
        for one in self._before:
            if one != signal.SIGHUP:
                signal.signal(one, signal.SIG_DFL)

    def _collect(self, events: list[Event]) -> None:
        if self._has_hung_up:
            self._has_hung_up = False
            if self._had_terminal and not _has_terminal():
                self._stop()
            else:
                self._is_reread_due = True
        if self.is_stop_requested and not self._is_told:
            self._is_told = True
            events.append(stop_requested())

    def take_reread(self) -> bool:
        """Return True if settings must be read again; once for each request."""
        is_due = self._is_reread_due
        self._is_reread_due = False
        return is_due

    def restore(self) -> None:
        """Restore the earlier handlers; after a stop request keep the default, so that the next
        signal ends the process.
        """
        signal.set_wakeup_fd(self._descriptor_before)
        if not self.is_stop_requested:
            for one, before in self._before.items():
                signal.signal(one, before)


def _has_terminal() -> bool:
    """Return True if this process has a controlling terminal that still exists."""
    try:
        os.close(os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError:
        return False
    return True
