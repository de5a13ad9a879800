"""Outlet: output that never blocks in a write, however slow its reader is.

A slow reader behind a pipe would hold up a member of a group, and with it the whole group.
Therefore bytes that cannot be written yet wait here, and `idle` does other work meanwhile.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import IO, Final

# Time that the reader may take before `idle` is called, and between two calls of it.
IDLE_SECONDS: Final = 0.5

# Bytes that a pipe surely takes when it is ready for writing.
PIECE_BYTES: Final = select.PIPE_BUF


class Outlet:
    """Output that writes all bytes it gets; it calls `idle` repeatedly while nobody reads them."""

    def __init__(self, output: IO[bytes], idle: Callable[[], None]) -> None:
        self._output = output
        self._idle = idle
        self._handle = _handle_of(output)

    def write(self, data: bytes) -> bool:
        """Write all bytes; return whether `idle` was not called.  Raises errors of the write."""
        if self._handle is None:
            self._output.write(data)
            self._output.flush()
            return True
        was_quick = True
        left = memoryview(data)
        while left:
            while not select.select([], [self._handle], [], IDLE_SECONDS)[1]:
                was_quick = False
                self._idle()
            written = os.write(self._handle, left[:PIECE_BYTES])
            left = left[written:]
        return was_quick


def _handle_of(output: IO[bytes]) -> int | None:
    """Return the descriptor of an output; None for what is no file of the system, such as
    memory.
    """
    try:
        output.flush()
        return output.fileno()
    except (OSError, ValueError):
        return None
