"""Outlet: output to whoever reads it, without ever being stuck in a write.

A slow reader behind a pipe would hold up a member of a group, and with it the whole group; so
what cannot be written yet waits here, and somebody else's work is done meanwhile.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import IO, Final

# How long the reader may take before the other work is done, and between two times of it.
IDLE_SECONDS: Final = 0.5

# What a pipe takes at once when it says that it takes anything.
PIECE_BYTES: Final = select.PIPE_BUF


class Outlet:
    """Writes all of what it is given; `idle` is called again and again while nobody takes it."""

    def __init__(self, output: IO[bytes], idle: Callable[[], None]) -> None:
        self._output = output
        self._idle = idle
        self._handle = _handle_of(output)

    def write(self, data: bytes) -> bool:
        """True if it went straight through; raises what the write raises."""
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
