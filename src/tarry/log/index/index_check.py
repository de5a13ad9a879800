"""The entries of a segment's two index files, compared with the batches that are there."""

from __future__ import annotations

from tarry.log.index.offset_index import OffsetIndex
from tarry.log.index.segment_indexes import OFFSET_INDEX_SUFFIX
from tarry.log.index.time_index import TimeIndex


class IndexCheck:
    """The check of a segment's two index files: `add` each batch, then ask for a `problem`."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        # Last offset of a batch -> its position, and its largest timestamp; -1 in place of the
        # timestamp if an earlier batch has one as late.
        self._batches: dict[int, tuple[int, int]] = {}
        self._largest = -1
        # Offset ranges of damaged batches, whose content is unknown.
        self._holes: list[range] = []

    def add_hole(self, offset: int, end_offset: int) -> None:
        """Exclude these offsets from the check, and all time entries behind them, because a damaged
        batch may hold the largest timestamp.
        """
        self._holes.append(range(offset, end_offset))

    def add(self, last_offset: int, position: int, max_timestamp: int) -> None:
        is_later = max_timestamp > self._largest
        self._largest = max(self._largest, max_timestamp)
        self._batches[last_offset] = (position, max_timestamp if is_later else -1)

    def problem(self, suffix: str, content: bytes, entries: int) -> str:
        """Return what is wrong with the first `entries` entries of an index file; "" if nothing."""
        times = None if suffix == OFFSET_INDEX_SUFFIX else TimeIndex(self.base_offset)
        offsets = OffsetIndex(self.base_offset)
        index: OffsetIndex | TimeIndex = offsets if times is None else times
        if len(content) < entries * index.entry_bytes():
            return f"has {len(content)} bytes, too few for its {entries} entries"
        index.load(content, entries)
        for entry in range(entries):
            offset = int(index.offset_at(entry))
            if times is not None and self._holes and offset >= self._holes[0].start:
                return ""
            if any(offset in hole for hole in self._holes):
                continue
            batch = self._batches.get(offset)
            if batch is None:
                return f"entry {entry} names offset {offset}, at which no batch ends"
            position, timestamp = batch
            if times is None and offsets.position_at(entry) != position:
                found = offsets.position_at(entry)
                return f"entry {entry} puts offset {offset} at {found} and not at {position}"
            if times is not None and times.timestamp_at(entry) != timestamp:
                found = times.timestamp_at(entry)
                return f"entry {entry} has time {found} for offset {offset}, which is wrong"
        return ""
