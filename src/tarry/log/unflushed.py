"""What of a log is written and not known to be durable: bytes, names, the directory itself.

A flush covers what was there when it began: a mark remembers that, and `settle` takes it off.
Bytes that were cut off again may come back in a crash until a flush covers the cut, so a mark
from before a cut settles nothing.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.log.identity import Identity
from tarry.log.position import FlushMark, LogPosition
from tarry.log.segment import Segment


class Unflushed:
    """The segments and names of one log that need a flush."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.segments: list[Segment] = []
        # Names made or removed in the directory, counted; and how many of them are durable.
        self.names: i64 = 0
        self.flushed_names: i64 = 0
        # The directory itself is new: its name lies in its parent.
        self.is_directory_new = False
        # Times that written bytes were cut off again.
        self.cuts: i64 = 0
        self.identity = Identity(directory, b"")

    @property
    def is_empty(self) -> bool:
        return len(self.segments) == 0 and self.names == self.flushed_names

    def add(self, segment: Segment) -> None:
        """The segment's file has changed."""
        if not segment.is_dirty:
            segment.is_dirty = True
            self.segments.append(segment)

    def forget(self, segment: Segment) -> None:
        """The segment is durable, or not needed any more."""
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

    def settle(self, mark: FlushMark) -> None:
        """The flush that a mark was taken for is complete."""
        if mark.cuts != self.cuts:
            return
        for i in range(len(mark.segments)):
            segment = mark.segments[i]
            segment.flushed_size = max(segment.flushed_size, mark.sizes[i])
            if segment.flushed_size == segment.written_size:
                self.forget(segment)
        if mark.names > self.flushed_names:
            self.flushed_names = mark.names
            self.is_directory_new = False
            self.identity.file = None
