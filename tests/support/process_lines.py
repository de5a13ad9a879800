"""Lines of a process, taken by a thread as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import IO


def start_reader(stream: IO[bytes] | None, hear: Callable[[bytes], None]) -> threading.Thread:
    """Hand each whole line to `hear`, in a thread of its own."""
    assert stream is not None

    def read() -> None:
        for line in stream:
            if line.endswith(b"\n"):  # the last line of a killed process may be half
                hear(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread
