"""Opening of gzip in steps: members that follow one another, each byte passed to zlib about once.

Input goes in by small pieces.  zlib copies the rest of a piece behind the end of a member, and that
rest is then small.  A step costs by the bytes that go in and come out.
"""

from __future__ import annotations

import zlib
from typing import Final

from tarry.base.errors import CorruptData

# Bytes of one step, in and out: 2 ms.
OPENED_BYTES: Final = 512 * 1024

# Bytes that zlib gets at a time.
PIECE_BYTES: Final = 4 * 1024

# Parts of a compressed content (members of gzip, blocks of snappy) that any batch may have, and
# bytes of input and output for each further one: each part takes 1 to 8 µs.  Kafka's clients write
# one member, and blocks of 32 KB.
PARTS_MIN: Final = 4_096
PART_BYTES: Final = 1_024

# Value of zlib's window bits for gzip members with their header.
_WINDOW: Final = 31


def check_parts(count: int, size: int) -> None:
    """Refuse more parts than `size` bytes of input and output may have."""
    if count > PARTS_MIN + size // PART_BYTES:
        raise CorruptData(f"{count} parts in {size} bytes: clients compress 32 KB at a time")


class GzipMembers:
    """Decompressor of gzip members; `content` is complete when `step` has returned True.

    `cost_bytes` counts the bytes in and out of the last step, `fed_bytes` all that zlib was given.
    """

    def __init__(self, data: bytes | memoryview, size_max: int) -> None:
        self.content = b""
        self.cost_bytes = 0
        self.fed_bytes = 0
        self._data = memoryview(data)
        self._position = 0
        self._size_max = size_max
        self._parts: list[bytes] = []
        self._size = 0
        self._members = 0
        self._member = zlib.decompressobj(_WINDOW)

    def step(self) -> bool:
        """Decompress one part; `CorruptData` if the data is no gzip or too large."""
        left = OPENED_BYTES
        while left > 0:
            piece = self._data[self._position : self._position + PIECE_BYTES]
            member = self._member
            try:
                part = member.decompress(piece, left)
            except zlib.error as error:
                raise CorruptData(f"gzip: {error}") from None
            rest = member.unused_data if member.eof else member.unconsumed_tail
            used = len(piece) - len(rest)
            self._position += used
            self.fed_bytes += len(piece)
            left -= len(piece) + len(part)
            self.cost_bytes = OPENED_BYTES - left
            self._take(part)
            if member.eof:
                if self._end_member():
                    return True
            elif used == 0 and not part:
                raise CorruptData("gzip: cut short")
        return False

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._size_max:
            raise CorruptData(f"gzip: more than {self._size_max} bytes")
        if part:
            self._parts.append(part)

    def _end_member(self) -> bool:
        """Begin the next member; return True if there is none."""
        self._members += 1
        check_parts(self._members, self._position + self._size)
        if self._position == len(self._data):
            self.content = b"".join(self._parts)
            return True
        self._member = zlib.decompressobj(_WINDOW)
        return False
