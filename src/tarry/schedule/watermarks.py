"""Watermarks of a schedule: the largest (due, s-offset) that was released for good.

A body at or below its watermark is done unless it is an exception, so a checkpoint need not name
each released body.  A watermark speaks of a range of s-offsets.  Usually there is one range.  A new
range begins after a clock that ran ahead was set back: bodies that are parked then are due before
many released ones, and all of them would be exceptions of the old watermark.  Hot.
"""

from __future__ import annotations

from tarry.base.limits import CHECKPOINT_WATERMARKS_MAX
from tarry.schedule.notes import ANY_OFFSET, Watermark
from tarry.schedule.pending import Body

_NO_TIME = -(2**63)


class ScheduleWatermarks:
    """Watermarks in the order of their ranges; the last range has no end."""

    def __init__(self, watermarks: list[Watermark]) -> None:
        self.watermarks = [_copy_of(each) for each in watermarks]

    def copy(self) -> list[Watermark]:
        """Return copies of the watermarks as they are now."""
        return [_copy_of(each) for each in self.watermarks]

    def begin(self, s_offset: int, now_wall_ms: int) -> None:
        """Begin a range for bodies from `s_offset` on, if the clock is behind the due time of the
        last watermark."""
        watermarks = self.watermarks
        if not watermarks or len(watermarks) >= CHECKPOINT_WATERMARKS_MAX:
            return
        last = watermarks[-1]
        if last.due_ms > now_wall_ms:
            last.before_offset = s_offset
            watermarks.append(Watermark(ANY_OFFSET, _NO_TIME, -1))

    def add(self, body: Body) -> None:
        """Raise the watermark to which a body belongs, whose release is committed."""
        watermarks = self.watermarks
        if not watermarks:
            watermarks.append(Watermark(ANY_OFFSET, body.due_ms, body.s_offset))
            return
        index = 0
        while watermarks[index].before_offset <= body.s_offset:
            index += 1
        watermark = watermarks[index]
        if watermark.covers(body.due_ms, body.s_offset):
            return
        watermark.due_ms = body.due_ms
        watermark.s_offset = body.s_offset
        # A watermark that has caught up with the one before it stands for both ranges.
        while len(watermarks) > 1 and watermarks[-1].covers(
            watermarks[-2].due_ms, watermarks[-2].s_offset
        ):
            del watermarks[-2]


def _copy_of(watermark: Watermark) -> Watermark:
    return Watermark(watermark.before_offset, watermark.due_ms, watermark.s_offset)
