"""Cache of opened bodies: a batch whose records are released one after the other is read once.

A batch stays until others need the room, or about a second after the last release.  One that had to
make room leaves its outline, by which its records are read again one by one.  Hot.
"""

from __future__ import annotations

from typing import Final

from tarry.base.limits import OPENED_BODIES_BYTES_MAX
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.opened import BodyOutline, OpenedBody

# Pieces of all outlines: some 8 MB, for half a gigabyte of batches.
OUTLINED_PIECES_MAX: Final = 100_000


class OpenedBodies:
    """Bodies of all partitions that are led here, by companion log and offset."""

    def __init__(self) -> None:
        self.size = 0
        # Opened bodies by companion log and offset; the one that was used last is at the end.
        self._bodies: dict[tuple[ReplicatedLog, int], OpenedBody] = {}
        self._outlines: dict[tuple[ReplicatedLog, int], BodyOutline] = {}
        self._pieces = 0

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
            place = next(iter(bodies))
            outline = bodies[place].outline()
            self._drop(place)
            if outline is not None:
                self._keep_outline(place, outline)

    def outline(self, companion: ReplicatedLog, offset: int) -> BodyOutline | None:
        """Return the outline of a batch that had to make room; None if there is none."""
        outline = self._outlines.pop((companion, offset), None)
        if outline is not None:
            self._outlines[companion, offset] = outline
        return outline

    def drop_outline(self, companion: ReplicatedLog, offset: int) -> None:
        """Drop the outline of a batch that lies elsewhere now, or is damaged."""
        outline = self._outlines.pop((companion, offset), None)
        if outline is not None:
            self._pieces -= outline.piece_count

    def forget(self, companion: ReplicatedLog) -> None:
        """Forget the bodies of one companion log."""
        for place in [each for each in self._bodies if each[0] is companion]:
            self._drop(place)
        for log, offset in [each for each in self._outlines if each[0] is companion]:
            self.drop_outline(log, offset)

    def clear(self) -> None:
        """Forget all bodies."""
        self._bodies.clear()
        self.size = 0
        self._outlines.clear()
        self._pieces = 0

    def _keep_outline(self, place: tuple[ReplicatedLog, int], outline: BodyOutline) -> None:
        self.drop_outline(place[0], place[1])
        self._outlines[place] = outline
        self._pieces += outline.piece_count
        while self._pieces > OUTLINED_PIECES_MAX:
            log, offset = next(iter(self._outlines))
            self.drop_outline(log, offset)

    def _drop(self, place: tuple[ReplicatedLog, int]) -> None:
        self.size -= self._bodies.pop(place).size
