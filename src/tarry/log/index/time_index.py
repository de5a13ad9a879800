"""Time index: from a timestamp to an offset before which all timestamps are earlier.

Sparse: each time the offset index gets an entry and the segment's largest timestamp has grown, the
time index notes that timestamp and the last offset of its batch: Kafka's `.timeindex`.  Every batch
before an entry's offset has only timestamps earlier than the entry's.  Invariant: timestamps
strictly increase, offsets never decrease.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.log.index.sparse_index import SparseIndex

WORDS: Final = 3
_LOW_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


@mypyc_attr(acyclic=True)
class TimeIndex(SparseIndex):
    """Entries (timestamp as two words, relative offset)."""

    def __init__(self, base_offset: i64) -> None:
        super().__init__(base_offset, WORDS)

    def maybe_append(self, timestamp: i64, offset: i64) -> None:
        """Append an entry, unless the last entry has this timestamp or a later one."""
        if timestamp < 0 or (self.count > 0 and timestamp <= self.timestamp_at(self.count - 1)):
            return
        low: i64 = timestamp & _LOW_MASK
        if low >= _SIGN:
            low -= _LOW_MASK + 1
        self.begin_entry()
        self.data.append(timestamp >> 32)
        self.data.append(low)
        self.data.append(offset - self.base_offset)
        self.count += 1

    def timestamp_at(self, entry: i64) -> i64:
        high: i64 = self.data[entry * WORDS]
        low: i64 = self.data[entry * WORDS + 1]
        return (high << 32) | (low & _LOW_MASK)

    def offset_at(self, entry: i64) -> i64:
        relative: i64 = self.data[entry * WORDS + 2]
        return self.base_offset + relative

    def entry_of_timestamp(self, timestamp: i64) -> i64:
        """Return the last entry whose timestamp is <= `timestamp`, or -1."""
        low: i64 = 0
        high = self.count
        while low < high:
            middle = (low + high) >> 1
            if self.timestamp_at(middle) <= timestamp:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def entry_before_offset(self, offset: i64) -> i64:
        """Return the last entry whose offset is < `offset`, or -1."""
        return self.entry_at_most(2, offset - self.base_offset - 1)

    def is_plausible(self, end_offset: i64) -> bool:
        """Return True if every entry keeps the invariants and lies before `end_offset`."""
        timestamp: i64 = -1
        offset = self.base_offset
        for entry in range(self.count):
            if self.timestamp_at(entry) <= timestamp or self.offset_at(entry) < offset:
                return False
            timestamp = self.timestamp_at(entry)
            offset = self.offset_at(entry)
        return self.count == 0 or offset < end_offset
