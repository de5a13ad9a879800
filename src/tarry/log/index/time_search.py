"""Search by time: the first record at or after a timestamp, and the one with the largest.

The answer is exact to the record, inside compressed batches too and with timestamps in any order.
The time index names a batch before which all records are earlier.  The search walks headers from
there and opens only batches whose largest timestamp is late enough.  A batch that cannot be opened
answers with its first offset: a record too early is better than one skipped.  A batch answers with
its first offset too once the search has opened SEARCH_BYTES_MAX, which happens where headers claim
later timestamps than the records have.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import BatchWalk, Flaw
from tarry.log.segment import Segment
from tarry.log.segments import Segments
from tarry.records.batch import BatchHeader
from tarry.records.record import RecordTime, RecordTimes, open_records

# Bytes of decompressed records that one search may open: 20 ms of a turn.
SEARCH_BYTES_MAX: Final = 8 * 1024 * 1024

# (timestamp, offset, leader epoch)
FoundRecord = tuple[int, int, int]


class SearchedPart:
    """Records of a log from `start_offset` up to a reader's `end_offset`."""

    def __init__(self, order: Segments, start_offset: int, end_offset: int) -> None:
        self.order = order
        self.segments = list(order.kept)
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.budget = Budget()

    def run(self, search: _Search) -> FoundRecord | None:
        """Run the search in its segment; `StorageError` if a known flaw hides the answer, `Flaw`
        for new damage.
        """
        order = self.order
        found: FoundRecord | None = None
        if not order.has_flaw_before(search.segment.base_offset):
            is_flawed = search.segment is order.flaw_segment
            try:
                found = search.run()
            except Flaw as flaw:
                order.note_flaw(flaw)
                raise
            if found is not None or not is_flawed:
                return found
        raise StorageError(order.refusal())


def offset_for_time(part: SearchedPart, timestamp: int) -> FoundRecord | None:
    """Find the first record whose timestamp is `timestamp` or later; `Flaw` for damage."""
    for segment in part.segments:
        if segment.base_offset >= part.end_offset:
            return None
        if segment.max_timestamp < timestamp:
            continue
        found = part.run(_FirstFrom(part, segment, timestamp))
        if found is not None:
            return found
    return None


def max_timestamp_offset(part: SearchedPart) -> FoundRecord | None:
    """Find the record with the largest timestamp, the first of several; `Flaw` for damage."""
    best: FoundRecord | None = None
    for segment in part.segments:
        if segment.base_offset >= part.end_offset:
            break
        if segment.max_timestamp < 0 or (best is not None and segment.max_timestamp <= best[0]):
            continue
        found = part.run(_Latest(part, segment))
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return best


class Budget:
    """Bytes of decompressed records that a search may still open."""

    def __init__(self) -> None:
        self.bytes_left = SEARCH_BYTES_MAX

    def open(self, data: bytes, header: BatchHeader) -> RecordTimes:
        """Open the times of a batch's records; `CorruptData` if that fails or no budget is left."""
        if self.bytes_left <= 0:
            raise CorruptData("the search has opened too much")
        try:
            cursor = open_records(data, 0, header, self.bytes_left)
        except CorruptData:
            # The failed attempt may have decompressed as much as was allowed.
            self.bytes_left = 0
            raise
        self.bytes_left -= cursor.end - cursor.position
        return RecordTimes(cursor, header)


class _Search:
    """A walk over the headers of one segment, up to the reader's end offset."""

    def __init__(self, part: SearchedPart, segment: Segment) -> None:
        self.segment = segment
        self.start_offset = part.start_offset
        self.end_offset = part.end_offset
        self.limit = segment.written_size
        self.budget = part.budget

    def run(self) -> FoundRecord | None:
        raise NotImplementedError

    def can_trust(self, entry: int) -> bool:
        """Return True if this entry of the time index and the next agree with their batches.

        If one does not, rebuild the indexes, and return True if that succeeded.
        """
        segment = self.segment
        times = segment.loaded().times
        for checked in range(max(entry, 0), min(entry + 2, times.count)):
            if not segment.is_time_entry_true(checked):
                return segment.try_rebuild_indexes()
        return True

    def next_header(self, walk: BatchWalk) -> BatchHeader | None:
        """Return the next batch that holds records between the log's start and the reader's end."""
        while (header := self.segment.next_header(walk)) is not None:
            if header.base_offset >= self.end_offset:
                return None
            if header.last_offset >= self.start_offset:
                return header
        return None


