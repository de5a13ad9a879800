"""Response in pieces: encoded element by element, so that no step of it takes long.

`open` writes a struct up to its last array, `add` encodes one element of the open array, `close`
ends it.  Structs within structs are opened the same way, so an answer of a million elements takes
as many short steps, and each element may be freed once it is encoded.  The bytes are the same as
those of `encode_response` for the whole message.  Hot.
"""

from __future__ import annotations

from typing import Final, Protocol

from mypy_extensions import i32, i64

from tarry.base.doors import Chunk
from tarry.protocol.headers import encode_response_header
from tarry.wire.writer import Writer

# Size at which gathered bytes become a chunk: a large answer needs a few system calls, and copying
# a smaller piece into the array around it costs little.
PIECE_BYTES: Final = 64 * 1024


class Encodable(Protocol):
    """Message or struct of a message, as the generator writes them."""

    def encode(self, writer: Writer, version: i64) -> None:
        """Append the fields."""


class SkeletonWriter(Writer):
    """Writer that notes the position of the last array's count."""

    def __init__(self) -> None:
        super().__init__()
        self.count_start: i64 = -1
        self.count_end: i64 = -1
        self.is_compact = False

    def array_length(self, count: i64) -> None:
        self.count_start = self.size
        super().array_length(count)
        self.count_end = self.size
        self.is_compact = False

    def compact_array_length(self, count: i64) -> None:
        self.count_start = self.size
        super().compact_array_length(count)
        self.count_end = self.size
        self.is_compact = True


class _OpenArray:
    """Elements of one array so far, and the bytes that follow the array."""

    def __init__(self, *, is_compact: bool, rest: bytes) -> None:
        self.is_compact = is_compact
        self.rest = rest
        self.count: i64 = 0
        self.chunks: list[Chunk] = []
        self.writer = Writer()

    def cut(self) -> None:
        """Begin a new piece, unless the present one is empty."""
        if self.writer.size > 0:
            self.chunks.extend(self.writer.chunks())
            self.writer = Writer()


class PiecedResponse:
    """Response whose open array grows by `add`."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        self.api_version = api_version
        # Bytes so far, without the counts of open arrays and without regions of files, which take
        # no memory.
        self.size: i64 = 0
        bottom = _OpenArray(is_compact=False, rest=b"")
        encode_response_header(bottom.writer, api_key, api_version, correlation_id)
        self._open: list[_OpenArray] = [bottom]

    def open(self, struct: Encodable) -> None:
        """Write a struct up to its last array, which is empty, and open that array."""
        skeleton = SkeletonWriter()
        struct.encode(skeleton, self.api_version)
        assert skeleton.count_start >= 0
        data = skeleton.finish()
        outer = self._open[-1]
        outer.writer.raw(data[: skeleton.count_start])
        outer.count += 1
        rest = data[skeleton.count_end :]
        self.size += len(data)
        self._open.append(_OpenArray(is_compact=skeleton.is_compact, rest=rest))

    def add(self, element: Encodable) -> None:
        """Encode an element of the open array."""
        array = self._open[-1]
        writer = array.writer
        before: i64 = writer.own_size
        element.encode(writer, self.api_version)
        after: i64 = writer.own_size
        self.size += after - before
        array.count += 1
        if after > PIECE_BYTES:
            array.cut()

    def end_with(self, struct: Encodable) -> None:
        """Replace the end of the open struct by that of `struct`, which has its last fields."""
        skeleton = SkeletonWriter()
        struct.encode(skeleton, self.api_version)
        self._open[-1].rest = skeleton.finish()[skeleton.count_end :]

    def close(self) -> None:
        """End the open array, and write the fields behind it."""
        array = self._open.pop()
        outer = self._open[-1]
        if array.is_compact:
            outer.writer.compact_array_length(array.count)
        else:
            outer.writer.array_length(array.count)
        if array.chunks or array.writer.has_chunks:
            outer.cut()
            array.cut()
            outer.chunks.extend(array.chunks)
        else:
            outer.writer.raw(array.writer.finish())
        outer.writer.raw(array.rest)
        if outer.writer.own_size > PIECE_BYTES:
            outer.cut()

    def forget(self) -> None:
        """Drop all bytes so far; the response is incomplete from then on."""
        self.size = 0
        for array in self._open:
            array.chunks = []
            array.writer = Writer()

    def finish(self) -> list[Chunk]:
        """Close all open arrays, and return the frame; its first chunk begins with the length."""
        while len(self._open) > 1:
            self.close()
        bottom = self._open[0]
        size: i64 = bottom.writer.size
        for chunk in bottom.chunks:
            size += len(chunk)
        first = Writer()
        first.i32(i32(size))
        if not bottom.chunks:
            first.raw(bottom.writer.finish())
            return [first.finish()]
        bottom.cut()
        chunks: list[Chunk] = [first.finish()]
        chunks.extend(bottom.chunks)
        return chunks
