"""Cache of opened bodies: a batch whose records are released one after the other is read once.

A batch stays until others need the room, or about a second after the last release.  Hot.
"""

from __future__ import annotations

from tarry.base.limits import OPENED_BODIES_BYTES_MAX
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.opened import OpenedBody


class OpenedBodies:
    """Bodies of all partitions that are led here, by companion log and offset."""

    def __init__(self) -> None:
        self.size = 0
        # Opened bodies by companion log and offset; the one that was used last is at the end.
        self._bodies: dict[tuple[ReplicatedLog, int], OpenedBody] = {}

    def get(self, companion: ReplicatedLog, offset: int) -> OpenedBody | None:
        """Return the body at this offset of a companion log; None if it is not here."""
        body = self._bodies.pop((companion, offset), None)
        if body is not None:
            self._bodies[companion, offset] = body
        return body

    def keep(self, companion: ReplicatedLog, body: OpenedBody) -> None:
        """Keep a body that was read, and drop old ones; there is always room for one body."""
        bodies = self._bodies
        bodies[companion, body.base_offset] = body
        self.size += body.size
        while self.size > OPENED_BODIES_BYTES_MAX and len(bodies) > 1:
            self._drop(next(iter(bodies)))

    def forget(self, companion: ReplicatedLog) -> None:
        """Forget the bodies of one companion log."""
        for place in [each for each in self._bodies if each[0] is companion]:
            self._drop(place)

    def clear(self) -> None:
        """Forget all bodies."""
        self._bodies.clear()
        self.size = 0

    def _drop(self, place: tuple[ReplicatedLog, int]) -> None:
        self.size -= self._bodies.pop(place).size
