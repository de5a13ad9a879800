"""Reports of late records in the broker's log: how many of which topics, and by how much.

Records are late after a stop, a full disk, a time without a leader, or under too much load.  A line
is written when no late record has come for a moment, or a minute after the first; one a minute at
most.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.turn import Turn
from tarry.schedule.counts import TopicCounts

logger = logging.getLogger("tarry.broker")

# Time between two lines, at least.
REPORT_MS: Final = 60_000
# Time without a late record after which they are reported.
_QUIET_MS: Final = 500
# Topics that a line names, at most.
_NAMED_MAX: Final = 5


class LateReleases:
    """Topics with late records that were not reported yet."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._topics: dict[TopicCounts, None] = {}
        # Attended times of the first late record and of the last one.
        self._first_ms = 0
        self._last_ms = 0
        # Attended time from which on the next line may be written.
        self._next_ms = 0

    def __len__(self) -> int:
        return len(self._topics)

    def add(self, counts: TopicCounts) -> None:
        """Note a topic that has late records."""
        self._last_ms = self._turn.now_ms
        if not self._topics:
            self._first_ms = self._last_ms
        self._topics[counts] = None

    def report(self) -> None:
        """Write a line about all late records, if it is time for one."""
        now_ms = self._turn.now_ms
        is_quiet = now_ms >= self._last_ms + _QUIET_MS
        if now_ms < self._next_ms or not (is_quiet or now_ms >= self._first_ms + REPORT_MS):
            return
        self._next_ms = now_ms + REPORT_MS
        # The topics with the latest records first.
        taken = sorted(
            ((*counts.take_late(), counts.topic) for counts in self._topics),
            key=lambda each: (-each[1], each[2]),
        )
        self._topics.clear()
        named = [
            f"{count} of {topic} by up to {longest_ms / 1_000:.1f} s"
            for count, longest_ms, topic in taken[:_NAMED_MAX]
        ]
        rest = taken[_NAMED_MAX:]
        if rest:
            named.append(f"and {sum(each[0] for each in rest)} of {len(rest)} more topics")
        logger.warning("scheduled records came late: %s", ", ".join(named))
