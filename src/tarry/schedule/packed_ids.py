"""Ids of waiting bodies, packed: which body has an id, and which id a body has.

An id lies in an order of entries whose width is enough for its length, filled up with zeros.  There
are eleven widths; an id that is longer than allowed has a width of its own.  An id takes little
more memory than its bytes, twice: once for each direction.  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i64_be, write_i16_be, write_i64_be
from mypy_extensions import i16

from tarry.schedule.entry_order import EntryOrder

# Bytes that an id is filled up to: the first of these widths that is enough.
_ROOMS: Final = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
_S_OFFSET_SIZE: Final = 8
_LENGTH_SIZE: Final = 2
# Bytes of an entry beside the id.
ID_OVERHEAD: Final = _S_OFFSET_SIZE + _LENGTH_SIZE


class PackedIds:
    """Ids with their s-offsets; a subclass orders them by id or by s-offset."""

    def __init__(self) -> None:
        self._orders: dict[int, EntryOrder] = {}

    def rooms(self) -> list[int]:
        """Return the widths that have ids, ascending: bytes of the longest id that fits."""
        return sorted(self._orders)

    def block_from(self, room: int, key: bytes) -> bytes:
        """Return the next packed ids of one width at or behind a key; b"" if there are no more."""
        order = self._orders.get(room)
        return b"" if order is None else order.block_from(key)

    def add_block(self, room: int, data: bytes) -> None:
        """Add packed ids of one width; `CorruptData` if they do not lie behind all others."""
        self._order_of(room).add_block(data)

    def _order_of(self, room: int) -> EntryOrder:
        order = self._orders.get(room)
        if order is None:
            order = self._orders[room] = EntryOrder(room + ID_OVERHEAD)
        return order


class OffsetsOfIds(PackedIds):
    """S-offsets of bodies by their ids, in the order of the ids."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add_block(self, room: int, data: bytes) -> None:
        super().add_block(room, data)
        self.count += len(data) // (room + ID_OVERHEAD)

    def get(self, schedule_id: bytes) -> int | None:
        """Return the s-offset of the body that has this id; None if none has it."""
        order = self._orders.get(_room_of(schedule_id))
        if order is None:
            return None
        entry = order.find(_padded(schedule_id))
        return int(read_i64_be(entry, len(entry) - _S_OFFSET_SIZE)) if entry else None

    def put(self, schedule_id: bytes, s_offset: int) -> None:
        """Assign the id to the body at this s-offset, and to no other."""
        self.remove(schedule_id)
        entry = BytesWriter()
        entry.write(_padded(schedule_id))
        write_i64_be(entry, s_offset)
        self._order_of(_room_of(schedule_id)).add(entry.getvalue())
        self.count += 1

    def remove(self, schedule_id: bytes) -> None:
        """Remove the id, if a body has it."""
        room = _room_of(schedule_id)
        order = self._orders.get(room)
        if order is None:
            return
        key = _padded(schedule_id)
        if order.find(key):
            order.remove(key)
            self.count -= 1
            if not order.first():
                del self._orders[room]


class IdsOfOffsets(PackedIds):
    """Ids of bodies by their s-offsets, in the order of the s-offsets."""

    def get(self, s_offset: int) -> bytes:
        """Return the id of the body at this s-offset; b"" if it has none."""
        key = _offset_key(s_offset)
        for order in self._orders.values():
            entry = order.find(key)
            if entry:
                return _id_in(entry)
        return b""

    def put(self, s_offset: int, schedule_id: bytes) -> None:
        """Set the id of the body at this s-offset, which must have none yet."""
        entry = BytesWriter()
        write_i64_be(entry, s_offset)
        entry.write(_padded(schedule_id))
        self._order_of(_room_of(schedule_id)).add(entry.getvalue())

    def remove(self, s_offset: int) -> None:
        """Remove the id of the body at this s-offset, if it has one."""
        key = _offset_key(s_offset)
        for room, order in self._orders.items():
            if order.find(key):
                order.remove(key)
                if not order.first():
                    del self._orders[room]
                return


def _room_of(schedule_id: bytes) -> int:
    length = len(schedule_id)
    for room in _ROOMS:
        if length <= room:
            return room
    return length


def _padded(schedule_id: bytes) -> bytes:
    """Return the length and the bytes of an id, filled up with zeros to its width."""
    padded = BytesWriter()
    write_i16_be(padded, i16(len(schedule_id)))
    padded.write(schedule_id)
    padded.write(bytes(_room_of(schedule_id) - len(schedule_id)))
    return padded.getvalue()


def _offset_key(s_offset: int) -> bytes:
    key = BytesWriter()
    write_i64_be(key, s_offset)
    return key.getvalue()


def _id_in(entry: bytes) -> bytes:
    begin = _S_OFFSET_SIZE + _LENGTH_SIZE
    return entry[begin : begin + int(read_i16_be(entry, _S_OFFSET_SIZE))]
