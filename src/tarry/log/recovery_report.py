"""What recovery found in a log, for the operator and for tests."""

from __future__ import annotations


class RecoveryReport:
    """One opening of a log."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        # Bytes past the recovery point that were read again.
        self.scanned_bytes = 0
        # Bytes below it that were read because a snapshot or an index was missing.
        self.walked_bytes = 0
        # A torn tail: how many bytes were cut off, and the offset at which the log now ends.
        self.torn_bytes = 0
        self.torn_offset = -1
        self.torn_reason = ""
        # Segments that were left over and removed: paths without suffix.
        self.removed_segments: list[str] = []
        # Damage to what was durable; nothing was cut.
        self.flaw_offset = -1
        self.flaw_reason = ""

    @property
    def is_quiet(self) -> bool:
        """Nothing to tell."""
        return not (self.scanned_bytes or self.torn_bytes or self.flaw_reason)
