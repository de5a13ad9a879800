"""Bodies that are pending: committed in the companion log, neither released nor cancelled.

`PendingBodies` is the contract: in order of (due, s-offset), which is by due time, then arrival.
`PendingHeap` keeps all of them in memory.  Hot.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from tarry.schedule.notes import ANY_OFFSET, Watermark

# Due time of nothing: later than every other.
NEVER: Final = 2**63 - 1
# Due time of a body whose note cannot be read: at or below every watermark.
UNKNOWN: Final = -(2**63)

# Entries of the heap that stand for bodies which were forgotten: no more than so many and as many
# as there are others.
_STALE_MIN: Final = 1_000

# Entries looked at for the exceptions of a checkpoint, which is a part of one turn: 10 ms.
_LOOKS_MAX: Final = 50_000


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

    def find(self, s_offset: int) -> Body | None:
        """Return the body at `s_offset`; None if it is not here."""
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

    def furthest_due_ms(self) -> int:
        """Return when the last one is due; -1 if there is none.  Goes through all of them."""
        raise NotImplementedError


class PendingHeap(PendingBodies):
    """Bodies in a heap, all in memory."""

    def __init__(self) -> None:
        super().__init__()
        # Due time and s-offset.  An entry counts if `_bodies` has that body with that time.
        self._heap: list[tuple[int, int]] = []
        self._bodies: dict[int, Body] = {}
        # S-offsets in the order of the log; that of a body which has left is dropped when it is
        # the first.  Those that came again later stand apart.
        self._offsets: deque[int] = deque()
        self._last_offset = -1
        self._returned: dict[int, None] = {}

    def add(self, body: Body) -> None:
        assert body.s_offset not in self._bodies
        self._bodies[body.s_offset] = body
        heappush(self._heap, (body.due_ms, body.s_offset))
        self.count += 1
        if body.s_offset > self._last_offset:
            self._last_offset = body.s_offset
            self._offsets.append(body.s_offset)
        else:
            self._returned[body.s_offset] = None
        self.record_count += body.record_count
        self.size += body.size

    def next_due_ms(self) -> int:
        self._drop_stale_head()
        return self._heap[0][0] if self._heap else NEVER

    def take_due(self, now_wall_ms: int) -> Body | None:
        if self.next_due_ms() > now_wall_ms or not self._heap:
            return None
        body = self._bodies[heappop(self._heap)[1]]
        self._leave(body)
        return body

    def has(self, s_offset: int) -> bool:
        return s_offset in self._bodies

    def find(self, s_offset: int) -> Body | None:
        return self._bodies.get(s_offset)

    def forget(self, s_offset: int) -> Body | None:
        body = self._bodies.get(s_offset)
        if body is None:
            return None
        self._leave(body)
        if len(self._heap) > 2 * len(self._bodies) + _STALE_MIN:
            self._heap = [entry for entry in self._heap if self._body_of(entry) is not None]
            heapify(self._heap)
        return body

    def at_or_below(self, watermark: Watermark, from_offset: int) -> list[Body] | None:
        place = (watermark.due_ms, watermark.s_offset)
        found: list[Body] = []
        looks = 0
        # Below an entry of the heap lie only later ones.
        waiting = [0]
        while waiting:
            index = waiting.pop()
            if index >= len(self._heap):
                continue
            looks += 1
            if looks > _LOOKS_MAX:
                return None
            entry = self._heap[index]
            if entry > place:
                continue
            body = self._body_of(entry)
            if body is not None and from_offset <= body.s_offset < watermark.before_offset:
                found.append(body)
            waiting.append(2 * index + 1)
            waiting.append(2 * index + 2)
        return found

    def first_offset(self) -> int:
        offsets = self._offsets
        while offsets and offsets[0] not in self._bodies:
            offsets.popleft()
        bodies = self._bodies
        first = ANY_OFFSET
        if self._returned:
            first = bodies[min(self._returned)].batch_offset
        return min(first, bodies[offsets[0]].batch_offset) if offsets else first

    def furthest_due_ms(self) -> int:
        return max((body.due_ms for body in self._bodies.values()), default=-1)

    def entry_count(self) -> int:
        """Return how many entries the heap has, those of forgotten bodies included."""
        return len(self._heap)

    def _body_of(self, entry: tuple[int, int]) -> Body | None:
        body = self._bodies.get(entry[1])
        return body if body is not None and body.due_ms == entry[0] else None

    def _leave(self, body: Body) -> None:
        del self._bodies[body.s_offset]
        self.count -= 1
        if self._returned:
            self._returned.pop(body.s_offset, None)
        self.record_count -= body.record_count
        self.size -= body.size

    def _drop_stale_head(self) -> None:
        while self._heap and self._body_of(self._heap[0]) is None:
            heappop(self._heap)
