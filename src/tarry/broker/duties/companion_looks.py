"""Looks at companion logs: they find out how many of a log's records are still scheduled.

A look reads the notes and batch headers of the whole log.  So the broker looks at a log only if it
has closed segments and its high watermark has moved since the last look, and it pauses after a look
for 50 times the look's own time.  A log that is ten times as long is looked at a tenth as often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.duties.looks import LogLooks
from tarry.log.compaction.cleanable import Cleanable, find_closed
from tarry.log.compaction.compaction import Compaction
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.keeping import CompanionRule, PartitionFacts

# Pause after a look, as a multiple of its time: looks take 2 % of the broker's time.
_REST_FACTOR: Final = 50
_UNITS_PER_MS: Final = 1_000


class _LastLook:
    """Last look at one log: how far the log was known then, and the earliest time of the next."""

    def __init__(self, known_end: int, next_ms: int) -> None:
        self.known_end = known_end
        self.next_ms = next_ms


class CompanionLooks(LogLooks):
    """Looks at the companion logs of this broker."""

    def __init__(
        self, turn: Turn, settings: Settings, is_loading: Callable[[ReplicatedLog], bool]
    ) -> None:
        self._turn = turn
        self._settings = settings
        self._is_loading = is_loading
        self._last: dict[ReplicatedLog, _LastLook] = {}

    def forget_closed(self) -> None:
        """Forget the logs that this broker has closed."""
        for companion in [each for each in self._last if each.is_closed]:
            del self._last[companion]

    def cleanable(self, partition: ReplicatedLog) -> Cleanable | None:
        """Return the closed part of a log; None if it is too early for a look."""
        last = self._last.get(partition)
        known_end = partition.high_watermark
        if last is not None and (
            known_end == last.known_end or self._turn.monotonic_ms() < last.next_ms
        ):
            return None
        cleanable = find_closed(partition.log, known_end)
        if cleanable.dirty_bytes == 0:
            cleanable.maybe_ask_to_cover()
            return None
        return cleanable

    def begin(self, partition: ReplicatedLog, cleanable: Cleanable) -> Compaction:
        """Begin a look, and the compaction of the records that are not scheduled any more."""
        log = partition.log
        leadership = partition.leadership
        records = leadership.records
        facts = PartitionFacts(
            records.log.leader_epochs,
            int(records.log.log_start_offset),
            records.high_watermark,
            leadership.row.unclean_epoch,
        )
        rule = CompanionRule(
            log,
            facts,
            partition.high_watermark,
            partition.producers.kept_ends(log.flushed_offset),
            self._settings.log_cleaner_dedupe_buffer_size,
        )
        return Compaction(log, cleanable.end_offset, rule)

    def is_for_nothing(self, partition: ReplicatedLog) -> bool:
        return self._is_loading(partition)

    def end(self, partition: ReplicatedLog, compaction: Compaction) -> None:
        """Store how far a look has read the log, and when the next look may come."""
        rule = compaction.rule
        assert isinstance(rule, CompanionRule)
        known_end = -1 if rule.is_behind or compaction.is_abandoned else int(rule.known_end)
        rest_ms = int(compaction.looked_units) * _REST_FACTOR // _UNITS_PER_MS
        self._last[partition] = _LastLook(known_end, self._turn.monotonic_ms() + rest_ms)
