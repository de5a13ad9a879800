"""The walk over a segment's batches: header after header, read in blocks.

Recovery, the rebuilding of indexes, look-ups, the search by time and compaction use it.  Each batch
begins where the one before ended, in the file and in offsets.  Offsets may leave gaps only where
compaction took batches out.  A walk never raises for damaged bytes: it stops, `flaw` holds the
reason, and everything before `flaw_offset` is sound.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.base.errors import CorruptData
from tarry.records.batch import (
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_V2,
    BatchHeader,
    has_valid_crc,
)

# Bytes of one read if the walk needs only headers; a batch is mostly smaller than a page or two.
HEADER_BLOCK_BYTES: Final = 8 * 1024
# Bytes of one read if the walk checks every byte.
SCAN_BLOCK_BYTES: Final = 1024 * 1024

UNKNOWN_OFFSET: Final = -1
_OFFSET_MAX: Final = (1 << 62) - 1


class Flaw(CorruptData):
    """Damage: bytes of a segment that were durable have changed since.

    Everything before `offset`, which begins at `position` of the file, is sound.
    """

    def __init__(self, reason: str, offset: int, position: int) -> None:
        super().__init__(reason)
        self.offset = offset
        self.position = position


class BatchWalk:
    """Walks over the batches of `file` from `position` to `end`.

    `expected_offset` is what the first batch must begin at, or UNKNOWN_OFFSET.
    """

    def __init__(self, file: LogFile, position: i64, end: i64, expected_offset: i64) -> None:
        self.file = file
        self.position: i64 = position
        self.end: i64 = end
        self.expected_offset: i64 = expected_offset
        # open: only the caller knows whether the bytes were checked before
        self.checks_crc = False
        # True if compaction took batches out: offsets grow, and may leave gaps.
        # open: only the caller knows how the log was made
        self.has_gaps = False
        # Bytes of one read; 0: a constant of this module by `checks_crc`.
        # open: only the caller knows what the walk is for
        self.block_bytes: i64 = 0
        # A batch of an earlier leader epoch is a flaw: a truncation left it over.  -1: any epoch.
        self.leader_epoch_min: i64 = -1
        self.flaw = ""
        self.flaw_offset: i64 = UNKNOWN_OFFSET
        self.flaw_position: i64 = position
        # The last batch that `step` passed: its position, its first and its last offset.
        self.batch_position: i64 = position
        self.batch_offset: i64 = expected_offset
        self.last_offset: i64 = -1
        # True if `expected_offset` was known when `step` passed that batch.
        self._was_expected = False
        self._block = b""
        self._block_position: i64 = position

    def step(self) -> bool:
        """Pass one batch and read only what that takes; return False at the end or at a flaw."""
        position = self.position
        left = self.end - position
        if left <= 0 or self.flaw:
            return False
        if left < HEADER_SIZE:
            return self._stop(f"{left} bytes are too few for a batch")
        at = self._load(HEADER_SIZE)
        if at < 0:
            return self._stop("the file ends inside a batch header")
        block = self._block
        base_offset = read_i64_be(block, at)
        size = i64(read_i32_be(block, at + LENGTH)) + LENGTH_OVERHEAD
        last_offset_delta = i64(read_i32_be(block, at + LAST_OFFSET_DELTA))
        if block[at + MAGIC] != MAGIC_V2:
            return self._stop(f"magic is {block[at + MAGIC]}")
        if size < HEADER_SIZE or size > left:
            return self._stop(f"a batch of {size} bytes where {left} are left")
        if last_offset_delta < 0 or base_offset < 0 or base_offset > _OFFSET_MAX:
            return self._stop(f"offset {base_offset} and {last_offset_delta} more")
        if self.expected_offset not in (base_offset, UNKNOWN_OFFSET) and (
            not self.has_gaps or base_offset < self.expected_offset
        ):
            return self._stop_between(base_offset)
        if self.leader_epoch_min >= 0:
            leader_epoch = i64(read_i32_be(block, at + LEADER_EPOCH))
            if leader_epoch < self.leader_epoch_min:
                return self._stop(f"leader epoch {leader_epoch} after {self.leader_epoch_min}")
        if self.checks_crc and not self._has_valid_crc(size):
            return False
        self._was_expected = self.expected_offset != UNKNOWN_OFFSET
        self.batch_position = position
        self.batch_offset = base_offset
        self.position = position + size
        self.last_offset = base_offset + last_offset_delta
        self.expected_offset = self.last_offset + 1
        return True

    def step_back(self) -> None:
        """Take the last step back; the next one goes over the same batch."""
        self.position = self.batch_position
        self.expected_offset = self.batch_offset

    def next(self) -> BatchHeader | None:
        """Return the next batch's header, or None at the end or at a flaw."""
        if not self.step():
            return None
        return BatchHeader(self._block, self.batch_position - self._block_position)

    def _has_valid_crc(self, size: i64) -> bool:
        at = self._load(size)
        if at < 0:
            return self._stop("the file ends inside a batch")
        if not has_valid_crc(self._block, at, BatchHeader(self._block, at)):
            return self._stop("the CRC does not match")
        return True

    def batch_bytes(self, header: BatchHeader) -> bytes:
        """Return all bytes of the batch that `next` returned last."""
        at = self.batch_position - self._block_position
        size: i64 = header.size
        if at + size <= len(self._block):
            return self._block[at : at + size]
        return self.file.read(self.batch_position, size)

    @property
    def block(self) -> bytes:
        """The bytes read last; with `checks_crc` all of the last batch is among them."""
        return self._block

    def place_in_block(self) -> i64:
        """Return where the last batch begins in `block`."""
        return self.batch_position - self._block_position

    def _load(self, size: i64) -> i64:
        """Load `size` bytes from `position` into the block; return their place in it, or -1."""
        at = self.position - self._block_position
        if at >= 0 and at + size <= len(self._block):
            return at
        wanted: i64 = SCAN_BLOCK_BYTES if self.checks_crc else HEADER_BLOCK_BYTES
        if self.block_bytes > 0:
            wanted = self.block_bytes
        wanted = min(max(wanted, size), self.end - self.position)
        self._block = self.file.read(self.position, wanted)
        self._block_position = self.position
        return 0 if len(self._block) >= size else -1

    def _stop(self, reason: str) -> bool:
        self.flaw = reason
        self.flaw_offset = self.expected_offset
        self.flaw_position = self.position
        return False

    def _stop_between(self, base_offset: i64) -> bool:
        """Stop between two batches whose offsets do not fit together.

        The first of them is the flaw, unless its CRC holds and it began at the expected offset.
        """
        self._stop(f"offset {base_offset} where {self.expected_offset} had to come")
        if self.checks_crc or self.batch_position == self.position or self._is_last_sound():
            return False
        self.flaw_offset = self.batch_offset
        self.flaw_position = self.batch_position
        return False

    def _is_last_sound(self) -> bool:
        if not self._was_expected:
            return False
        data = self.file.read(self.batch_position, self.position - self.batch_position)
        if len(data) < self.position - self.batch_position:
            return False
        return has_valid_crc(data, 0, BatchHeader(data, 0))
