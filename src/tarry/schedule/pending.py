"""Bodies that are pending: committed in the companion log, neither released nor cancelled.

`PendingBodies` keeps all of them in memory, in order of (due, s-offset), which is by due time, then
arrival.  They are packed: each body has an entry in the order of due times, and a link of 16 bytes
in the order of s-offsets that leads to the entry.  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be

from tarry.schedule.due_order import DueOrder, DueSums
from tarry.schedule.entries import (
    ENTRY_SIZE,
    HAS_ID,
    IS_OBJECT,
    NO_POSITION,
    due_ms_of,
    entry_of,
    flags_of,
    place_key,
    place_of,
    position_of,
    record_count_of,
    s_offset_of,
    size_of,
)
from tarry.schedule.entry_order import EntryOrder
from tarry.schedule.notes import ANY_OFFSET, Watermark
from tarry.schedule.packed_ids import IdsOfOffsets

# Due time where no body is pending: later than every other.
NEVER: Final = 2**63 - 1
# Due time of a body whose note cannot be read: it lies at or below every watermark.
UNKNOWN: Final = -(2**63)

# Most entries that are looked at for the exceptions of a checkpoint: 10 ms of one turn.
_LOOKS_MAX: Final = 50_000
# Entries that the search for exceptions takes from the order at once.
_LOOKS_AT_ONCE: Final = 500
# Links that the search for the bodies of a batch takes from the order at once.
_LINKS_AT_ONCE: Final = 50
# Leader epoch of a pending body: only a start needs the epoch, to compare releases with it.
NO_EPOCH: Final = -1

# Due time and s-offset.
DuePlace = tuple[int, int]

# Bytes of a link, which leads from an s-offset to its entry: s-offset and due time.
LINK_SIZE: Final = 16
# Place of a body that is a whole batch, and is released as it was sent.
WHOLE: Final = -1


class Body:
    """Batch in the companion log that is released when it is due.

    `s_offset` is its base offset there, `leader_epoch` the epoch that it was parked in, `size` the
    bytes of the batch.  A body may also be one place of a batch: then `place` is the number of its
    first record in the batch, and `size` its share of the bytes.
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
        position: int = NO_POSITION,
    ) -> None:
        self.s_offset = s_offset
        self.due_ms = due_ms
        self.leader_epoch = leader_epoch
        # open: the count in the companion log may be damaged; the release has the right one
        self.record_count = record_count
        self.size = size
        self.place = place
        self.schedule_id = schedule_id
        # Position in the segment of the batch's note when the body was parked: a hint.
        self.position = position

    @property
    def is_packed(self) -> bool:
        """Return whether an entry and an id say all about the body."""
        return True

    @property
    def batch_offset(self) -> int:
        """Base offset of the batch."""
        return self.s_offset if self.place == WHOLE else self.s_offset - self.place

    def __repr__(self) -> str:
        return f"Body({self.s_offset}, due {self.due_ms}, {self.record_count} records)"


class LeftBody:
    """Entry and id of a body that has left."""

    def __init__(self, entry: bytes, schedule_id: bytes) -> None:
        self.entry = entry
        self.schedule_id = schedule_id


