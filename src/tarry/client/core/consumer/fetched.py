"""Batches of one partition from one fetch; they are decoded when they are taken.

The CRC of a batch does not cover its offset and size, which decide where reading goes on.  So they
are trusted only if they agree: the answer is used up to the first batch whose offset goes back, and
up to the first gap that the answer before did not have in the same place.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be

from tarry.base.errors import CorruptData
from tarry.records.aborted import AbortedTransactions
from tarry.records.batch import (
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    LENGTH_OVERHEAD,
    checked_header,
)
from tarry.records.open_batch import OpenBatch
from tarry.wire.reader import Window

# Limit of a batch's decompressed size: far above the limit of brokers for a batch, but it stops
# decompression bombs.
BATCH_BYTES_MAX: Final = 256 * 1024 * 1024


class Gaps:
    """Knowledge about gaps: ranges of offsets for which a partition has no batches."""

    def __init__(self, last: tuple[int, int] | None, *, are_usual: bool, is_trouble: bool) -> None:
        # Gap of the previous answer: its first offset, and the offset after it.
        self.last = last
        # True if two answers had the same gap: compaction leaves gaps in this log.
        self.are_usual = are_usual
        # True after a damaged answer: each gap must be seen in two answers then.
        self.is_trouble = is_trouble

    def believe(self, gap: tuple[int, int]) -> bool:
        if gap == self.last:
            self.are_usual = True
            return True
        return self.are_usual and not self.is_trouble


class Fetched:
    """Whole batches in the order of their offsets.  `next_offset` is the offset after the last one.

    `flaw` describes damage behind the batches, `gap` is the range of offsets missing there; both
    are empty if the answer just ends there.
    """

    def __init__(
        self, window: Window, offset: int, gaps: Gaps, aborted: list[tuple[int, int]]
    ) -> None:
        self.next_offset = offset
        self.flaw = ""
        # First offset behind the damage, as far as it is known.
        self.sound_from = offset
        self.gap: tuple[int, int] | None = None
        self._batches: list[Window] = []
        self._taken = 0
        # The next batch while its records are being taken.
        self._open: OpenBatch | None = None
        self._aborted = AbortedTransactions(aborted)
        self._collect(window, gaps)
        self.size = sum(batch.size for batch in self._batches)
        self.leader_epoch = -1
        if self._batches:
            last = self._batches[-1]
            self.leader_epoch = int(read_i32_be(last.data, last.start + LEADER_EPOCH))

    def _collect(self, window: Window, gaps: Gaps) -> None:
        """Collect the batches of the answer up to the first one that is not trusted."""
        data = window.data
        position, end = window.start, window.end
        # Expected offset of the last batch if it began elsewhere; else -1.
        expected = -1
        while end - position >= HEADER_SIZE:
            size = int(read_i32_be(data, position + LENGTH)) + LENGTH_OVERHEAD
            if size > end - position:
                # The answer's size limit has cut this batch off.
                return
            base_offset = int(read_i64_be(data, position))
            last_offset = base_offset + int(read_i32_be(data, position + LAST_OFFSET_DELTA))
            if size < HEADER_SIZE or last_offset < base_offset or base_offset < 0:
                self.flaw = f"no batch can have {size} bytes and the offset {base_offset}"
                return
            goes_back = bool(self._batches) and base_offset < self.next_offset
            if goes_back and not self._drops_first(base_offset, expected, gaps):
                self._doubt(base_offset, expected)
                return
            if self._batches or last_offset >= self.next_offset:
                gap = (self.next_offset, base_offset)
                if base_offset > self.next_offset and not gaps.believe(gap):
                    self.gap = gap
                    return
                expected = self.next_offset if base_offset != self.next_offset else -1
                self._batches.append(Window(data, position, position + size))
                self.next_offset = last_offset + 1
            position += size

    def _drops_first(self, base_offset: int, expected: int, gaps: Gaps) -> bool:
        """Drop a damaged first batch if the next batch begins at or before the fetch offset.

        A broker chooses batches by the offsets that they claim, so it sends the damaged one each
        time.  The user has seen its error already.
        """
        if not gaps.is_trouble or len(self._batches) > 1 or not base_offset <= expected:
            return False
        self._batches.clear()
        self.next_offset = expected
        return True

    def _doubt(self, base_offset: int, expected: int) -> None:
        """Distrust a batch whose offset goes back.

        The batch before it is distrusted too if it began at an unexpected offset, or if it is the
        first and both begin at the same offset.
        """
        self.flaw = f"a batch at offset {base_offset} follows one that ends at {self.next_offset}"
        last = self._batches[-1]
        begins_at = int(read_i64_be(last.data, last.start))
        self.sound_from = max(base_offset, begins_at if expected < 0 else expected)
        if expected < 0 and (len(self._batches) > 1 or begins_at != base_offset):
            return
        self._batches.pop()
        self.next_offset = begins_at if expected < 0 else expected

    def is_sound(self) -> bool:
        """Return true if the CRC of each remaining batch is right."""
        try:
            for window in self._batches[self._taken :]:
                checked_header(window.data, window.start)
        except CorruptData:
            return False
        return True

    @property
    def is_empty(self) -> bool:
        return self._taken == len(self._batches)

    def next_ends_at(self) -> int:
        """Return the offset after the next batch; an estimate if a batch is damaged."""
        following = self._taken + 1
        if following < len(self._batches):
            window = self._batches[following]
            return int(read_i64_be(window.data, window.start))
        return self.sound_from if self.flaw else self.next_offset

    def open_next(self, offset: int) -> OpenBatch:
        """Open the next batch, or continue the open one if its walk stands at `offset`.

        Control batches and aborted records are skipped.
        """
        batch = self._open
        if batch is None or batch.next_offset != offset:
            window = self._batches[self._taken]
            batch = OpenBatch(window.data, window.start)
            # The CRC was checked, so the header's transaction fields are right.
            if self._aborted.leaves_out(window.data, window.start, batch.header):
                batch.leave(batch.header.last_offset + 1)
            else:
                batch.unfold(BATCH_BYTES_MAX)
            self._open = batch
        return batch

    def drop_next(self) -> int:
        """Step over the next batch after all its records were taken; return its size in bytes."""
        window = self._batches[self._taken]
        self._taken += 1
        self._open = None
        self.size -= window.size
        return window.size
