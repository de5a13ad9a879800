"""Status line: one line on stderr that is written again and again, and taken away at the end.

On a terminal only; elsewhere nothing is shown but what is said once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from tarry.cli.tables import complain, escaped

# As terminals take it: to the first column, and nothing behind it.
_CLEAR: Final = "\r\x1b[K"

# How often a line may change; a terminal far away is slow.
_PAUSE_SECONDS: Final = 0.1


class StatusLine:
    """Line about what goes on: `show` it again and again, `clear` it before other output."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown_at = -_PAUSE_SECONDS
        self._is_shown = False

    @property
    def is_live(self) -> bool:
        """True if a person sees it."""
        return sys.stderr.isatty()

    def show(self, text: str) -> None:
        now = self._clock()
        if not self.is_live or now - self._shown_at < _PAUSE_SECONDS:
            return
        # Loaded here, because hardly any command shows a line, and it takes 10 ms.
        import shutil

        self._shown_at = now
        self._is_shown = True
        width = shutil.get_terminal_size().columns - 1
        text = escaped(text)
        line = text if len(text) <= width else text[: max(width - 1, 0)] + "…"
        sys.stderr.write(_CLEAR + line)
        sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown:
            self._is_shown = False
            self._shown_at = -_PAUSE_SECONDS
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


# How long a command may wait in silence: with trouble, and without any that is known.
TROUBLE_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 2.0


class Waiting:
    """Says what a command waits for, soon: a line that counts on a terminal, else a line a
    trouble."""

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._clock = clock
        self._line = StatusLine(clock)
        self._since: float | None = None
        self._told: dict[str, None] = {}

    def look(self, trouble: str | None) -> None:
        """Called again and again with the trouble ("" is none); None: the wait is over."""
        if trouble is None:
            self._since = None
            self._line.clear()
            return
        now = self._clock()
        if self._since is None:
            self._since = now
        waited = now - self._since
        if waited < (TROUBLE_SECONDS if trouble else QUIET_SECONDS):
            return
        text = trouble or f"no answer from {self._address} yet"
        if self._line.is_live:
            self._line.show(f"tarry: waiting ({waited:.0f} s): {text}")
        elif text not in self._told:
            self._told[text] = None
            complain(f"waiting: {text}")
