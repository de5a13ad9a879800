"""Places in a log, and what a flush covers of it."""

from __future__ import annotations

from mypy_extensions import i64

from tarry.log.segment import Segment


class LogPosition:
    """Where a batch begins, or where the written bytes end."""

    def __init__(self, offset: i64, segment_base_offset: i64, position: i64) -> None:
        self.offset: i64 = offset
        self.segment_base_offset: i64 = segment_base_offset
        self.position: i64 = position


class FlushMark:
    """What a flush that began at this moment covers."""

    def __init__(self, end: LogPosition, names: i64, cuts: i64) -> None:
        self.end = end
        # Of the log then: a flush that began before a cut does not cover what came after.
        self.cuts: i64 = cuts
        self.names: i64 = names
        self.segments: list[Segment] = []
        self.sizes: list[int] = []
