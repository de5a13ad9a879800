"""Bodies that are pending: committed in the companion log, neither released nor cancelled.

`PendingBodies` is the contract: in order of (due, s-offset), which is by due time, then arrival.
`PendingHeap` keeps all of them in memory.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from tarry.schedule.due_order import DueEntry, DueOrder, DueSums
from tarry.schedule.notes import ANY_OFFSET, Watermark
from tarry.schedule.offset_order import OffsetOrder

# Due time of nothing: later than every other.
NEVER: Final = 2**63 - 1
# Due time of a body whose note cannot be read: at or below every watermark.
UNKNOWN: Final = -(2**63)

# Entries looked at for the exceptions of a checkpoint, which is a part of one turn: 10 ms.
_LOOKS_MAX: Final = 50_000
# Of them, those that are taken from the order at once.
_LOOKS_AT_ONCE: Final = 500


# A body that is released as it came.
WHOLE: Final = -1


class Body:
    """Batch in the companion log that is released when it is due.

    `s_offset` is its base offset there, `leader_epoch` the epoch that it was parked in, `size` the
    bytes of the batch.  Or a place of such a batch: then `place` is the number of its first record
    there, and `size` its share.
    """

    def __init__(
        self,
        s_offset: int,
        due_ms: int,
        leader_epoch: int,
        record_count: int,
        size: int,
        *,
        place: int = WHOLE,
        schedule_id: bytes = b"",
    ) -> None:
        self.s_offset = s_offset
        self.due_ms = due_ms
        self.leader_epoch = leader_epoch
        # open: what the companion log says of it may be damaged; its release tells
        self.record_count = record_count
        self.size = size
        self.place = place
        self.schedule_id = schedule_id

    @property
    def batch_offset(self) -> int:
        """Base offset of the batch."""
        return self.s_offset if self.place == WHOLE else self.s_offset - self.place

    def __repr__(self) -> str:
        return f"Body({self.s_offset}, due {self.due_ms}, {self.record_count} records)"


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingBodies:
    """Contract of what keeps bodies until they are due; `count`, `records` and `size` are of all
    of them."""

    def __init__(self) -> None:
        self.count = 0
        self.record_count = 0
        self.size = 0

    def add(self, body: Body) -> None:
        """Keep a body that is not kept yet."""
        raise NotImplementedError

    def next_due_ms(self) -> int:
        """Return when the first one is due; `NEVER` if there is none."""
        raise NotImplementedError

    def take_due(self, now_wall_ms: int) -> Body | None:
        """Take out the first one in the order, if it is due by now."""
        raise NotImplementedError

    def has(self, s_offset: int) -> bool:
        """Return whether the body at `s_offset` is here."""
        raise NotImplementedError

    def forget(self, s_offset: int) -> Body | None:
        """Take out the body at `s_offset`; None if it is not here."""
        raise NotImplementedError

    def at_or_below(self, watermark: Watermark, from_offset: int) -> list[Body] | None:
        """Return what belongs to a watermark, from this s-offset on, and is at or below it, in any
        order; None if that is too much to look for."""
        raise NotImplementedError

    def first_offset(self) -> int:
        """Return where the first batch of all of them begins; `ANY_OFFSET` if there is none."""
        raise NotImplementedError

    def between(self, first: int, until: int) -> list[Body]:
        """Return the bodies from one s-offset on and before another, in the order of these."""
        raise NotImplementedError

    def furthest_due_ms(self) -> int:
        """Return when the last one is due; -1 if there is none."""
        raise NotImplementedError

    def get(self, s_offset: int) -> Body | None:
        """Return the body at `s_offset`, which stays here; None if it is not here."""
        raise NotImplementedError

    def from_place(self, due_ms: int, s_offset: int, count_max: int) -> list[DueEntry]:
        """Return the first ones from this place of the order on; an empty list means that there are
        no more."""
        raise NotImplementedError

    def sums(self, from_ms: int, until_ms: int) -> DueSums:
        """Sum up what is due from one time on and before another."""
        raise NotImplementedError


class PendingHeap(PendingBodies):
    """Bodies in their order, all in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._order = DueOrder()
        self._bodies: dict[int, Body] = {}
        self._offsets = OffsetOrder()

    def add(self, body: Body) -> None:
        assert body.s_offset not in self._bodies
        self._bodies[body.s_offset] = body
        self._order.add(body.due_ms, body.s_offset, body.record_count, body.size)
        self.count += 1
        self._offsets.add(body.s_offset)
        self.record_count += body.record_count
        self.size += body.size

    def next_due_ms(self) -> int:
        entry = self._order.first()
        return NEVER if entry is None else entry[0]

    def take_due(self, now_wall_ms: int) -> Body | None:
        entry = self._order.first()
        if entry is None or entry[0] > now_wall_ms:
            return None
        return self.forget(entry[1])

    def has(self, s_offset: int) -> bool:
        return s_offset in self._bodies

    def get(self, s_offset: int) -> Body | None:
        return self._bodies.get(s_offset)

    def forget(self, s_offset: int) -> Body | None:
        body = self._bodies.pop(s_offset, None)
        if body is None:
            return None
        self._order.remove(body.due_ms, s_offset)
        self.count -= 1
        self._offsets.remove(s_offset)
        self.record_count -= body.record_count
        self.size -= body.size
        return body

    def at_or_below(self, watermark: Watermark, from_offset: int) -> list[Body] | None:
        place = (watermark.due_ms, watermark.s_offset)
        found: list[Body] = []
        looks = 0
        due_ms, s_offset = UNKNOWN, 0
        while entries := self._order.from_place(due_ms, s_offset, _LOOKS_AT_ONCE):
            for entry in entries:
                due_ms, s_offset = entry[0], entry[1]
                if (due_ms, s_offset) > place:
                    return found
                looks += 1
                if from_offset <= s_offset < watermark.before_offset:
                    found.append(self._bodies[s_offset])
            if looks > _LOOKS_MAX:
                return None
            s_offset += 1
        return found

    def first_offset(self) -> int:
        first = self._offsets.first()
        return ANY_OFFSET if first is None else self._bodies[first].batch_offset

    def between(self, first: int, until: int) -> list[Body]:
        bodies = self._bodies
        return [bodies[s_offset] for s_offset in self._offsets.between(first, until)]

    def furthest_due_ms(self) -> int:
        entry = self._order.last()
        return -1 if entry is None else entry[0]

    def from_place(self, due_ms: int, s_offset: int, count_max: int) -> list[DueEntry]:
        return self._order.from_place(due_ms, s_offset, count_max)

    def sums(self, from_ms: int, until_ms: int) -> DueSums:
        return self._order.sums(from_ms, until_ms)
