"""Unflushed parts of a log, written and not known to be durable: bytes, names, the directory.

A flush covers what was there when it began: a mark remembers that, and `settle` takes it off.
Bytes that were cut off again may come back in a crash until a flush covers the cut, so a mark
from before a cut settles nothing.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.doors import Disk, LogFile
from tarry.log.identity import LogIdentity
from tarry.log.segment import Segment
from tarry.log.segments import LogPosition
from tarry.log.tail import TailPart


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
        self.segments: dict[Segment, None] = {}
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
        # Number of the cut that took the last segment behind a gap.
        self._gap_cut: i64 = 0
        self.identity = identity
        # Of the flushes under way, in the order of their ends.
        self._marks: tuple[FlushMark, ...] = ()

    @property
    def is_empty(self) -> bool:
        return len(self.segments) == 0 and self.names == self.flushed_names

    @property
    def has_cut(self) -> bool:
        """Return true if bytes that were cut off may still come back in a crash.

        Until a flush has covered the cut a copy may neither be fetched nor appended: behind what
        came back it could look like its sequel.
        """
        return self.flushed_cuts != self.cuts

    @property
    def has_truncation(self) -> bool:
        """Return true if what counted before it was cut off may still come back in a crash."""
        return self.last_truncation > self.flushed_cuts

    @property
    def has_gap_cut(self) -> bool:
        """Return true if a segment behind a gap was given up, and may come back in a crash."""
        return self._gap_cut > self.flushed_cuts

    def write(self, disk: Disk, part: TailPart) -> None:
        """Write a part of the tail, and whose log it is if that is missing; `StorageError` leaves
        its file as it was.
        """
        segment = part.segment
        if self.identity.is_missing:
            self.identity.save(disk)
            self.names += 1
        if not segment.has_file:
            self.names += 1
        segment.append_chunks(part.chunks, part.size)
        segment.newest.forget_older()
        self.add(segment)

    def note_name(self) -> None:
        """Count a name that was made or removed: the directory has to be flushed."""
        self.names += 1

    def make_name(self, disk: Disk, path: str) -> None:
        """Make an empty file, durable with the log's next flush."""
        disk.open(path, create=True).close()
        self.names += 1

    def add(self, segment: Segment) -> None:
        """Add a segment whose file has changed."""
        if not segment.is_dirty:
            segment.is_dirty = True
            self.segments[segment] = None

    def forget(self, segment: Segment) -> None:
        """Forget a segment that is durable, or not needed any more."""
        if segment.is_dirty:
            segment.is_dirty = False
            del self.segments[segment]

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
        self._marks = (*self._marks, self.mark(end, files, directories))

    def take_mark(self, end_offset: i64) -> FlushMark | None:
        """Return the mark of the flush up to `end_offset`, or None if a cut took it back."""
        marks = self._marks
        for place in range(len(marks)):
            mark = marks[place]
            if mark.end.offset == end_offset:
                self._marks = marks[place + 1 :]
                return mark
        return None

    def note_gap_cut(self) -> None:
        """Note that the cut which comes next takes a segment behind a gap."""
        self._gap_cut = self.cuts + 1

    def note_undone_write(self, segment: Segment) -> None:
        """Note that the rest of a failed write was cut off.

        It may come back in a crash, and recovery would stop there: the cut must be durable before
        anything after it is acknowledged.
        """
        self.cuts += 1
        self.add(segment)

    def note_cut(self) -> None:
        """Forget all marks: the log has a new end."""
        self._marks = ()
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
