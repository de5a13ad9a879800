"""Wake: wakes the loop from a file worker or a signal, by a pipe whose end the poller watches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from tarry.base.doors import Event

Collect = Callable[[list[Event]], None]


class Wake:
    """Source of the reactor; when it wakes, the collectors add their events."""

    def __init__(self) -> None:
        self.read_descriptor, self.write_descriptor = os.pipe()
        os.set_blocking(self.read_descriptor, False)
        os.set_blocking(self.write_descriptor, False)
        self._collectors: list[Collect] = []

    def add_collector(self, collect: Collect) -> None:
        self._collectors.append(collect)

    def wake(self) -> None:
        """Wake the loop, from any thread; a full pipe wakes it too."""
        with contextlib.suppress(BlockingIOError):
            os.write(self.write_descriptor, b"\0")

    def ready(self, mask: int, events: list[Event]) -> None:
        # Read before the collectors run: an event that is added later wakes again.
        os.read(self.read_descriptor, 4096)
        for collect in self._collectors:
            collect(events)

    def close(self) -> None:
        os.close(self.read_descriptor)
        os.close(self.write_descriptor)
