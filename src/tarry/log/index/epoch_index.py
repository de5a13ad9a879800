"""Leader epochs of a log: which epoch began at which offset.

The epochs come from the batch headers.  The text file `leader-epoch-checkpoint` keeps them, so that
a start need not read all headers.  Invariant: epochs and start offsets both strictly increase.
Readers and replicas find a common past by "where did epoch e end here?" (KIP-101, KIP-279).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.log.small_files import decode_lines, encode_lines

EPOCH_FILE: Final = "leader-epoch-checkpoint"
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1
_FIRST_LINE: Final = "tarry leader-epochs 1"


@mypyc_attr(acyclic=True)
class EpochIndex:
    """Entries (epoch, start offset) in increasing order."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.start_offsets: list[int] = []
        self.latest_epoch: i64 = UNDEFINED_EPOCH
        # Grows with each change, so that an unchanged index need not be saved again.
        self.version = 0

    def assign(self, epoch: i64, start_offset: i64) -> None:
        """Note that `epoch` begins at `start_offset`; do nothing if it is not the latest one."""
        if epoch <= self.latest_epoch:
            return
        # An epoch without a batch would end where it began: forget it.
        while self.start_offsets and self.start_offsets[-1] >= start_offset:
            self.epochs.pop()
            self.start_offsets.pop()
        self.epochs.append(epoch)
        self.start_offsets.append(start_offset)
        self.latest_epoch = epoch
        self.version += 1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch <= `epoch` and where it ended; (-1, -1) if that cannot be
        known.
        """
        if not self.epochs or epoch == UNDEFINED_EPOCH or epoch > self.latest_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        later = 0
        while self.epochs[later] <= epoch:
            later += 1
        if later == 0:
            return epoch, self.start_offsets[0]
        return self.epochs[later - 1], self.start_offsets[later]

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which `offset` was written, or -1."""
        for entry in range(len(self.epochs) - 1, -1, -1):
            if self.start_offsets[entry] <= offset:
                return self.epochs[entry]
        return UNDEFINED_EPOCH

    def truncate_end(self, end_offset: int) -> None:
        """Forget epochs that began at or after `end_offset`."""
        while self.start_offsets and self.start_offsets[-1] >= end_offset:
            self.epochs.pop()
            self.start_offsets.pop()
            self.version += 1
        self.latest_epoch = self.epochs[-1] if self.epochs else UNDEFINED_EPOCH

    def truncate_start(self, log_start_offset: int) -> None:
        """Forget epochs that ended before `log_start_offset`; let the one around it begin there."""
        gone = 0
        while gone < len(self.epochs) and self.start_offsets[gone] <= log_start_offset:
            gone += 1
        if gone == 0 or (gone == 1 and self.start_offsets[0] == log_start_offset):
            return
        del self.epochs[: gone - 1]
        del self.start_offsets[: gone - 1]
        self.start_offsets[0] = log_start_offset
        self.version += 1

    def clear(self) -> None:
        self.epochs.clear()
        self.start_offsets.clear()
        self.latest_epoch = UNDEFINED_EPOCH
        self.version += 1

    def copy(self) -> EpochIndex:
        """Return a copy of all entries, for `restore`."""
        copied = EpochIndex()
        copied.restore(self)
        return copied

    def restore(self, other: EpochIndex) -> None:
        """Replace all entries by a copy of `other`'s."""
        self.epochs = list(other.epochs)
        self.start_offsets = list(other.start_offsets)
        self.latest_epoch = other.latest_epoch
        self.version = other.version

    def encode(self) -> bytes:
        """Encode the file's content."""
        lines: list[str] = []
        for entry in range(len(self.epochs)):
            lines.append(f"{self.epochs[entry]} {self.start_offsets[entry]}")
        return encode_lines(_FIRST_LINE, lines)


def decode_epochs(content: bytes) -> EpochIndex | None:
    """Decode the index in a file's content; None if the file is damaged."""
    lines = decode_lines(_FIRST_LINE, content)
    if lines is None:
        return None
    index = EpochIndex()
    for line in lines:
        epoch, _, start_offset = line.partition(" ")
        index.assign(int(epoch), int(start_offset))
    return index