class PendingBodies:
    """Bodies in their order; `count`, `record_count` and `size` are sums over all of them."""

    def __init__(self) -> None:
        self.count = 0
        self.record_count = 0
        self.size = 0
        # Packed bodies before the s-offset `leaving_before` that left while a snapshot is written.
        self.leaving: list[LeftBody] = []
        self.leaving_before = 0
        # Id of each body that has one.
        self.ids = IdsOfOffsets()
        self._order = DueOrder()
        self._links = EntryOrder(LINK_SIZE)
        # Recurring bodies by s-offset: an entry does not say all about them.
        self._objects: dict[int, Body] = {}

    def add(self, body: Body) -> None:
        """Add a body that is not here yet."""
        if not body.is_packed:
            self._objects[body.s_offset] = body
        elif body.schedule_id:
            self.ids.put(body.s_offset, body.schedule_id)
        entry = _entry_of(body)
        assert not self.has(body.s_offset)
        self._order.add(entry)
        self._links.add(_link(body.s_offset, body.due_ms))
        self.count += 1
        self.record_count += record_count_of(entry)
        self.size += size_of(entry)

    def next_due_ms(self) -> int:
        """Return when the first body is due; `NEVER` if there is none."""
        entry = self._order.first()
        return due_ms_of(entry) if entry else NEVER

    def take_due(self, now_wall_ms: int) -> Body | None:
        """Remove and return the first body of the order if it is due by now; None otherwise."""
        entry = self._order.first()
        if not entry or due_ms_of(entry) > now_wall_ms:
            return None
        self._order.remove_first()
        self._links.remove(link_key(s_offset_of(entry)))
        return self._let_go(entry)

    def has(self, s_offset: int) -> bool:
        """Return whether the body at `s_offset` is here."""
        return self._due_ms(s_offset) is not None

    def get(self, s_offset: int) -> Body | None:
        """Return the body at `s_offset`, which stays here; None if it is not here."""
        due_ms = self._due_ms(s_offset)
        return None if due_ms is None else self._body_of(self._order.find_at(due_ms, s_offset))

    def forget(self, s_offset: int) -> Body | None:
        """Remove and return the body at `s_offset`; None if it is not here."""
        due_ms = self._due_ms(s_offset)
        if due_ms is None:
            return None
        self._links.remove(link_key(s_offset))
        return self._let_go(self._order.remove_at(due_ms, s_offset))

    def _let_go(self, entry: bytes) -> Body:
        """Return the body of an entry that was removed from the orders; forget all else of it."""
        body = self._body_of(entry)
        s_offset = body.s_offset
        if s_offset < self.leaving_before and body.is_packed:
            self.leaving.append(LeftBody(entry, body.schedule_id))
        self._objects.pop(s_offset, None)
        if flags_of(entry) & HAS_ID:
            self.ids.remove(s_offset)
        self.count -= 1
        self.record_count -= record_count_of(entry)
        self.size -= size_of(entry)
        return body

    def at_or_below(self, watermark: Watermark, from_offset: int) -> list[int] | None:
        """Return the s-offsets, from `from_offset` on, of the bodies that belong to a watermark and
        are at or below it, in any order, recurring ones left out; None if they are too many."""
        place = (watermark.due_ms, watermark.s_offset)
        found: list[int] = []
        looks = 0
        key = b""
        while entries := self._order.from_key(key, _LOOKS_AT_ONCE):
            for entry in entries:
                s_offset = s_offset_of(entry)
                if (due_ms_of(entry), s_offset) > place:
                    return found
                looks += 1
                is_meant = from_offset <= s_offset < watermark.before_offset
                if is_meant and not flags_of(entry) & IS_OBJECT:
                    found.append(s_offset)
            if looks > _LOOKS_MAX:
                return None
            key = _behind(entries[-1])
        return found

    def first_offset(self) -> int:
        """Return the base offset of the first batch with a body; `ANY_OFFSET` if there is none."""
        link = self._links.first()
        if not link:
            return ANY_OFFSET
        entry = self._order.find_at(_due_in(link), int(read_i64_be(link, 0)))
        return s_offset_of(entry) - max(place_of(entry), 0)

    def between(self, first: int, until: int) -> list[Body]:
        """Return the bodies from s-offset `first` to before `until`, in the order of s-offsets."""
        found: list[Body] = []
        key = link_key(first)
        while links := self._links.from_key(key, _LINKS_AT_ONCE):
            for link in links:
                s_offset = int(read_i64_be(link, 0))
                if s_offset >= until:
                    return found
                found.append(self._body_of(self._order.find_at(_due_in(link), s_offset)))
            key = _behind(links[-1])
        return found

    def furthest_due_ms(self) -> int:
        """Return when the last body is due; -1 if there is none."""
        entry = self._order.last()
        return due_ms_of(entry) if entry else -1

    def from_place(self, due_ms: int, s_offset: int, count_max: int) -> list[DuePlace]:
        """Return the next places at or behind this one, `count_max` at most; an empty list means
        that there are no more."""
        entries = self._order.from_key(place_key(due_ms, s_offset), count_max)
        return [(due_ms_of(entry), s_offset_of(entry)) for entry in entries]

    def sums(self, from_ms: int, until_ms: int) -> DueSums:
        """Sum up the bodies that are due from `from_ms` to before `until_ms`."""
        return self._order.sums(from_ms, until_ms)

    # -- snapshots

    def entries_from(self, key: bytes) -> bytes:
        """Return the next packed entries at or behind a key, in the order of due times; b"" if
        there are no more."""
        return self._order.block_from(key)

    def links_from(self, key: bytes) -> bytes:
        """Return the next packed links at or behind a key, in the order of s-offsets; b"" if there
        are no more."""
        return self._links.block_from(key)

    def begin_leaving(self, before_offset: int) -> None:
        """Collect in `leaving`, from now on, each leaving body that lies before this s-offset."""
        self.leaving = []
        self.leaving_before = before_offset

    def note_leaving(self, body: Body) -> None:
        """Add to `leaving` a body that had left before the collection began."""
        self.leaving.append(LeftBody(_entry_of(body), body.schedule_id))

    def end_leaving(self) -> None:
        """End the collection of leaving bodies."""
        self.leaving = []
        self.leaving_before = 0

    # -- a start

    def add_entries(self, data: bytes, record_count: int, size: int) -> None:
        """Add packed entries with the sums over them; `add_links` has to follow.  `CorruptData` if
        they do not lie behind all others.
        """
        self._order.add_summed(data, record_count, size)
        self.count += len(data) // ENTRY_SIZE
        self.record_count += record_count
        self.size += size

    def add_links(self, data: bytes) -> None:
        """Add the packed links of entries; `CorruptData` if they do not lie behind all others."""
        self._links.add_block(data)

    def add_missing(self, entry: bytes) -> None:
        """Add an entry and its link, each of them only if it is not here yet."""
        s_offset, due_ms = s_offset_of(entry), due_ms_of(entry)
        if not self._order.has_at(due_ms, s_offset):
            self._order.add(entry)
            self.count += 1
            self.record_count += record_count_of(entry)
            self.size += size_of(entry)
        if not self.has(s_offset):
            self._links.add(_link(s_offset, due_ms))

    def set_id(self, s_offset: int, schedule_id: bytes) -> None:
        """Set the id of a body whose entry says that it has one."""
        if not self.ids.get(s_offset):
            self.ids.put(s_offset, schedule_id)

    @property
    def is_even(self) -> bool:
        """Return whether there are as many entries and links as `count` says."""
        return self._order.count() == self._links.count() == self.count

    def _due_ms(self, s_offset: int) -> int | None:
        link = self._links.find(link_key(s_offset))
        return _due_in(link) if link else None

    def _body_of(self, entry: bytes) -> Body:
        s_offset = s_offset_of(entry)
        flags = flags_of(entry)
        if flags & IS_OBJECT:
            return self._objects[s_offset]
        return Body(
            s_offset,
            due_ms_of(entry),
            NO_EPOCH,
            record_count_of(entry),
            size_of(entry),
            place=place_of(entry),
            schedule_id=self.ids.get(s_offset) if flags & HAS_ID else b"",
            position=position_of(entry),
        )


def _entry_of(body: Body) -> bytes:
    flags = 0
    if not body.is_packed:
        flags = IS_OBJECT
    elif body.schedule_id:
        flags = HAS_ID
    return entry_of(
        body.due_ms,
        body.s_offset,
        body.position,
        body.size,
        body.record_count,
        place=body.place,
        flags=flags,
    )


def link_key(s_offset: int) -> bytes:
    """Return the bytes with which the link of this s-offset begins."""
    key = BytesWriter()
    write_i64_be(key, max(s_offset, 0))
    return key.getvalue()


def _link(s_offset: int, due_ms: int) -> bytes:
    link = BytesWriter()
    write_i64_be(link, s_offset)
    write_i64_be(link, due_ms)
    return link.getvalue()


def s_offset_in(links: bytes, position: int) -> int:
    """Return the s-offset of the link at this position."""
    return int(read_i64_be(links, position))


def _due_in(link: bytes) -> int:
    return int(read_i64_be(link, 8))


def _behind(entry: bytes) -> bytes:
    """Return the smallest key that lies behind an entry."""
    return entry + b"\0"
