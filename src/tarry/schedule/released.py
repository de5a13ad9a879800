"""Memory of the bodies that a schedule has released last, by s-offset and by id.

It serves answers only: a request to cancel a released body gets the answer that it is released.
Hot.
"""

from __future__ import annotations

from tarry.base.limits import SCHEDULE_RELEASED_KEPT
from tarry.schedule.pending import Body


class ReleasedBodies:
    """Bodies whose release is committed, with the offset of each in the partition, or -1 if the
    offset is not known any more."""

    def __init__(self) -> None:
        # Offset, id and number of records by s-offset; the body released first stands first.
        self._offsets: dict[int, tuple[int, bytes, int]] = {}
        self._by_id: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, body: Body, offset: int) -> None:
        """Remember a body that was released."""
        offsets = self._offsets
        offsets[body.s_offset] = (offset, body.schedule_id, body.record_count)
        if body.schedule_id:
            self._by_id[body.schedule_id] = body.s_offset
        if len(offsets) > SCHEDULE_RELEASED_KEPT:
            self._forget(next(iter(offsets)))

    def restore(self, s_offset: int, offset: int, schedule_id: bytes, record_count: int) -> None:
        """Remember a body that an earlier life of the broker remembered, in the order of `all`."""
        self._offsets[s_offset] = (offset, schedule_id, record_count)
        if schedule_id:
            self._by_id[schedule_id] = s_offset

    def all(self) -> list[tuple[int, int, bytes, int]]:
        """Return the remembered bodies: s-offset, offset, id, and number of records of each; the id
        is b"" if another body has had it since."""
        return [
            (s_offset, offset, schedule_id if self._by_id.get(schedule_id) == s_offset else b"", n)
            for s_offset, (offset, schedule_id, n) in self._offsets.items()
        ]

    def forget_id(self, schedule_id: bytes) -> None:
        """Forget which released body had an id: another body has taken it over."""
        self._by_id.pop(schedule_id, None)

    def forget_ids(self) -> None:
        """Forget all ids: it is not known which of them other bodies have taken over."""
        self._by_id.clear()

    def s_offset_of(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of the last body released with this id; None if none is known."""
        return self._by_id.get(schedule_id)

    def offset_of(self, s_offset: int) -> int | None:
        """Return the offset in the partition of a released body; None if it is not known here."""
        found = self._offsets.get(s_offset)
        return None if found is None else found[0]

    def count_of(self, s_offset: int) -> int:
        """Return how many records were released together at this s-offset; 0 if it is not known."""
        found = self._offsets.get(s_offset)
        return 0 if found is None else found[2]

    def _forget(self, s_offset: int) -> None:
        schedule_id = self._offsets.pop(s_offset)[1]
        if schedule_id and self._by_id.get(schedule_id) == s_offset:
            del self._by_id[schedule_id]
