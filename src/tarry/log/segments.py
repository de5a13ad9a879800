"""Segments of one log in the order of their offsets, the condemned ones, and the first flaw.

Invariants: there is at least one segment; each begins where the one before ended, or behind that
end if compaction took the last batches.  Hot: every read looks up its segment.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.doors import FileRegion
from tarry.base.errors import StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.segment import Segment

logger = logging.getLogger("tarry.log")


@mypyc_attr(acyclic=True)
class LogPosition:
    """Position where a batch begins, or where the written bytes end; never changed."""

    def __init__(self, offset: i64, segment_base_offset: i64, position: i64) -> None:
        self.offset: i64 = offset
        self.segment_base_offset: i64 = segment_base_offset
        self.position: i64 = position


# Position that lies in no log.
NO_POSITION: Final = LogPosition(-1, -1, -1)


class Segments:
    """Segments that readers see, and condemned ones, whose files wait for a recovery point."""

    def __init__(self, directory: str, segments: list[Segment]) -> None:
        self.directory = directory
        self.kept = segments
        # Segments below the log start; their files go once a recovery point has that start.
        self.condemned: tuple[Segment, ...] = ()
        # Offset of the first flaw (-1: none); reads at or behind it are refused, and all appends.
        self.flaw_offset: i64 = -1
        self.flaw_reason = ""
        self.flaw_segment: Segment | None = None

    @property
    def last(self) -> Segment:
        return self.kept[-1]

    def index_of(self, offset: i64) -> i64:
        """Return the index of the last segment that begins at or before `offset`."""
        segments = self.kept
        last: i64 = len(segments) - 1
        if offset >= segments[last].base_offset:
            return last
        low: i64 = 0
        high = last
        while low < high:
            middle = (low + high) >> 1
            if segments[middle].base_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    def holding(self, offset: i64) -> Segment:
        """Return the segment that holds `offset`."""
        return self.kept[self.index_of(offset)]

    def position_of(self, offset: i64) -> LogPosition:
        """Return where the batch that contains `offset` begins."""
        self._check_flaw(offset)
        segment = self.holding(offset)
        try:
            position = segment.find(offset, segment.written_size)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise
        return LogPosition(offset, segment.base_offset, position)

    def read(
        self,
        offset: i64,
        end: LogPosition,
        size_max: i64,
        at_least_one: bool,
        start: LogPosition | None,
    ) -> FileRegion | None:
        """Find whole batches as `Log.read` does; `CorruptData` or `StorageError` at a flaw."""
        self._check_flaw(offset)
        if offset >= end.offset:
            return None
        try:
            return self._read(offset, end, size_max, at_least_one, start)
        except Flaw as flaw:
            self.note_flaw(flaw)
            raise

    def _read(
        self,
        offset: i64,
        end: LogPosition,
        size_max: i64,
        at_least_one: bool,
        start: LogPosition | None,
    ) -> FileRegion | None:
        index = self.index_of(offset)
        while True:
            segment = self.kept[index]
            if segment.base_offset >= end.offset:
                return None
            limit = limit_of(segment, end)
            if start is not None and start.segment_base_offset == segment.base_offset:
                begin = start.position
            else:
                begin = segment.find(offset, limit)
            if begin < limit:
                break
            if segment.base_offset >= end.segment_base_offset:
                return None
            # Compaction took the last batches of this segment: continue with the next one.
            index += 1
        stop = limit
        if limit - begin > size_max:
            stop = segment.boundary_before(begin, begin + size_max, limit)
            if stop == begin:
                if not at_least_one:
                    return None
                stop = segment.end_of_batch(begin, limit)
        segment.files.used(segment)
        return FileRegion(segment.file(), begin, stop - begin)

    # --- Flaws.

    def note_flaw(self, flaw: Flaw) -> None:
        """Note a flaw: from here on reads at or behind it are refused, and all appends."""
        if 0 <= self.flaw_offset <= flaw.offset:
            return
        line = "%s is damaged at offset %d: %s; records before it are served, new ones refused"
        logger.error(line, self.directory, flaw.offset, flaw)
        self.flaw_offset = flaw.offset
        self.flaw_reason = str(flaw)
        self.flaw_segment = self.holding(flaw.offset)
        self.flaw_segment.end_at_flaw(flaw.position)

    def has_flaw_before(self, offset: i64) -> bool:
        """Return True if `offset` lies at or behind a flaw."""
        return 0 <= self.flaw_offset <= offset

    def _check_flaw(self, offset: i64) -> None:
        if self.has_flaw_before(offset):
            raise StorageError(self.refusal())

    def refusal(self) -> str:
        """Return the message for a read or an append that a flaw refuses."""
        return f"{self.directory} has a flaw at offset {self.flaw_offset}"

    # --- Changes.

    def begin_anew(self, segment: Segment) -> list[Segment]:
        """Keep only this new segment, without a flaw; return all earlier segments."""
        left = [*self.kept, *self.condemned]
        self.kept = [segment]
        self.condemned = ()
        self.flaw_offset = -1
        self.flaw_reason = ""
        self.flaw_segment = None
        return left

    def replace(self, sources: list[Segment], segment: Segment) -> None:
        """Replace `sources`, which follow each other, by `segment`."""
        first = self.index_of(sources[0].base_offset)
        assert self.kept[first] is sources[0]
        self.kept[first : first + len(sources)] = [segment]

    def cut_behind(self, segment: Segment) -> list[Segment]:
        """Make `segment` the last one; return the segments that followed it."""
        kept = self.kept.index(segment) + 1
        later = self.kept[kept:]
        del self.kept[kept:]
        return later

    def condemn_below(self, offset: i64, stays: Segment | None) -> list[Segment]:
        """Condemn segments that end at or below `offset`, up to `stays`; return them."""
        given_up: list[Segment] = []
        while len(self.kept) > 1 and self.kept[1].base_offset <= offset:
            if self.kept[0] is stays:
                break
            given_up.append(self.kept.pop(0))
        self.condemned = (*self.condemned, *given_up)
        return given_up

    def release(self, count: i64, later: i64) -> list[Segment]:
        """Remove the first `count` condemned segments, and those from `later` on; close them."""
        released = [*self.condemned[:count], *self.condemned[later:]]
        self.condemned = self.condemned[count:later]
        for segment in released:
            segment.close()
        return released


def limit_of(segment: Segment, end: LogPosition) -> i64:
    """Return the position up to which a reader that ends at `end` may read the segment."""
    if segment.base_offset == end.segment_base_offset:
        return min(end.position, segment.written_size)
    return segment.written_size
