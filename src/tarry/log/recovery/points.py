"""Recovery points: for each log, the offset up to which all is durable, indexes and snapshot too.

One text file `recovery-points` holds all logs of the broker; it is replaced as a whole and has a
checksum.  A row lists the log's segments up to its recovery point.  Recovery therefore scans only
the bytes beyond it and sees at once which file is missing.  `identity` (a topic's id) tells a row
from the one of a later log in a directory of the same name.

Where brokers copy from each other a row has two more fields: the offset up to which the records
were known to be committed, and the generation up to which compaction checkpoints are void.  A file
with such a row is of version 2.
"""

from __future__ import annotations

from typing import Final

from tarry.log.segment import UNKNOWN_TIMESTAMP, SegmentRow, decode_segment_row
from tarry.log.small_files import decode_lines, encode_lines
from tarry.records.batch import NO_TIMESTAMP

RECOVERY_POINTS_FILE: Final = "recovery-points"
CLEAN_MARKER: Final = ".tarry_clean_shutdown"
_FIRST_LINE: Final = "tarry recovery-points 1"
_FIRST_LINE_OF_COPIES: Final = "tarry recovery-points 2"
# In a row of version 1: numbers before its segments, and spaces between its fields.
_NUMBERS: Final = 3
_SPACES: Final = 5

# Values of a row's `snapshot_offset` that name no file.
NO_SNAPSHOT: Final = -1
EMPTY_SNAPSHOT: Final = -2

# Value of a row's `high_watermark_hint` if the high watermark was never known.
NO_HINT: Final = -1


class RecoveryPoint:
    """Durable part of one log.  Without segments: no round has saved the log yet."""

    def __init__(self, directory: str, identity: str) -> None:
        self.directory = directory
        self.identity = identity
        self.log_start_offset = 0
        self.recovery_offset = 0
        self.snapshot_offset = NO_SNAPSHOT
        self.high_watermark_hint = NO_HINT
        self.void_generation = 0
        self.segments: list[SegmentRow] = []

    @property
    def is_restart(self) -> bool:
        """True if the log may have been given up for an empty one that begins at its log start.

        Segments in the directory were then to be removed, or were written later.
        """
        return (
            self.void_generation > 0
            and len(self.segments) == 1
            and self.segments[0].size == 0
            and self.segments[0].base_offset == self.log_start_offset
        )

    def encode(self) -> str:
        segments = ",".join([row.encode() for row in self.segments])
        copied = ""
        if self.high_watermark_hint != NO_HINT or self.void_generation:
            copied = f"{self.high_watermark_hint} {self.void_generation} "
        return (
            f"{self.directory} {self.identity or '-'} {self.log_start_offset} "
            f"{self.recovery_offset} {self.snapshot_offset} {copied}{segments}"
        )


def uncovered_row(base_offset: int) -> SegmentRow:
    """Return the row of the first segment of a log that has no covered batch."""
    return SegmentRow([base_offset, 0, NO_TIMESTAMP, base_offset, UNKNOWN_TIMESTAMP, 0, 0])


def encode_recovery_points(rows: list[str]) -> bytes:
    """Encode the file's content from encoded rows."""
    has_copies = any(row.count(" ") > _SPACES for row in rows)
    return encode_lines(_FIRST_LINE_OF_COPIES if has_copies else _FIRST_LINE, rows)


def decode_recovery_points(content: bytes) -> dict[str, RecoveryPoint] | None:
    """Decode the rows by directory; None if the file is damaged."""
    lines = decode_lines(_FIRST_LINE, content)
    if lines is None:
        lines = decode_lines(_FIRST_LINE_OF_COPIES, content)
    if lines is None:
        return None
    rows = {}
    for line in lines:
        row = _decode_row(line)
        rows[row.directory] = row
    return rows


def _decode_row(line: str) -> RecoveryPoint:
    directory, identity, *numbers, rest = line.split(" ")
    row = RecoveryPoint(directory, "" if identity == "-" else identity)
    row.log_start_offset, row.recovery_offset, row.snapshot_offset = map(int, numbers[:3])
    if len(numbers) > _NUMBERS:
        row.high_watermark_hint, row.void_generation = map(int, numbers[_NUMBERS:])
    row.segments = [decode_segment_row(segment) for segment in rest.split(",")]
    return row
