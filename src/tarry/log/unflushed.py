"""Unflushed parts of a log, written and not known to be durable: bytes, names, the directory.

A flush covers what was there when it began: a mark remembers that, and `settle` takes it off.
Bytes that were cut off again may come back in a crash until a flush covers the cut, so a mark
from before a cut settles nothing.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.doors import Disk, LogFile
from tarry.log.identity import LogIdentity
from tarry.log.open_files import OpenFiles
from tarry.log.segment import Segment
from tarry.log.segments import LogPosition
from tarry.log.tail import TailMark


class FlushMark:
    """Bytes and names that a flush covers, as they are when it begins."""

    def __init__(self, end: LogPosition, names: i64, cuts: i64) -> None:
        self.end = end
        # Of the log then: a flush that began before a cut does not cover what came after.
        self.cuts: i64 = cuts
        self.names: i64 = names
        self.segments: list[Segment] = []
        self.sizes: list[int] = []


class Unflushed:
    """The segments and names of one log that need a flush."""

    def __init__(self, directory: str, identity: LogIdentity) -> None:
        self.directory = directory
        self.segments: list[Segment] = []
        # Names made or removed in the directory, counted; and how many of them are durable.
        self.names: i64 = 0
        self.flushed_names: i64 = 0
        # The directory itself is new: its name lies in its parent.
        self.is_directory_new = False
        # Times that written bytes were cut off again, how many of those cuts are durable, and which
        # of them was the last that took away what counted (the others undid a write that failed).
        self.cuts: i64 = 0
        self.flushed_cuts: i64 = 0
        self.last_truncation: i64 = 0
        self.identity = identity
        # Of the flushes under way, in the order of their ends.
        self._marks: list[FlushMark] = []

    @property
    def is_empty(self) -> bool:
        return len(self.segments) == 0 and self.names == self.flushed_names

    def begin_write(self, disk: Disk, segment: Segment) -> None:
        """Write whose log it is, if that is missing, and count the names that come with a write."""
        if self.identity.is_missing:
            self.identity.save(disk)
            self.names += 1
        if not segment.has_file:
            self.names += 1

    def add(self, segment: Segment) -> None:
        """Add a segment whose file has changed."""
        if not segment.is_dirty:
            segment.is_dirty = True
            self.segments.append(segment)

    def forget(self, segment: Segment) -> None:
        """Forget a segment that is durable, or not needed any more."""
        if segment.is_dirty:
            segment.is_dirty = False
            self.segments.remove(segment)

    def mark(
        self, end: LogPosition, files: list[LogFile], directories: dict[str, None]
    ) -> FlushMark:
        """Name what has to be flushed; returns what that flush covers."""
        mark = FlushMark(end, self.names, self.cuts)
        for segment in self.segments:
            files.append(segment.file())
            mark.segments.append(segment)
            mark.sizes.append(segment.written_size)
        if self.identity.file is not None:
            files.append(self.identity.file)
        if self.names != self.flushed_names:
            directories[self.directory] = None
            if self.is_directory_new:
                directories[self.directory.rpartition("/")[0]] = None
        return mark

    def begin_flush(
        self, end: LogPosition, files: list[LogFile], directories: dict[str, None]
    ) -> None:
        """Name what has to be flushed, and keep the mark until `take_mark`."""
        self._marks.append(self.mark(end, files, directories))

    def take_mark(self, end_offset: i64) -> FlushMark | None:
        """Return the mark of the flush up to `end_offset`, or None if a cut took it back."""
        marks = self._marks
        for place in range(len(marks)):
            mark = marks[place]
            if mark.end.offset == end_offset:
                del marks[: place + 1]
                return mark
        return None

    def note_cut(self) -> None:
        """Forget all marks: the log has a new end."""
        self._marks.clear()
        self.cuts += 1
        self.last_truncation = self.cuts

    def settle(self, mark: FlushMark) -> None:
        """Settle the flush that a mark was taken for: it is complete."""
        if mark.cuts != self.cuts:
            return
        self.flushed_cuts = mark.cuts
        for i in range(len(mark.segments)):
            segment = mark.segments[i]
            segment.flushed_size = max(segment.flushed_size, mark.sizes[i])
            if segment.flushed_size == segment.written_size:
                self.forget(segment)
        if mark.names > self.flushed_names:
            self.flushed_names = mark.names
            self.is_directory_new = False
            self.identity.file = None


class WrittenLog:
    """Written bytes of a log, how far they are durable, and what a flush of them has to cover.

    `Log` is what appends to it and reads it.
    """

    def __init__(
        self, directory: str, files: OpenFiles, active: Segment, identity: LogIdentity
    ) -> None:
        self.directory = directory
        self.files = files
        self.active: Segment = active
        self.written_end_offset: i64 = active.base_offset
        self.flushed_offset: i64 = active.base_offset
        self.flushed_end = LogPosition(-1, -1, -1)
        self.tail_mark: TailMark | None = None
        self.unflushed = Unflushed(directory, identity)

    @property
    def disk(self) -> Disk:
        return self.files.disk

    @property
    def has_undurable_cut(self) -> bool:
        """Return true if bytes that were cut off may still come back in a crash.

        Until a flush has covered the cut a copy may neither be fetched nor appended: behind what
        came back it could look like its sequel.
        """
        return self.unflushed.flushed_cuts != self.unflushed.cuts

    def end_position(self) -> LogPosition:
        """Return where the written bytes end."""
        last = self.active if self.tail_mark is None else self.tail_mark.active
        return LogPosition(self.written_end_offset, last.base_offset, last.written_size)

    @property
    def is_dirty(self) -> bool:
        """Return true if something that was written is not known to be durable."""
        return self.flushed_offset < self.written_end_offset or not self.unflushed.is_empty

    @property
    def has_unflushed_bytes(self) -> bool:
        """Return true if a segment's file was changed and not flushed since."""
        return len(self.unflushed.segments) > 0

    def note_name(self) -> None:
        """Count a name that was made or removed: the directory has to be flushed."""
        self.unflushed.names += 1

    def note_change(self, segment: Segment) -> None:
        """Take down that the segment's file was changed: it has to be flushed."""
        self.unflushed.add(segment)

    def mark_flush(self, files: list[LogFile], directories: dict[str, None]) -> FlushMark:
        """Name what has to be flushed; return what that flush covers, for `settle`."""
        return self.unflushed.mark(self.end_position(), files, directories)

    def collect_flush(self, files: list[LogFile], directories: dict[str, None]) -> i64:
        """Add what must be flushed to make everything below the returned offset durable."""
        self.unflushed.begin_flush(self.end_position(), files, directories)
        return self.written_end_offset

    def flush_refused(self, offset: i64) -> None:
        """Note that the flush of what `collect_flush` named was never begun."""
        self.unflushed.take_mark(offset)

    def flushed(self, offset: i64) -> None:
        """Note that the flush of what `collect_flush` named is complete."""
        mark = self.unflushed.take_mark(offset)
        if mark is None:
            # Cut off in the meantime.
            return
        self.settle(mark)
        if offset > self.flushed_offset:
            self.flushed_offset = offset
            self.flushed_end = mark.end

    def settle(self, mark: FlushMark) -> None:
        """Settle the flush that a mark was taken for: it is complete."""
        self.unflushed.settle(mark)
        self.files.trim()
