"""Snapshot of the pending bodies, in a file beside the companion log S: a hint for the next start.

A snapshot says which bodies were pending at offset X of S and offset c of P, so that a start reads
S from X on and P from c on.  It is written in steps, while bodies come and go.  It has an entry for
each body before X that was pending at any time during the writing.  A body that leaves meanwhile
leaves by a note behind X or by a release behind c, and a start reads these.

A block has a type, the size of its content, the CRC of all, and the content.  The file has blocks
of these types: the header, the bodies that were released before, entries in the order of due times,
links in the order of s-offsets, ids, bodies that have left, and the end.  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64

from tarry.base.errors import CorruptData
from tarry.records.batch import checked_header
from tarry.schedule.cancels import ScheduleIds
from tarry.schedule.due_order import DueSums
from tarry.schedule.entries import ENTRY_SIZE, s_offset_of
from tarry.schedule.entry_order import CHUNK_ENTRIES_MAX
from tarry.schedule.notes import CheckpointNote, read_note
from tarry.schedule.packed_ids import ID_OVERHEAD
from tarry.schedule.pending import LINK_SIZE, PendingBodies, s_offset_in
from tarry.schedule.released import ReleasedBodies
from tarry.schedule.state import ScheduleState
from tarry.wire.crc32c import crc32c

_VERSION: Final = 2
_HEADER: Final = 1
_ENTRIES: Final = 2
_LINKS: Final = 3
_IDS: Final = 4
_LEFT: Final = 5
_RELEASED: Final = 6
# Bodies in a block of released ones; each may have an id of a KiB.
_RELEASED_PER_BLOCK: Final = 1_000
_END: Final = 7
_IDS_OF_OFFSETS: Final = 8
_OFFSETS_OF_IDS: Final = 9

# Bytes before a block's content: its type, its size and the CRC.
_BLOCK_HEADER_SIZE: Final = 12
# Largest content of a block: a thousand ids, of a kilobyte each at most.
_BLOCK_BYTES_MAX: Final = 2 * 1024 * 1024
# Bytes of the sums over the entries of a block.
_SUMS_SIZE: Final = 16
_TOPIC_ID_SIZE: Final = 16
# Bound of the width of a block of ids; the ids of notes are shorter.
_ID_ROOM_MAX: Final = 2**15

# Bodies that may leave while a snapshot is written; if more leave, the snapshot is given up.
LEFT_MAX: Final = 100_000


class SnapshotHeader:
    """Extent of a snapshot: S up to `s_offset`, before which lies a batch of the epoch `s_epoch`,
    and P up to the c of `checkpoint`; both as they were after the unclean election of the epoch
    `unclean_epoch`, -1 without one.  A body before `hole_end` may have been cancelled by a batch
    that compaction has dropped."""

    def __init__(
        self,
        topic_id: bytes,
        index: int,
        s_offset: int,
        s_epoch: int,
        checkpoint: CheckpointNote,
        *,
        unclean_epoch: int,
        hole_end: int,
    ) -> None:
        self.topic_id = topic_id
        self.index = index
        self.s_offset = s_offset
        self.s_epoch = s_epoch
        self.checkpoint = checkpoint
        self.unclean_epoch = unclean_epoch
        self.hole_end = hole_end

    def encode(self) -> bytes:
        """Encode the block's content."""
        writer = BytesWriter()
        write_i16_be(writer, _VERSION)
        assert len(self.topic_id) == _TOPIC_ID_SIZE
        writer.write(self.topic_id)
        write_i32_be(writer, i32(self.index))
        write_i64_be(writer, self.s_offset)
        write_i32_be(writer, i32(self.s_epoch))
        write_i32_be(writer, i32(self.unclean_epoch))
        write_i64_be(writer, self.hole_end)
        writer.write(self.checkpoint.encode(0))
        return writer.getvalue()


