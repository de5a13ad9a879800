"""Thread that writes log lines, so that a slow reader of the output does not stop the loop.

A pipe behind the standard error output holds 64 KiB; a write to a full one waits for its reader.
The loop therefore puts lines into a bounded queue and continues.  When the queue is full, lines are
dropped and counted.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Final

# Bytes of lines that wait for the thread: minutes of ordinary lines, a thousand stack traces.
QUEUE_BYTES_MAX: Final = 1 << 20

# Seconds that `flush` waits for the thread: a critical line is worth a pause, a full pipe no hang.
FLUSH_SECONDS_MAX: Final = 1.0

# Bytes of one write: a pipe takes lines of at most this size (PIPE_BUF of Linux) as a whole.
_WRITE_BYTES_MAX: Final = 4_096


class LogWriter:
    """Bounded queue of lines, and the daemon thread that writes them to a descriptor.

    Any thread may call it.  If the descriptor is closed or broken, the lines are lost quietly.
    """

    def __init__(self, descriptor: int, bytes_max: int = QUEUE_BYTES_MAX) -> None:
        self._descriptor = descriptor
        self._bytes_max = bytes_max
        self._lines: deque[bytes] = deque()
        # Bytes of `_lines` and of the write that is under way.
        self._bytes = 0
        self._dropped = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def offer(self, line: bytes) -> bool:
        """Queue one line, with its line end, to be written later; False if it was dropped."""
        with self._changed:
            if self._bytes + len(line) > self._bytes_max:
                self._dropped += 1
                return False
            self._lines.append(line)
            self._bytes += len(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def take_dropped(self, room: int) -> int:
        """Return the number of lines dropped since the last call; 0 if less than `room` is free."""
        with self._changed:
            if self._bytes + room > self._bytes_max:
                return 0
            dropped = self._dropped
            self._dropped = 0
            return dropped

    def flush(self, seconds_max: float = FLUSH_SECONDS_MAX) -> bool:
        """Wait until all lines are written, at most `seconds_max`; return True if they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._bytes == 0, seconds_max)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                size = 0
                lines: list[bytes] = []
                while self._lines and (not lines or size + len(self._lines[0]) <= _WRITE_BYTES_MAX):
                    line = self._lines.popleft()
                    lines.append(line)
                    size += len(line)
            # If there is no reader, the lines are lost: that is no reason to stop the broker.
            with suppress(OSError, ValueError):
                self._write(b"".join(lines))
            with self._changed:
                self._bytes -= size
                self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                # Another program may have made the shared terminal non-blocking.
                select.select([], [self._descriptor], [])
