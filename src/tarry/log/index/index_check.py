"""The entries of a segment's two index files, compared with the batches that are there."""

from __future__ import annotations

from tarry.log.index.offset_index import OffsetIndex
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX
from tarry.log.index.time_index import TimeIndex


class IndexCheck:
    """Hears of each batch of a segment, then judges its indexes."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        # By last offset: where the batch begins; its largest timestamp if none before was as late,
        # else -1.
        self._batches: dict[int, tuple[int, int]] = {}
        self._largest = -1

    def add(self, last_offset: int, position: int, max_timestamp: int) -> None:
        is_later = max_timestamp > self._largest
        self._largest = max(self._largest, max_timestamp)
        self._batches[last_offset] = (position, max_timestamp if is_later else -1)

    def problem(self, suffix: str, content: bytes, entries: int) -> str:
        """Return what is wrong with the first `entries` entries of an index file; "" if nothing."""
        if suffix == OFFSET_INDEX_SUFFIX:
            return self._offset_problem(content, entries)
        return self._time_problem(content, entries)

    def _offset_problem(self, content: bytes, entries: int) -> str:
        index = OffsetIndex(self.base_offset)
        if len(content) < entries * index.entry_bytes():
            return f"has {len(content)} bytes, too few for its {entries} entries"
        index.load(content, entries)
        for entry in range(entries):
            offset, position = int(index.offset_at(entry)), int(index.position_at(entry))
            batch = self._batches.get(offset)
            if batch is None:
                return f"entry {entry} names offset {offset}, at which no batch ends"
            if batch[0] != position:
                return f"entry {entry} puts offset {offset} at {position} and not at {batch[0]}"
        return ""

    def _time_problem(self, content: bytes, entries: int) -> str:
        index = TimeIndex(self.base_offset)
        if len(content) < entries * index.entry_bytes():
            return f"has {len(content)} bytes, too few for its {entries} entries"
        index.load(content, entries)
        for entry in range(entries):
            offset, timestamp = int(index.offset_at(entry)), int(index.timestamp_at(entry))
            batch = self._batches.get(offset)
            if batch is None:
                return f"entry {entry} names offset {offset}, at which no batch ends"
            if batch[1] != timestamp:
                return f"entry {entry} has time {timestamp} for offset {offset}, which is wrong"
        return ""
