"""A log's own view of its recovery point: what the file on disk says of it."""

from __future__ import annotations

from tarry.log.checkpoint import NO_SNAPSHOT, LogCheckpoint


class RecoveryPoint:
    """What was made sure of last, to see what has changed since."""

    def __init__(self) -> None:
        self.offset = -1
        # What the file may say after a crash: more than `offset` if a renaming was given up.
        self.offset_max = -1
        self.log_start_offset = -1
        self.snapshot_offset = NO_SNAPSHOT
        self.epochs_version = -1
        # The log's count of written bytes then.
        self.written_bytes = 0
        # The log's count of swaps of compacted segments then.
        self.swaps = 0
        # When a recovery point was tried last, whether it came about or not.
        self.tried_ms = 0

    def take_over(self, row: LogCheckpoint, written_bytes: int, epochs_version: int) -> None:
        """A recovery point holds; `epochs_version` is -1 if the epochs had not changed."""
        self.offset = row.recovery_offset
        self.offset_max = row.recovery_offset
        self.log_start_offset = row.log_start_offset
        self.snapshot_offset = row.snapshot_offset
        self.written_bytes = written_bytes
        if epochs_version >= 0:
            self.epochs_version = epochs_version
