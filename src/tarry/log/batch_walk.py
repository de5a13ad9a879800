"""The walk over a segment's batches: header after header, read in blocks.

Used by recovery, the rebuilding of indexes and the search by time; each batch begins where the
one before ended.  A walk never raises for what the bytes say: it stops, and `flaw` tells why.
Invariant: everything before `position` was sound.  `expected_offset` is what the next batch must
begin at; a batch may begin later where `allows_gaps` (compaction leaves gaps).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.records.batch import (
    HEADER_SIZE,
    MAGIC_V2,
    BatchHeader,
    has_valid_crc,
)

# One read of a walk that needs the headers only: batches are mostly smaller than a page or two.
HEADER_BLOCK_BYTES: Final = 16 * 1024
# One read of a walk that checks every byte.
SCAN_BLOCK_BYTES: Final = 1024 * 1024

_OFFSET_MAX: Final = (1 << 62) - 1


class BatchWalk:
    """Walks over the batches of `file` from `position` to `end`."""

    def __init__(self, file: LogFile, position: i64, end: i64, expected_offset: i64) -> None:
        self.file = file
        self.position: i64 = position
        self.end: i64 = end
        self.expected_offset: i64 = expected_offset
        self.allows_gaps = False
        self.checks_crc = False
        # Batches of an earlier epoch than this are left over from before a truncation.
        self.leader_epoch_min: i64 = -1
        self.flaw = ""
        # Where the batch that `next` returned begins.
        self.batch_position: i64 = position
        self._block = b""
        self._block_position: i64 = position

    def next(self) -> BatchHeader | None:
        """The next batch's header, or None at the end or at a flaw."""
        position = self.position
        left = self.end - position
        if left <= 0 or self.flaw:
            return None
        if left < HEADER_SIZE:
            return self._stop(f"{left} bytes are too few for a batch")
        at = self._load(HEADER_SIZE)
        if at < 0:
            return self._stop("the file ends inside a batch header")
        header = BatchHeader(self._block, at)
        reason = self._unsound(header, left)
        if reason:
            return self._stop(reason)
        if self.checks_crc:
            at = self._load(header.size)
            if at < 0:
                return self._stop("the file ends inside a batch")
            if not has_valid_crc(self._block, at, header):
                return self._stop("the CRC does not match")
        self.batch_position = position
        self.position = position + header.size
        self.expected_offset = header.base_offset + header.last_offset_delta + 1
        return header

    def batch_bytes(self, header: BatchHeader) -> bytes:
        """All bytes of the batch that `next` returned last."""
        at = self.batch_position - self._block_position
        size: i64 = header.size
        if at + size <= len(self._block):
            return self._block[at : at + size]
        return self.file.read(self.batch_position, size)

    def _load(self, size: i64) -> i64:
        """Have `size` bytes from `position` on in the block; where they begin, or -1."""
        at = self.position - self._block_position
        if at >= 0 and at + size <= len(self._block):
            return at
        wanted: i64 = SCAN_BLOCK_BYTES if self.checks_crc else HEADER_BLOCK_BYTES
        wanted = min(max(wanted, size), self.end - self.position)
        self._block = self.file.read(self.position, wanted)
        self._block_position = self.position
        return 0 if len(self._block) >= size else -1

    def _unsound(self, header: BatchHeader, left: i64) -> str:
        if header.magic != MAGIC_V2:
            return f"magic is {header.magic}"
        if header.size < HEADER_SIZE or header.size > left:
            return f"a batch of {header.size} bytes where {left} are left"
        if header.last_offset_delta < 0 or header.base_offset > _OFFSET_MAX:
            return f"offset {header.base_offset} and {header.last_offset_delta} more"
        if header.base_offset != self.expected_offset and (
            not self.allows_gaps or header.base_offset < self.expected_offset
        ):
            return f"offset {header.base_offset} where {self.expected_offset} had to come"
        if header.leader_epoch < self.leader_epoch_min:
            return f"leader epoch {header.leader_epoch} after {self.leader_epoch_min}"
        return ""

    def _stop(self, reason: str) -> BatchHeader | None:
        self.flaw = reason
        return None
