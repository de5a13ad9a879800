"""What a log knows of its own compaction.  Hot, since the log is."""

from __future__ import annotations

from mypy_extensions import i64


class CompactionState:
    """Invariant: cleaned_offset <= end_offset but while the first swaps of a pass are done."""

    def __init__(self) -> None:
        # Records below it have been compared with all later ones below it.
        self.cleaned_offset: i64 = 0
        # Segments that begin below it are compaction's and may have gaps.
        self.end_offset: i64 = 0
        # Of the last swap or attempt at one: it makes the names of new files unique.
        self.generation: i64 = 0
        # Swaps of this life: a recovery point from before the last one says what is no more.
        self.swaps: i64 = 0
        # It waits for the next recovery point.
        self.needs_recovery_point = False
        # Segments are being read: none of them may go.
        self.is_under_way = False