def _decode_header(content: bytes) -> SnapshotHeader:
    at = 2 + _TOPIC_ID_SIZE
    if len(content) < at + 28 or read_i16_be(content, 0) != _VERSION:
        raise CorruptData("it is of another version")
    header = checked_header(content, at + 28)
    checkpoint = read_note(content, at + 28, header)
    if not isinstance(checkpoint, CheckpointNote):
        raise CorruptData("it has no checkpoint")
    return SnapshotHeader(
        content[2:at],
        int(read_i32_be(content, at)),
        int(read_i64_be(content, at + 4)),
        int(read_i32_be(content, at + 12)),
        checkpoint,
        unclean_epoch=int(read_i32_be(content, at + 16)),
        hole_end=int(read_i64_be(content, at + 20)),
    )


def _block(kind: int, content: bytes) -> bytes:
    block = BytesWriter()
    write_i32_be(block, i32(kind))
    write_i32_be(block, i32(len(content)))
    crc: i64 = crc32c(content, crc32c(block.getvalue()))
    # Write the CRC as a signed number.
    write_i32_be(block, i32(crc - 2**32 if crc >= 2**31 else crc))
    block.write(content)
    return block.getvalue()


# Block without content, written if none of the entries looked at belongs to the snapshot.
_EMPTY: Final = _block(_IDS, b"")


class SnapshotWriter:
    """Writer of one snapshot, in steps, while the state goes on changing."""

    def __init__(self, state: ScheduleState, header: SnapshotHeader) -> None:
        self._pending = state.pending
        self._before = header.s_offset
        self._key = b""
        self._phase = _ENTRIES
        self._ids = state.ids.offsets
        # Widths whose ids are not written yet in this phase.
        self._rooms: list[int] = []
        # Number of the leaving bodies that are written.
        self._left_count = 0
        self.is_over = False
        first = BytesWriter()
        first.write(_block(_HEADER, header.encode()))
        self._pending.begin_leaving(header.s_offset)
        # A body that is being released or cancelled waits again if that write is lost.
        for body in state.leaving_bodies():
            if body.s_offset < header.s_offset:
                self._pending.note_leaving(body)
        remembered = state.released.all()
        for at in range(0, len(remembered), _RELEASED_PER_BLOCK):
            part = remembered[at : at + _RELEASED_PER_BLOCK]
            first.write(_block(_RELEASED, _encode_released(part)))
        self._first = first.getvalue()

    @property
    def has_failed(self) -> bool:
        """Return whether so many bodies have left that the snapshot is to be given up."""
        return len(self._pending.leaving) > LEFT_MAX

    def next(self) -> bytes:
        """Return the next blocks; `is_over` is true with the last ones."""
        if self._first:
            first, self._first = self._first, b""
            return first
        if self._phase == _ENTRIES:
            return self._next_entries()
        if self._phase == _LINKS:
            return self._next_links()
        if self._phase == _IDS_OF_OFFSETS:
            return self._next_ids_of_offsets()
        if self._phase == _OFFSETS_OF_IDS:
            return self._next_offsets_of_ids()
        return self._next_left()

    def end(self) -> None:
        """End the collection of leaving bodies: the snapshot is written, or given up."""
        self._pending.end_leaving()

    def _next_entries(self) -> bytes:
        data = self._pending.entries_from(self._key)
        if not data:
            self._phase = _LINKS
            self._key = b""
            return self._next_links()
        self._key = data[len(data) - ENTRY_SIZE :] + b"\0"
        content = BytesWriter()
        kept: list[bytes] = []
        for at in range(0, len(data), ENTRY_SIZE):
            entry = data[at : at + ENTRY_SIZE]
            if s_offset_of(entry) < self._before:
                kept.append(entry)
        if not kept:
            return _EMPTY
        entries = b"".join(kept)
        sums = DueSums()
        sums.add(entries)
        write_i64_be(content, sums.record_count)
        write_i64_be(content, sums.size)
        content.write(entries)
        return _block(_ENTRIES, content.getvalue())

    def _next_links(self) -> bytes:
        data = self._pending.links_from(self._key)
        if data:
            self._key = data[len(data) - LINK_SIZE :] + b"\0"
            data = self._before_end(data, LINK_SIZE)
            if data:
                return _block(_LINKS, data)
        self._phase = _IDS_OF_OFFSETS
        self._rooms = self._pending.ids.rooms()
        self._key = b""
        return self._next_ids_of_offsets()

    def _before_end(self, data: bytes, width: int) -> bytes:
        """Return the entries of `data` that lie before the snapshot's end.  Each entry begins with
        its s-offset, and they are in the order of s-offsets."""
        end = len(data)
        while end > 0 and s_offset_in(data, end - width) >= self._before:
            end -= width
        return data[:end]

    def _next_ids_of_offsets(self) -> bytes:
        while self._rooms:
            room = self._rooms[0]
            width = room + ID_OVERHEAD
            data = self._pending.ids.block_from(room, self._key)
            if data:
                self._key = data[len(data) - width :] + b"\0"
                data = self._before_end(data, width)
            if data:
                return _ids_block(_IDS_OF_OFFSETS, room, data)
            del self._rooms[0]
            self._key = b""
        self._phase = _OFFSETS_OF_IDS
        self._rooms = self._ids.rooms()
        return self._next_offsets_of_ids()

    def _next_offsets_of_ids(self) -> bytes:
        while self._rooms:
            room = self._rooms[0]
            width = room + ID_OVERHEAD
            data = self._ids.block_from(room, self._key)
            if data:
                self._key = data[len(data) - width :] + b"\0"
                kept = [
                    data[at : at + width]
                    for at in range(0, len(data), width)
                    if s_offset_in(data, at + width - 8) < self._before
                ]
                return _ids_block(_OFFSETS_OF_IDS, room, b"".join(kept)) if kept else _EMPTY
            del self._rooms[0]
            self._key = b""
        self._phase = _LEFT
        return self._next_left()

    def _next_left(self) -> bytes:
        """Return the next blocks of leaving bodies, and behind the last of them the end block."""
        first = self._left_count
        entries = self._pending.leaving[first : first + CHUNK_ENTRIES_MAX]
        self._left_count += len(entries)
        ids = BytesWriter()
        for each in entries:
            _write_id(ids, s_offset_of(each.entry), each.schedule_id)
        blocks = _block(_IDS, ids.getvalue())
        blocks += _block(_LEFT, b"".join([each.entry for each in entries]))
        if self._left_count == len(self._pending.leaving):
            self.is_over = True
            blocks += _block(_END, b"")
        return blocks


