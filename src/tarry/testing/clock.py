"""Clock of a broker in a thread: moved on by a test, while the clients' clocks stay as they are.

A broker distrusts its clocks.  If the calendar gets ahead of the monotonic clock by an hour, the
broker takes it for set; if the monotonic clock gets ahead of the turns by a second, the broker
takes the process for stopped.  In both cases it deletes and expires nothing.  Therefore a test
moves time in smaller steps, with a turn after each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.limits import STALL_MS
from tarry.broker.broker import Broker
from tarry.broker.duties.calendar import CLOCK_JUMP_MS
from tarry.runtime.clock import Clock
from tarry.runtime.thread import BrokerThread
from tarry.testing.settings import duration_ms

CALENDAR_STEP_MS: Final = CLOCK_JUMP_MS // 2
# Time by which the monotonic clock moves with each step of the calendar.
DUE_MS: Final = 2
SESSION_STEP_MS: Final = STALL_MS // 2


class MovableClock(Clock):
    """Clocks of the machine, plus the time that a test has added to them."""

    def __init__(self) -> None:
        self.added_ms = 0
        self.added_wall_ms = 0
        # Monotonic time at which the clock is held, -1 if it is not.  A held clock moves only by
        # added time: otherwise a busy machine would look like a stopped process.
        self._held_ms = -1

    def now_ms(self) -> int:
        return (super().now_ms() if self._held_ms < 0 else self._held_ms) + self.added_ms

    def now_wall_ms(self) -> int:
        return super().now_wall_ms() + self.added_wall_ms

    def hold(self) -> None:
        """Stop the monotonic clock, except for added time."""
        self._held_ms = super().now_ms()

    def release(self) -> None:
        """Let the monotonic clock run again."""
        self._held_ms = -1


class BrokerClock:
    """Clock of a running broker.  Each method returns when the broker has reacted to the new time.

    Times are `"500ms"`, `"45s"`, `"1h"`, `"7d"`, or numbers of seconds.
    """

    def __init__(self, thread: BrokerThread, clock: MovableClock) -> None:
        self._thread = thread
        self._clock = clock

    @property
    def now_ms(self) -> int:
        """Calendar of the broker, in ms since 1970."""
        return self._clock.now_wall_ms()

    def advance(self, duration: str | float) -> None:
        """Let the calendar go on: retention and the expiry of offsets happen, sessions go on.

        Records keep the timestamps that their producers gave them.
        """
        self._move(duration_ms(duration), CALENDAR_STEP_MS, self._step_calendar)

    def jump(self, duration: str | float, *, back: bool = False) -> None:
        """Set the calendar, as an operator does: the broker notices, and waits with what it does
        by the calendar until it has seen the clock go on from there."""
        by_ms = duration_ms(duration)
        self._move(by_ms, by_ms, lambda _, step_ms: self._set(-step_ms if back else step_ms))

    def advance_sessions(self, duration: str | float) -> None:
        """Let the monotonic clock go on: whoever is silent meanwhile loses its session, and every
        wait in the broker comes to its end.

        The members of a group cannot send heartbeats so fast: those that live join again.
        """
        self._move(duration_ms(duration), SESSION_STEP_MS, self._step_sessions)

    def _move(self, by_ms: int, step_ms: int, step: Callable[[Broker, int], None]) -> None:
        def move(broker: Broker) -> None:
            self._clock.hold()
            try:
                left_ms = by_ms
                while left_ms > 0:
                    step(broker, min(left_ms, step_ms))
                    left_ms -= step_ms
                    self._thread.take_turn()
                self._thread.rest()
            finally:
                self._clock.release()

        self._thread.call(move)

    def _step_calendar(self, broker: Broker, step_ms: int) -> None:
        self._clock.added_wall_ms += step_ms
        # Calendar duties compare the clocks once in minutes: make them due now.
        self._clock.added_ms += DUE_MS
        for duty in broker.calendar_duties:
            broker.timer.reschedule(duty, broker.this_turn.now_ms + 1)

    def _set(self, step_ms: int) -> None:
        self._clock.added_wall_ms += step_ms

    def _step_sessions(self, broker: Broker, step_ms: int) -> None:
        self._clock.added_ms += step_ms
        self._clock.added_wall_ms += step_ms
