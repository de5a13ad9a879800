"""Looks at the logs of compacted topics, of which the last record of each key is kept."""

from __future__ import annotations

from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.duties.looks import LogLooks
from tarry.log.compaction.cleanable import Cleanable, find_cleanable
from tarry.log.compaction.compaction import Compaction
from tarry.log.compaction.key_rule import KeyRule
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.key_and_release import KeyAndReleaseRule


class KeyedLooks(LogLooks):
    """Looks by Kafka's settings, such as `min.cleanable.dirty.ratio`."""

    def __init__(self, turn: Turn, settings: Settings) -> None:
        self._turn = turn
        self._settings = settings

    def cleanable(self, partition: ReplicatedLog) -> Cleanable | None:
        found = find_cleanable(partition.log, partition.removable_end(), self._turn.now_wall_ms)
        if not found.is_due:
            found.maybe_ask_for_recovery_point()
            return None
        return found

    def begin(self, partition: ReplicatedLog, cleanable: Cleanable) -> Compaction:
        log, leadership = partition.log, partition.leadership
        is_led = len(leadership.logs) == 1 or leadership.is_leader
        make_rule = KeyRule if is_led else KeyAndReleaseRule
        rule = make_rule(
            log,
            partition.producers.last_offsets(log.flushed_offset),
            self._settings.log_cleaner_dedupe_buffer_size,
        )
        return Compaction(log, cleanable.end_offset, rule)

    def is_for_nothing(self, partition: ReplicatedLog) -> bool:
        # Compaction that is switched off stops as well: the remaining old values are to stay.
        return not partition.log.config.has_compaction

    def end(self, partition: ReplicatedLog, compaction: Compaction) -> None:
        """Do nothing: the log tells how far it is clean."""
