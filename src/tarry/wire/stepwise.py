"""Compression and its reverse in steps, for batches too large for one step of a turn.

What comes out is the same as that of `compression` in framing and content.  gzip is opened a part
at a time as well; the other codecs open 16 MB in less than 20 ms and are opened at once.
"""

from __future__ import annotations

import zlib
from typing import Final

from tarry.base.errors import CorruptData
from tarry.wire.compression import GZIP, NONE, SNAPPY, compress, decompress, make_compressor

# One step of compression: 2 to 7 ms of gzip, the slowest.
STEP_BYTES: Final = 128 * 1024
# One step of opening gzip: 2 ms.
OPENED_BYTES: Final = 512 * 1024

# gzip members with their header, as zlib counts window sizes.
_GZIP_WINDOW: Final = 31

# What snappy's framing begins with, and the content of each of its blocks.
_XERIAL_HEADER_BYTES: Final = 16


class StepwiseCompressor:
    """Takes content in parts; `finish` gives the compressed form of all of it."""

    def __init__(self, codec: int, level: int | None = None) -> None:
        self.codec = codec
        self._parts: list[bytes] = []
        self._compressor = None if codec in (NONE, SNAPPY) else make_compressor(codec, level)

    def add(self, data: bytes) -> None:
        """Add the next part of the content, best not larger than `STEP_BYTES`."""
        if self._compressor is not None:
            self._compressor.compress(data)
        elif self.codec == SNAPPY:
            framed = compress(SNAPPY, data)
            self._parts.append(framed[_XERIAL_HEADER_BYTES:] if self._parts else framed)
        else:
            self._parts.append(data)

    def finish(self) -> bytes:
        if self._compressor is not None:
            return bytes(self._compressor.finish())
        return b"".join(self._parts)


class StepwiseDecompressor:
    """Opens `data`; `content` is whole when `step` has said True."""

    def __init__(self, codec: int, data: bytes | memoryview, size_max: int) -> None:
        self.codec = codec
        self.content = b""
        self._data = data
        self._size_max = size_max
        self._parts: list[bytes] = []
        self._size = 0
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    def step(self) -> bool:
        """Open a part of it; `CorruptData` if it is not what the codec says or too large."""
        if self.codec != GZIP:
            self.content = decompress(self.codec, self._data, self._size_max)
            return True
        try:
            part = self._member.decompress(self._data, OPENED_BYTES)
        except zlib.error as error:
            raise CorruptData(f"gzip: {error}") from None
        self._size += len(part)
        if self._size > self._size_max:
            raise CorruptData(f"gzip: more than {self._size_max} bytes")
        self._parts.append(part)
        return self._is_whole(part)

    def _is_whole(self, part: bytes) -> bool:
        member = self._member
        if not member.eof:
            self._data = member.unconsumed_tail
            if not part and not self._data:
                raise CorruptData("gzip: cut short")
            return False
        if member.unused_data:
            # Members may follow one another.
            self._data = member.unused_data
            self._member = zlib.decompressobj(_GZIP_WINDOW)
            return False
        self.content = b"".join(self._parts)
        return True
