"""Status line: one line on stderr that is written again and again, and cleared at the end.

The line is shown on a terminal only; elsewhere only single messages are printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from tarry.cli.tables import complain, escaped

# Escape sequence that moves the cursor to the first column and clears the line.
_CLEAR: Final = "\r\x1b[K"

# Time between two changes of the line, at least: a remote terminal is slow.
_PAUSE_SECONDS: Final = 0.1


class StatusLine:
    """Line about what goes on: `show` it again and again, `clear` it before other output."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown_at = -_PAUSE_SECONDS
        self._is_shown = False

    @property
    def is_live(self) -> bool:
        """True if the line is shown, on a terminal."""
        return sys.stderr.isatty()

    def show(self, text: str) -> None:
        now = self._clock()
        if not self.is_live or now - self._shown_at < _PAUSE_SECONDS:
            return
        # Import it here: it takes 10 ms, and hardly any command shows a line.
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


# Time that a command may wait in silence, with known trouble and without.
TROUBLE_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 2.0


class Waiting:
    """Report of what a command waits for: on a terminal a line that counts the seconds, elsewhere
    one line for each trouble."""

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
