"""Unflushed parts of a log, written and not known to be durable: bytes, names, the directory.

A flush covers what was written when it began.  A mark holds that state, and `settle` notes it as
durable.  Bytes that were cut off may come back in a crash until a flush covers the cut, so a mark
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
        # `Unflushed.cuts` at that time: a flush that began before a cut does not cover later bytes.
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
        # True if the directory itself is new: its parent must be flushed too.
        self.is_directory_new = False
        # Number of cuts of written bytes; the number of the last durable one; and the number of the
        # last cut that took valid batches (the others undid a failed write).
        self.cuts: i64 = 0
        self.flushed_cuts: i64 = 0
        self.last_truncation: i64 = 0
        # Number of the last cut that took a segment behind a gap.
        self._gap_cut: i64 = 0
        self.identity = identity
        # Marks of the flushes under way, in the order of their ends.
        self._marks: tuple[FlushMark, ...] = ()

    @property
    def is_empty(self) -> bool:
        return len(self.segments) == 0 and not self.has_new_names

    @property
    def has_new_names(self) -> bool:
        """True if a flush has to open the log's directory."""
        return self.names != self.flushed_names

    @property
    def must_open(self) -> bool:
        """True if the next flush has to open the directory, or a segment's file."""
        return self.has_new_names or any(not segment.is_open for segment in self.segments)

    @property
    def has_cut(self) -> bool:
        """True if bytes that were cut off may come back in a crash.

        Until a flush has covered the cut a copy may neither be fetched nor appended: bytes that
        come back could be taken for its continuation.
        """
        return self.flushed_cuts != self.cuts

    @property
    def has_truncation(self) -> bool:
        """True if valid batches that were cut off may come back in a crash."""
        return self.last_truncation > self.flushed_cuts

    @property
    def has_gap_cut(self) -> bool:
        """True if a segment behind a gap was removed and may come back in a crash."""
        return self._gap_cut > self.flushed_cuts

    def write(self, disk: Disk, part: TailPart) -> None:
        """Write a part of the tail, and first the identity file if it is missing; `StorageError`
        leaves the segment's file as it was.
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
        """Count a name that was made or removed, so that the next flush covers the directory."""
        self.names += 1

    def make_name(self, disk: Disk, path: str) -> None:
        """Make an empty file; the log's next flush makes it durable."""
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
        """Add the files and directories to flush; return a mark of what that flush covers."""
        mark = FlushMark(end, self.names, self.cuts)
        for segment in self.segments:
            files.append(segment.file())
            mark.segments.append(segment)
            mark.sizes.append(segment.written_size)
        if self.identity.file is not None:
            files.append(self.identity.file)
        if self.has_new_names:
            directories[self.directory] = None
            if self.is_directory_new:
                directories[self.directory.rpartition("/")[0]] = None
        return mark

    def begin_flush(
        self, end: LogPosition, files: list[LogFile], directories: dict[str, None]
    ) -> None:
        """Add the files and directories to flush, and keep the mark until `take_mark`."""
        self._marks = (*self._marks, self.mark(end, files, directories))

    def take_mark(self, end_offset: i64) -> FlushMark | None:
        """Return the mark of the flush up to `end_offset`; None if a cut has dropped it."""
        marks = self._marks
        for place in range(len(marks)):
            mark = marks[place]
            if mark.end.offset == end_offset:
                self._marks = marks[place + 1 :]
                return mark
        return None

    def note_gap_cut(self) -> None:
        """Note that the next cut takes a segment behind a gap."""
        self._gap_cut = self.cuts + 1

    def note_undone_write(self, segment: Segment) -> None:
        """Note that the bytes of a failed write were cut off.

        A crash may bring them back, and recovery would stop there.  The cut must be durable before
        any later batch is acknowledged.
        """
        self.cuts += 1
        self.add(segment)

    def note_cut(self) -> None:
        """Drop all marks and count the cut: the log has a new end."""
        self._marks = ()
        self.cuts += 1
        self.last_truncation = self.cuts

    def settle(self, mark: FlushMark) -> None:
        """Note as durable what `mark` covers, unless a cut has happened since."""
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
