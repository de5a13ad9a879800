"""Alarm: a call that a part of the broker delays; the alarm is armed and cancelled in place.

A part makes each of its alarms once.  A delayed operation, in contrast, is made for each request
and waits for keys besides its deadline.  Hot.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.turn import Turn
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel


class Alarm(TimerEntry):
    """Alarm that calls `act` once, when the delay given to `arm` has passed."""

    __slots__ = ("_act", "_timer", "_turn")

    def __init__(self, timer: TimingWheel, turn: Turn, act: Callable[[], None]) -> None:
        super().__init__(0)
        self._timer = timer
        self._turn = turn
        self._act = act

    def arm(self, delay_ms: int) -> None:
        """Call `act` in `delay_ms` of attended time, at least 1; replaces an earlier call."""
        self._timer.reschedule(self, self._turn.now_ms + max(delay_ms, 1))

    def cancel(self) -> None:
        """Cancel the call of `act`; the alarm may be armed again."""
        self._timer.cancel(self)

    def expire(self) -> None:
        self._act()
