"""A disk that counts how often the log of what waits is read."""

from __future__ import annotations

from tarry.simulation.disk import SimulatedDisk

COMPANION_FILE = "orders-0.schedule/00000000000000000000.log"


class CountingDisk(SimulatedDisk):
    """Counts the reads of the first segment of the companion log of `orders`."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def check_read(self, path: str) -> None:
        super().check_read(path)
        if path == COMPANION_FILE:
            self.reads += 1
