"""Batches that a fetch brought of one partition; they are decoded when they are taken.

A batch's offset and size lie outside its CRC, and they say where reading goes on.  So they are
believed only as far as they agree: an answer counts up to the first batch that goes back, and up to
the first gap that was not seen before in the same place.
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

# What one compressed batch may unfold to: as much as a broker takes uncompressed by default, a
# hundred times over, and no bomb.
BATCH_BYTES_MAX: Final = 256 * 1024 * 1024


class Gaps:
    """Knowledge of the offsets that a partition has no batches for."""

    def __init__(self, last: tuple[int, int] | None, *, are_usual: bool, is_trouble: bool) -> None:
        # The gap of the answer before: its first offset, and the one behind it.
        self.last = last
        # One was the same in two answers, so there is a compaction that leaves them.
        self.are_usual = are_usual
        # Something was damaged lately: each gap has to be seen twice.
        self.is_trouble = is_trouble

    def believe(self, gap: tuple[int, int]) -> bool:
        if gap == self.last:
            self.are_usual = True
            return True
        return self.are_usual and not self.is_trouble


class Fetched:
    """Whole batches in the order of their offsets.  `next_offset` follows the last of them.

    `flaw` says what is wrong behind them, `gap` which offsets are missing there; both may be
    nothing, since the size of an answer is limited.
    """

    def __init__(
        self, window: Window, offset: int, gaps: Gaps, aborted: list[tuple[int, int]]
    ) -> None:
        self.next_offset = offset
        self.flaw = ""
        # Behind what is damaged, as far as one can tell.
        self.sound_from = offset
        self.gap: tuple[int, int] | None = None
        self._batches: list[Window] = []
        self._taken = 0
        # The next batch, while its records are taken.
        self._open: OpenBatch | None = None
        self._aborted = AbortedTransactions(aborted)
        self._collect(window, gaps)
        self.size = sum(batch.size for batch in self._batches)
        self.leader_epoch = -1
        if self._batches:
            last = self._batches[-1]
            self.leader_epoch = int(read_i32_be(last.data, last.start + LEADER_EPOCH))

    def _collect(self, window: Window, gaps: Gaps) -> None:
        """Take the batches over as far as they are to be believed."""
        data = window.data
        position, end = window.start, window.end
        # Where the last batch was expected to begin, if it begins elsewhere.
        expected = -1
        while end - position >= HEADER_SIZE:
            size = int(read_i32_be(data, position + LENGTH)) + LENGTH_OVERHEAD
            if size > end - position:
                # Cut off by the size of the answer.
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
        """Drop a damaged batch that lies before the offset asked for, which the batch behind it
        shows; brokers choose batches by the offsets that a damaged one claims.  After its error was
        raised once, such a batch is only in the way."""
        if not gaps.is_trouble or len(self._batches) > 1 or not base_offset <= expected:
            return False
        self._batches.clear()
        self.next_offset = expected
        return True

    def _doubt(self, base_offset: int, expected: int) -> None:
        """Doubt a batch whose offsets go back.  The batch before is doubtful too if it did not
        begin where it should, or if it is the first and both begin in the same place."""
        self.flaw = f"a batch at offset {base_offset} follows one that ends at {self.next_offset}"
        last = self._batches[-1]
        begins_at = int(read_i64_be(last.data, last.start))
        self.sound_from = max(base_offset, begins_at if expected < 0 else expected)
        if expected < 0 and (len(self._batches) > 1 or begins_at != base_offset):
            return
        self._batches.pop()
        self.next_offset = begins_at if expected < 0 else expected

    def is_sound(self) -> bool:
        """Return true if the CRC of each batch that was not taken holds."""
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
        """Return the offset behind the next batch, as far as a damaged batch lets it be known."""
        following = self._taken + 1
        if following < len(self._batches):
            window = self._batches[following]
            return int(read_i64_be(window.data, window.start))
        return self.sound_from if self.flaw else self.next_offset

    def open_next(self, offset: int) -> OpenBatch:
        """Open the next batch, or go on with it where `offset` is where its walk stands.  No record
        is left of a control batch, nor of one of a transaction that was aborted."""
        batch = self._open
        if batch is None or batch.next_offset != offset:
            window = self._batches[self._taken]
            batch = OpenBatch(window.data, window.start)
            # Its CRC holds, so what its header says of transactions may be believed.
            if self._aborted.leaves_out(window.data, window.start, batch.header):
                batch.leave(batch.header.last_offset + 1)
            else:
                batch.unfold(BATCH_BYTES_MAX)
            self._open = batch
        return batch

    def drop_next(self) -> int:
        """Step behind the next batch, which was taken to its end; return its bytes."""
        window = self._batches[self._taken]
        self._taken += 1
        self._open = None
        self.size -= window.size
        return window.size
