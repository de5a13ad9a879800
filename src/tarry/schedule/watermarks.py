"""Watermarks of a schedule: the largest (due, s-offset) that was released for good.

What is at or below its watermark and not an exception is done, so that a checkpoint need not name
each body that was released.  A watermark speaks of a range of s-offsets.  There is one range; where
a clock that ran ahead was set back, another one begins: what is parked from then on is due before
much that was released, and all of it would be exceptions.  Hot.
"""

from __future__ import annotations

from tarry.base.limits import CHECKPOINT_WATERMARKS_MAX
from tarry.schedule.notes import ANY_OFFSET, Watermark
from tarry.schedule.pending import Body

_NO_TIME = -(2**63)


class ScheduleWatermarks:
    """Watermarks in the order of their ranges, the last one of all that is to come."""

    def __init__(self, watermarks: list[Watermark]) -> None:
        self.watermarks = [_copy_of(each) for each in watermarks]

    def copy(self) -> list[Watermark]:
        """Return them as they are now."""
        return [_copy_of(each) for each in self.watermarks]

    def begin(self, s_offset: int, now_wall_ms: int) -> None:
        """Begin a range for what is parked from `s_offset` on, if the calendar is behind what was
        released."""
        watermarks = self.watermarks
        if not watermarks or len(watermarks) >= CHECKPOINT_WATERMARKS_MAX:
            return
        last = watermarks[-1]
        if last.due_ms > now_wall_ms:
            last.before_offset = s_offset
            watermarks.append(Watermark(ANY_OFFSET, _NO_TIME, -1))

    def add(self, body: Body) -> None:
        """Take a body that was released for good into the watermark that it belongs to."""
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
        # The one that has caught up with those before it stands for them too.
        while len(watermarks) > 1 and watermarks[-1].covers(
            watermarks[-2].due_ms, watermarks[-2].s_offset
        ):
            del watermarks[-2]


def _copy_of(watermark: Watermark) -> Watermark:
    return Watermark(watermark.before_offset, watermark.due_ms, watermark.s_offset)
