"""Recovery points: for each log, up to where everything is durable, indexes and snapshot included.

One text file `recovery-points` for all logs of the broker, replaced as a whole and checksummed.  A
row lists the log's segments up to its recovery point, so that recovery scans only what lies beyond
and sees at once which file is missing.  `identity` (a topic's id) keeps a row from being taken for
that of a later log in a directory of the same name.
"""

from __future__ import annotations

from typing import Final

from tarry.log.segment import SegmentRow, decode_segment_row
from tarry.log.small_files import decode_lines, encode_lines

RECOVERY_POINTS_FILE: Final = "recovery-points"
CLEAN_MARKER: Final = ".tarry_clean_shutdown"
_FIRST_LINE: Final = "tarry recovery-points 1"

# What a row says of the listener's snapshot when it names no file.
NO_SNAPSHOT: Final = -1
EMPTY_SNAPSHOT: Final = -2


class RecoveryPoint:
    """Durable part of one log.  Without segments: a log that no round has seen yet."""

    def __init__(self, directory: str, identity: str) -> None:
        self.directory = directory
        self.identity = identity
        self.log_start_offset = 0
        self.recovery_offset = 0
        self.snapshot_offset = NO_SNAPSHOT
        self.segments: list[SegmentRow] = []

    def encode(self) -> str:
        segments = ",".join([row.encode() for row in self.segments])
        return (
            f"{self.directory} {self.identity or '-'} {self.log_start_offset} "
            f"{self.recovery_offset} {self.snapshot_offset} {segments}"
        )


def encode_recovery_points(rows: list[str]) -> bytes:
    """Encode the file's content from encoded rows."""
    return encode_lines(_FIRST_LINE, rows)


def decode_recovery_points(content: bytes) -> dict[str, RecoveryPoint] | None:
    """Decode the rows by directory; None if the file is damaged."""
    lines = decode_lines(_FIRST_LINE, content)
    if lines is None:
        return None
    rows = {}
    for line in lines:
        row = _decode_row(line)
        rows[row.directory] = row
    return rows


def _decode_row(line: str) -> RecoveryPoint:
    directory, identity, log_start_offset, recovery_offset, snapshot_offset, rest = line.split(" ")
    row = RecoveryPoint(directory, "" if identity == "-" else identity)
    row.log_start_offset = int(log_start_offset)
    row.recovery_offset = int(recovery_offset)
    row.snapshot_offset = int(snapshot_offset)
    row.segments = [decode_segment_row(segment) for segment in rest.split(",")]
    return row
