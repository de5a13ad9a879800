"""Coverage: which part of a log its recovery point covers, and where a crash may have torn it.

A start and a verification go by the same rules, which are here.
"""

from __future__ import annotations

from tarry.log.compaction.checkpoint import FoundCompaction
from tarry.log.config import INT64_MAX
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint, uncovered_row


class Coverage:
    """Coverage of one log by its recovery point; the point is None if it is not known.

    Segments before the first of `rows` are left over.  Segments behind the last are not covered.
    """

    def __init__(
        self,
        listing: Listing,
        compaction: FoundCompaction,
        point: RecoveryPoint | None,
        *,
        was_clean: bool,
    ) -> None:
        base_offsets = listing.base_offsets
        if point is None or not point.segments:
            self.rows = [uncovered_row(base_offsets[0] if base_offsets else 0)]
            self.log_start_offset = self.recovery_offset = self.rows[0].base_offset
        else:
            checkpoint = compaction.checkpoint
            self.rows = checkpoint.covered_rows(point) if checkpoint else point.segments
            self.log_start_offset = point.log_start_offset
            self.recovery_offset = point.recovery_offset
        last_base_offset = self.rows[-1].base_offset
        if point is None and base_offsets:
            last_base_offset = base_offsets[-1]
        # Segments that begin below this offset may have gaps.
        self.gaps_end_offset = compaction.gaps_end_offset(last_base_offset)
        self._torn_base_offset_min = 0
        if point is not None and point.is_restart:
            # The files were to be removed, and some may still be there, in any state.
            pass
        elif was_clean:
            # Everything was flushed at the stop: nothing can be torn.
            self._torn_base_offset_min = INT64_MAX
        elif point is None:
            # Without a recovery point, segments before the last one count as flushed.
            self._torn_base_offset_min = last_base_offset

    def may_be_torn(self, base_offset: int, offset: int) -> bool:
        """Return True if a crash may leave an unsound batch here; elsewhere it is damage."""
        return base_offset >= self._torn_base_offset_min and offset >= self.recovery_offset
