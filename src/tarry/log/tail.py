"""The tail of a log: batches that were appended in this turn and are not written yet.

Small batches are joined into one piece.  Large ones are views of the frames that brought them.  One
gathered write puts all pieces into the file.  Only base offset, length and leader epoch are
written new; the CRC does not cover them.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i64_be
from mypy_extensions import i64

from tarry.log.index.epoch_index import EpochIndex
from tarry.log.segment import Segment, SegmentMark
from tarry.records.batch import MAGIC, BatchHeader
from tarry.wire.reader import Window

# A copy of fewer bytes costs less than a view and its part of the gathered write.
JOINED_BYTES_MAX: Final = 2048

LENGTH_OVERHEAD: Final = 12
_EPOCH_MASK: Final = 0xFFFFFFFF


class TailPart:
    """The tail's share of one segment."""

    def __init__(self, segment: Segment, chunks: list[bytes | memoryview], size: i64) -> None:
        self.segment = segment
        self.chunks = chunks
        self.size: i64 = size


class TailMark:
    """State of the log before its tail.

    The last segment is held by reference and not by its number: the end of a compaction or a new
    log start may change how many segments precede it while the tail waits.
    """

    def __init__(self, active: Segment) -> None:
        self.active = active
        self.segment = SegmentMark(active)
        self.epochs: EpochIndex | None = None

    def keep_epochs(self, epochs: EpochIndex) -> None:
        """Copy the log's epochs before the tail adds its first new one."""
        if self.epochs is None:
            self.epochs = epochs.copy()


class Tail:
    """Pieces in the order of the files, and the mark by which they are undone."""

    def __init__(self) -> None:
        # State of the log before the tail; None while there is no tail.
        self.mark: TailMark | None = None
        # Shares of the segments before the last one.
        self.parts: tuple[TailPart, ...] = ()
        self.size: i64 = 0
        self._chunks: list[bytes | memoryview] = []
        self._joined = BytesWriter()

    @property
    def is_empty(self) -> bool:
        """True if there is no batch, though a tail may have begun."""
        return self.size == 0 and len(self.parts) == 0

    def add(self, window: Window, header: BatchHeader, base_offset: i64, leader_epoch: i64) -> None:
        """Add one batch, with the offset and epoch that it gets here."""
        size: i64 = header.size
        joined = self._joined
        write_i64_be(joined, base_offset)
        # Length and leader epoch are neighbours, so one number writes both.
        write_i64_be(joined, ((size - LENGTH_OVERHEAD) << 32) | (leader_epoch & _EPOCH_MASK))
        start: i64 = window.start + MAGIC
        end: i64 = window.end
        if size <= JOINED_BYTES_MAX:
            joined.write(window.data[start:end])
        else:
            self._chunks.append(joined.getvalue())
            self._joined = BytesWriter()
            self._chunks.append(memoryview(window.data)[start:end])
        self.size += size

    def end_part(self, segment: Segment) -> None:
        """Assign all pieces to a segment, because another segment or the write follows."""
        chunks = self._chunks
        if len(self._joined) > 0:
            chunks.append(self._joined.getvalue())
        self.parts = (*self.parts, TailPart(segment, chunks, segment.unwritten()))
        self._clear_pieces()

    def clear(self) -> None:
        """End the tail: it is written, or was undone."""
        self.mark = None
        self.parts = ()
        self._clear_pieces()

    def _clear_pieces(self) -> None:
        self.size = 0
        self._chunks = []
        self._joined = BytesWriter()
