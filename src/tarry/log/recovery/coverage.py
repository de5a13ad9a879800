"""Coverage: what a recovery point covers of a log, and where a crash may have torn it.

One set of rules for a start, which goes by them, and for verification, which reports by them.
"""

from __future__ import annotations

from tarry.log.compaction.checkpoint import FoundCompaction
from tarry.log.config import INT64_MAX
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint, uncovered_row


class Coverage:
    """Coverage of one log by its recovery point, which is None if it is not known.

    Segments before the first of `rows` are left over; those behind the last are not covered.
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
        # Segments that begin below it may have gaps.
        self.gaps_end_offset = compaction.gaps_end_offset(last_base_offset)
        self._torn_base_offset_min = 0
        if point is not None and point.is_restart:
            # What is there was to be removed, and may not all have been.
            pass
        elif was_clean:
            # All of it was flushed: nothing can be torn.
            self._torn_base_offset_min = INT64_MAX
        elif point is None:
            # Nothing is known: segments before the last were flushed in all likelihood.
            self._torn_base_offset_min = last_base_offset

    def may_be_torn(self, base_offset: int, offset: int) -> bool:
        """Return whether a crash may leave what is not sound at an offset of a segment; else it is
        damage.
        """
        return base_offset >= self._torn_base_offset_min and offset >= self.recovery_offset
