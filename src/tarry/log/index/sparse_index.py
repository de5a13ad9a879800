"""Sparse index: the common half of both indexes, whose entries are 32-bit words.

In memory the words have the machine's byte order (one compact array).  In Kafka's files they have
the network's.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final

from mypy_extensions import i64, mypyc_attr

WORD_BYTES: Final = 4
IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"


# The words of an index without entries: all such indexes share this array; never changed.
NO_WORDS: Final[array[int]] = array("i")


@mypyc_attr(acyclic=True)
class SparseIndex:
    """Entries of `words` 32-bit words each, relative to `base_offset`."""

    def __init__(self, base_offset: i64, words: i64) -> None:
        self.base_offset: i64 = base_offset
        self.words: i64 = words
        self.count: i64 = 0
        self.data = NO_WORDS

    def load(self, content: bytes, entries: i64) -> None:
        """Take over the first `entries` entries of the file's content."""
        size = entries * self.entry_bytes()
        assert size <= len(content)
        data: array[int] = array("i")
        data.frombytes(content[:size])
        if IS_LITTLE_ENDIAN:
            data.byteswap()
        self.data = data
        self.count = entries

    def encode_from(self, entry: i64) -> bytes:
        """Encode the entries from `entry` on, in the file's form."""
        data = self.data[entry * self.words :]
        if IS_LITTLE_ENDIAN:
            data.byteswap()
        return data.tobytes()

    def entry_bytes(self) -> i64:
        """Return the size of one entry in the file, in bytes."""
        return self.words * WORD_BYTES

    def entry_at_most(self, word: i64, value: i64) -> i64:
        """Return the last entry whose word number `word` is <= `value`, or -1; that word must not
        decrease from entry to entry.
        """
        low: i64 = 0
        high = self.count
        while low < high:
            middle = (low + high) >> 1
            found: i64 = self.data[middle * self.words + word]
            if found <= value:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def cut(self, entries: i64) -> None:
        """Keep the first `entries` entries."""
        assert entries <= self.count
        self.data = self.data[: entries * self.words] if entries > 0 else NO_WORDS
        self.count = entries

    def begin_entry(self) -> None:
        """Prepare for the words of one more entry."""
        if self.count == 0:
            self.data = array("i")
