"""SIGTERM, SIGINT, SIGHUP: the first asks for a clean stop, the second ends the process at once."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Final

from tarry.base.doors import Event, stop_requested
from tarry.runtime.wake import Wake

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopSignals:
    """Installed for as long as the loop runs; the main thread's."""

    def __init__(self, wake: Wake) -> None:
        self.is_requested = False
        self._is_told = False
        # The handlers last, so that no signal is handled that would wake nobody.
        wake.add_collector(self._collect)
        self._descriptor_before = signal.set_wakeup_fd(
            wake.write_descriptor, warn_on_full_buffer=False
        )
        self._before: list[Any] = [signal.signal(one, self._on_signal) for one in _STOP_SIGNALS]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.is_requested = True
        # The system's own action: the second one needs no Python to end us.
        for one in _STOP_SIGNALS:
            signal.signal(one, signal.SIG_DFL)

    def _collect(self, events: list[Event]) -> None:
        if self.is_requested and not self._is_told:
            self._is_told = True
            events.append(stop_requested())

    def restore(self) -> None:
        """As it was before."""
        signal.set_wakeup_fd(self._descriptor_before)
        if not self.is_requested:
            for one, before in zip(_STOP_SIGNALS, self._before, strict=True):
                signal.signal(one, before)
