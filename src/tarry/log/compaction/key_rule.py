"""Rule of a compacted topic: of all records with the same key only the last one stays.

A pass maps the keys of the dirty part, as many as fit in the buffer.  Control batches stay for
ever. So does the last batch of each producer, for its sequence, and the first batch of each leader
epoch, without records if they all go.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.batch import BatchCompaction, KeepRules
from tarry.log.compaction.effort import Effort
from tarry.log.compaction.key_map import KeyMap
from tarry.log.compaction.rule import BatchWork, CompactionRule
from tarry.log.log import Log
from tarry.records.batch import BatchHeader


class KeyRule(CompactionRule):
    """Rule of one compaction.

    `producer_ends` gives the last offset of each producer's last batch.
    """

    def __init__(self, log: Log, producer_ends: dict[int, int], buffer_bytes: i64) -> None:
        super().__init__(log, checks_crc=True)
        self.producer_ends = producer_ends
        self.keys = KeyMap(buffer_bytes)
        self._rules = KeepRules(self.keys, 0, 0)

    def begin_pass(self, target_offset: i64) -> i64:
        start_offset: i64 = max(self.log.compaction.cleaned_offset, self.log.log_start_offset)
        return start_offset if start_offset < target_offset else -1

    def map_end(self, target_offset: i64) -> i64:
        return target_offset

    def has_room(self, header: BatchHeader) -> bool:
        return self.keys.has_room(header.record_count)

    def mapped(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        return None if header.is_control else self._work(header, walk)

    def begin_copying(self, now_wall_ms: i64) -> None:
        super().begin_copying(now_wall_ms)
        self._rules = KeepRules(self.keys, now_wall_ms, self.log.config.delete_retention_ms)

    def kept(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        return None if header.is_control else self._work(header, walk)

    def _work(self, header: BatchHeader, walk: BatchWalk) -> BatchWork:
        return BatchCompaction(header, walk.block, walk.place_in_block(), self._rules)

    def keeps_header(self, header: BatchHeader) -> bool:
        return self._keeps_sequence(header) or super().keeps_header(header)

    def _keeps_sequence(self, header: BatchHeader) -> bool:
        """Return True if a batch must stay for its producer's sequence."""
        if not header.has_producer_id:
            return False
        last_offset = self.producer_ends.get(header.producer_id)
        return last_offset is not None and i64(last_offset) == header.last_offset

    def cleaned_offset(self, end_offset: i64) -> i64:
        return end_offset

    def try_clear(self, entries_max: i64) -> bool:
        return self.keys.try_clear(entries_max)