def _ids_block(kind: int, room: int, data: bytes) -> bytes:
    content = BytesWriter()
    write_i64_be(content, room)
    content.write(data)
    return _block(kind, content.getvalue())


def _write_id(ids: BytesWriter, s_offset: int, schedule_id: bytes) -> None:
    if schedule_id:
        write_i64_be(ids, s_offset)
        write_i16_be(ids, i16(len(schedule_id)))
        ids.write(schedule_id)


def _encode_released(released: list[tuple[int, int, bytes, int]]) -> bytes:
    writer = BytesWriter()
    for s_offset, offset, schedule_id, record_count in released:
        write_i64_be(writer, offset)
        write_i64_be(writer, s_offset)
        write_i64_be(writer, record_count)
        write_i16_be(writer, i16(len(schedule_id)))
        writer.write(schedule_id)
    return writer.getvalue()


def _check_id(content: bytes, position: i64, size: i64) -> None:
    if size < 0 or position + size > len(content):
        raise CorruptData(f"an id of {size} bytes")


class SnapshotBase:
    """Content of a snapshot, with which a rebuild begins."""

    def __init__(self) -> None:
        self.pending = PendingBodies()
        self.ids = ScheduleIds()
        self.released = ReleasedBodies()


class SnapshotReader:
    """Reader of a snapshot, whose bytes come piece by piece; `CorruptData` if it is damaged."""

    def __init__(self) -> None:
        self.base = SnapshotBase()
        self.header: SnapshotHeader | None = None
        self.is_over = False
        # True if bytes are left that `take` can go on with before more are read.
        self.is_behind = False
        self._rest = b""

    def take(self, data: bytes) -> None:
        """Take the next bytes of the file; whole blocks are left over only if `is_behind`."""
        data = self._rest + data
        self.is_behind = False
        position: i64 = 0
        end: i64 = len(data)
        while end - position >= _BLOCK_HEADER_SIZE and not (self.is_over or self.is_behind):
            size: i64 = i64(read_i32_be(data, position + 4))
            if not 0 <= size <= _BLOCK_BYTES_MAX:
                raise CorruptData(f"a block of {size} bytes")
            begin = position + _BLOCK_HEADER_SIZE
            if end - begin < size:
                break
            content = data[begin : begin + size]
            crc: i64 = i64(read_i32_be(data, position + 8)) & 0xFFFF_FFFF
            if crc32c(content, crc32c(data[position : position + 8])) != crc:
                raise CorruptData("a block does not match its CRC")
            kind = int(read_i32_be(data, position))
            self._take_block(kind, content)
            position = begin + size
            # A block of leaving bodies costs as much as all others: each entry is looked for.
            self.is_behind = kind == _LEFT and end > position
        self._rest = data[position:]

    def _take_block(self, kind: int, content: bytes) -> None:
        if self.header is None:
            if kind != _HEADER:
                raise CorruptData("it does not begin with its header")
            self.header = _decode_header(content)
        elif kind == _ENTRIES:
            self._take_entries(content)
        elif kind in (_IDS_OF_OFFSETS, _OFFSETS_OF_IDS):
            self._take_packed_ids(kind, content)
        elif kind == _LINKS:
            self.base.pending.add_links(content)
        elif kind == _IDS:
            self._take_ids(content)
        elif kind == _LEFT:
            for at in range(0, len(content), ENTRY_SIZE):
                self.base.pending.add_missing(content[at : at + ENTRY_SIZE])
        elif kind == _RELEASED:
            self._take_released(content)
        elif kind == _END:
            if not self.base.pending.is_even:
                raise CorruptData("its two orders do not have the same entries")
            self.is_over = True
        else:
            raise CorruptData(f"a block of the type {kind}")

    def _take_entries(self, content: bytes) -> None:
        if len(content) < _SUMS_SIZE:
            raise CorruptData(f"a block of {len(content)} bytes of entries")
        self.base.pending.add_entries(
            content[_SUMS_SIZE:], int(read_i64_be(content, 0)), int(read_i64_be(content, 8))
        )

    def _take_packed_ids(self, kind: int, content: bytes) -> None:
        room = int(read_i64_be(content, 0)) if len(content) > 8 else 0
        if not 0 < room <= _ID_ROOM_MAX:
            raise CorruptData(f"a block of ids of {room} bytes")
        if kind == _IDS_OF_OFFSETS:
            self.base.pending.ids.add_block(room, content[8:])
        else:
            self.base.ids.offsets.add_block(room, content[8:])

    def _take_ids(self, content: bytes) -> None:
        position: i64 = 0
        while position < len(content):
            s_offset = int(read_i64_be(content, position))
            size: i64 = i64(read_i16_be(content, position + 8))
            position += 10
            _check_id(content, position, size)
            schedule_id = content[position : position + size]
            position += size
            self.base.pending.set_id(s_offset, schedule_id)
            self.base.ids.restore(schedule_id, s_offset)

    def _take_released(self, content: bytes) -> None:
        position: i64 = 0
        while position < len(content):
            offset = int(read_i64_be(content, position))
            s_offset = int(read_i64_be(content, position + 8))
            record_count = int(read_i64_be(content, position + 16))
            size: i64 = i64(read_i16_be(content, position + 24))
            position += 26
            _check_id(content, position, size)
            schedule_id = content[position : position + size]
            self.base.released.restore(s_offset, offset, schedule_id, record_count)
            position += size