class _FirstFrom(_Search):
    """The first record at or after a time."""

    def __init__(self, part: SearchedPart, segment: Segment, timestamp: int) -> None:
        super().__init__(part, segment)
        self.timestamp = timestamp

    def run(self) -> FoundRecord | None:
        walk = self._start()
        while (header := self.next_header(walk)) is not None:
            if header.max_timestamp < self.timestamp:
                continue
            found = self._open(walk, header)
            if found is not None and found.offset < self.end_offset:
                return found.timestamp, found.offset, header.leader_epoch
        return None

    def _open(self, walk: BatchWalk, header: BatchHeader) -> RecordTime | None:
        first_offset = max(header.base_offset, self.start_offset)
        if header.is_log_append_time:
            return RecordTime(header.max_timestamp, first_offset)
        try:
            times = self.budget.open(walk.batch_bytes(header), header)
            while times.advance():
                if times.timestamp >= self.timestamp and times.offset >= first_offset:
                    return RecordTime(times.timestamp, times.offset)
        except CorruptData:
            return RecordTime(header.max_timestamp, first_offset)
        return None

    def _start(self) -> BatchWalk:
        """Return a walk from a position before which all batches are earlier than `timestamp`.

        A time entry is made together with an offset entry and holds the largest timestamp up to
        there.  The first batch that is late enough therefore comes after the offset entry that
        precedes the next time entry.  Behind the last time entry it comes after the last offset
        entry.
        """
        segment = self.segment
        if not self.can_trust(segment.loaded().times.entry_of_timestamp(self.timestamp)):
            return segment.walk(0, self.limit)
        times = segment.loaded().times
        offsets = segment.loaded().offsets
        entry = times.entry_of_timestamp(self.timestamp)
        if entry >= 0 and times.timestamp_at(entry) == self.timestamp:
            # The batch of a time entry is the first one with its timestamp.
            return segment.walk(segment.find(times.offset_at(entry), self.limit), self.limit)
        if entry + 1 < times.count:
            near = offsets.entry_of_offset(times.offset_at(entry + 1) - 1)
        else:
            near = offsets.count - 1
        return segment.walk_from_entry(near, self.limit)


class _Latest(_Search):
    """The record with the largest timestamp."""

    def run(self) -> FoundRecord | None:
        best: BatchHeader | None = None
        best_position = 0
        walk = self._start()
        while (header := self.next_header(walk)) is not None:
            if best is None or header.max_timestamp > best.max_timestamp:
                best = header
                best_position = walk.batch_position
        if best is None:
            return None
        return self._open(best, best_position)

    def _open(self, header: BatchHeader, position: int) -> FoundRecord | None:
        found = (header.max_timestamp, header.base_offset, header.leader_epoch)
        if header.is_log_append_time:
            return found
        data = self.segment.file().read(position, header.size)
        latest: FoundRecord | None = None
        try:
            times = self.budget.open(data, header)
            while times.advance():
                if latest is None or times.timestamp > latest[0]:
                    latest = (times.timestamp, times.offset, header.leader_epoch)
        except CorruptData:
            return found
        return latest

    def _start(self) -> BatchWalk:
        """Return a walk from a batch; no readable batch before it has a later timestamp."""
        segment = self.segment
        if not self.can_trust(segment.loaded().times.entry_before_offset(self.end_offset)):
            return segment.walk(0, self.limit)
        times = segment.loaded().times
        entry = times.entry_before_offset(self.end_offset)
        offset = self.start_offset
        if entry >= 0:
            offset = max(offset, times.offset_at(entry))
        return segment.walk(segment.find(offset, self.limit), self.limit)
