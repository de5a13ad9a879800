"""Writer: big-endian fields into one buffer, with chunks that are not copied between them.

The writer's own bytes go into one growing buffer; a chunk (a region of a file, a large batch) only
marks a cut in it.  `chunks()` returns the pieces in order, `size` counts all of them, so a frame's
length is known before a byte is sent.

Hot: see reader.py.  A value out of a field's range raises (ValueError, OverflowError or TypeError,
by form): this is a mistake in Tarry, never of a peer.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64 as int64, u8

from tarry.base.doors import Chunk
from tarry.wire.reader import Window
from tarry.wire.varint import write_unsigned_varint, write_varint, write_varlong

# Size below which a window is copied: one more piece in a gathered write costs more.
COPY_BYTES_MAX: Final = 4096

STRING_BYTES_MAX: Final = 0x7FFF


class ChunkList:
    """Pieces of one field of bytes; `size` is their sum."""

    def __init__(self, chunks: list[Chunk], size: int64) -> None:
        self.chunks = chunks
        self.size = size

    def __len__(self) -> int:
        return self.size


class Insertion:
    """Chunk to be inserted at `position` of the writer's own bytes."""

    def __init__(self, position: int64, chunk: Chunk) -> None:
        self.position = position
        self.chunk = chunk


class Writer:
    """Writer of fields; `finish` returns one bytes object, `chunks` the pieces."""

    def __init__(self) -> None:
        self._buffer = BytesWriter()
        # Chunks with their positions; None if there is none, as in most messages: a list costs 40
        # ns.
        self._insertions: list[Insertion] | None = None
        self._inserted_size: int64 = 0

    @property
    def size(self) -> int64:
        """Bytes so far, chunks included."""
        return len(self._buffer) + self._inserted_size

    @property
    def own_size(self) -> int64:
        """Bytes in the writer's own buffer, without chunks."""
        return len(self._buffer)

    @property
    def has_chunks(self) -> bool:
        """True if a chunk was added, so that the bytes are no single object."""
        return self._insertions is not None

    def finish(self) -> bytes:
        """Return all bytes; only for a writer that no chunk was added to."""
        assert self._insertions is None
        return self._buffer.getvalue()

    def chunks(self) -> list[Chunk]:
        """Return the pieces in order, none of them empty."""
        own = self._buffer.getvalue()
        insertions = self._insertions
        if insertions is None:
            return [own]
        pieces: list[Chunk] = []
        start: int64 = 0
        for insertion in insertions:
            if insertion.position > start:
                pieces.append(own[start : insertion.position])
                start = insertion.position
            pieces.append(insertion.chunk)
        if len(own) > start:
            pieces.append(own[start:])
        return pieces

    def joined(self) -> bytes:
        """Return all bytes as one object; chunks are copied, so none may be a region of a file."""
        if self._insertions is None:
            return self.finish()
        pieces: list[bytes | memoryview] = []
        for piece in self.chunks():
            assert isinstance(piece, (bytes, memoryview))
            pieces.append(piece)
        return b"".join(pieces)

    def chunk(self, chunk: Chunk, size: int64) -> None:
        """Add a piece of `size` bytes without copying it."""
        if size == 0:
            return
        if self._insertions is None:
            self._insertions = []
        self._insertions.append(Insertion(len(self._buffer), chunk))
        self._inserted_size += size

    def set_i32(self, position: int64, value: int64) -> None:
        """Overwrite four own bytes, for a length that is known only later."""
        buffer = self._buffer
        buffer[position] = u8((value >> 24) & 0xFF)
        buffer[position + 1] = u8((value >> 16) & 0xFF)
        buffer[position + 2] = u8((value >> 8) & 0xFF)
        buffer[position + 3] = u8(value & 0xFF)

    # --- Numbers

    def i8(self, value: int64) -> None:
        if value < -128 or value > 127:
            raise ValueError(f"{value} is no 8-bit number")
        self._buffer.append(u8(value & 0xFF))

    def i16(self, value: i16) -> None:
        write_i16_be(self._buffer, value)

    def i32(self, value: i32) -> None:
        write_i32_be(self._buffer, value)

    def i64(self, value: int64) -> None:
        write_i64_be(self._buffer, value)

    def u16(self, value: int64) -> None:
        if value < 0 or value > 0xFFFF:
            raise ValueError(f"{value} is no unsigned 16-bit number")
        write_i16_be(self._buffer, i16(value - 0x1_0000 if value >= 0x8000 else value))

    def u32(self, value: int64) -> None:
        if value < 0 or value > 0xFFFF_FFFF:
            raise ValueError(f"{value} is no unsigned 32-bit number")
        write_i32_be(self._buffer, i32(value - 0x1_0000_0000 if value >= 0x8000_0000 else value))

    def f64(self, value: float) -> None:
        write_f64_be(self._buffer, value)

    def boolean(self, value: bool) -> None:
        self._buffer.append(u8(1) if value else u8(0))

    def uuid(self, value: bytes) -> None:
        if len(value) != 16:
            raise ValueError(f"a uuid of {len(value)} bytes")
        self._buffer.write(value)

    def unsigned_varint(self, value: int64) -> None:
        if 0 <= value < 0x80:
            self._buffer.append(u8(value))
        else:
            write_unsigned_varint(self._buffer, value)

    def varint(self, value: int64) -> None:
        write_varint(self._buffer, value)

    def varlong(self, value: int64) -> None:
        write_varlong(self._buffer, value)

    # --- Text

    def string(self, value: str) -> None:
        data = value.encode("utf-8")
        if len(data) > STRING_BYTES_MAX:
            raise ValueError(f"a string of {len(data)} bytes")
        write_i16_be(self._buffer, i16(len(data)))
        self._buffer.write(data)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            write_i16_be(self._buffer, -1)
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        data = value.encode("utf-8")
        self.unsigned_varint(len(data) + 1)
        self._buffer.write(data)

    def compact_nullable_string(self, value: str | None) -> None:
        if value is None:
            self._buffer.append(u8(0))
        else:
            self.compact_string(value)

    # --- Bytes

    def raw(self, value: bytes) -> None:
        """Write bytes without a length."""
        self._buffer.write(value)

    def bytes_(self, value: bytes) -> None:
        write_i32_be(self._buffer, i32(len(value)))
        self._buffer.write(value)

    def nullable_bytes(self, value: bytes | None) -> None:
        if value is None:
            write_i32_be(self._buffer, -1)
        else:
            self.bytes_(value)

    def compact_bytes(self, value: bytes) -> None:
        self.unsigned_varint(len(value) + 1)
        self._buffer.write(value)

    def compact_nullable_bytes(self, value: bytes | None) -> None:
        if value is None:
            self._buffer.append(u8(0))
        else:
            self.compact_bytes(value)

    def window(self, value: Window) -> None:
        """Write a window's bytes without a length; a large one becomes a chunk."""
        if value.size < COPY_BYTES_MAX:
            self._buffer.write(value.data[value.start : value.end])
        else:
            self.chunk(value.memoryview(), value.size)

    def nullable_records(self, value: Window | ChunkList | None) -> None:
        if value is None:
            write_i32_be(self._buffer, -1)
            return
        write_i32_be(self._buffer, i32(value.size))
        self._records(value)

    def compact_nullable_records(self, value: Window | ChunkList | None) -> None:
        if value is None:
            self._buffer.append(u8(0))
            return
        self.unsigned_varint(value.size + 1)
        self._records(value)

    def _records(self, value: Window | ChunkList) -> None:
        if isinstance(value, Window):
            self.window(value)
            return
        size: int64 = 0
        for chunk in value.chunks:
            chunk_size: int64 = len(chunk)
            size += chunk_size
            if isinstance(chunk, bytes) and chunk_size < COPY_BYTES_MAX:
                self._buffer.write(chunk)
            else:
                self.chunk(chunk, chunk_size)
        assert size == value.size

    # --- Arrays: only the count; -1 writes null

    def array_length(self, count: int64) -> None:
        """Write a count, or -1 for null."""
        write_i32_be(self._buffer, i32(count))

    def compact_array_length(self, count: int64) -> None:
        """Write a count, or -1 for null."""
        self.unsigned_varint(count + 1)

    # --- Tagged fields

    def tagged_field(self, tag: int64, content: Writer) -> None:
        """Write one tagged field; tags must ascend, after their count as `unsigned_varint`."""
        data = content.finish()
        self.unsigned_varint(tag)
        self.unsigned_varint(len(data))
        self._buffer.write(data)
