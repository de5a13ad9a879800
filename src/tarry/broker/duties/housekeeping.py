"""Duties that are repeated by the clock: retention, recovery points, expiry, counters.

Retention and the expiry of offsets use the calendar, and skip a round after it jumped: a clock that
is set wrong for a minute must not delete anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.duties.calendar import CalendarWatch
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.flushes import Flushes
from tarry.broker.part import Parts
from tarry.log.logs import Logs
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")


class Duty(TimerEntry):
    """Duty that is repeated `interval_ms` after it was done."""

    def __init__(
        self, turn: Turn, timer: TimingWheel, interval_ms: int, do: Callable[[], None]
    ) -> None:
        super().__init__(turn.now_ms + interval_ms)
        self.interval_ms = interval_ms
        self._turn = turn
        self._timer = timer
        self._do = do
        timer.add(self)

    def expire(self) -> None:
        self._do()
        self.deadline_ms = self._turn.now_ms + self.interval_ms
        self._timer.add(self)


class DutyByCalendar(Duty):
    """Duty that depends on the age of something; it skips a round if the calendar jumped."""

    def __init__(
        self,
        turn: Turn,
        timer: TimingWheel,
        interval_ms: int,
        do: Callable[[], None],
        name: str,
    ) -> None:
        super().__init__(turn, timer, interval_ms, self._do_if_even)
        self._calendar = CalendarWatch(turn)
        self._do_by_calendar = do
        self._name = name

    def _do_if_even(self) -> None:
        jump_ms = self._calendar.jump_ms()
        if jump_ms != 0:
            logger.warning(
                "the wall clock jumped by %d s; %s waits until the next check in %d s",
                jump_ms // 1000,
                self._name,
                self.interval_ms // 1000,
            )
            return
        self._do_by_calendar()


class Counters:
    """Reporter of the faults of clients and the disk, and of purgatories' counters that have
    changed.
    """

    def __init__(self, answers: Answers, parts: Parts, logs: Logs) -> None:
        self._answers = answers
        self._parts = parts
        self._logs = logs
        self._written = self._counters()

    def tell(self) -> None:
        """Write the lines into the log."""
        self._answers.faults.flush(self._answers.turn.now_ms)
        self._logs.trouble.flush()
        before = self._written
        self._written = self._counters()
        for counters in self._written:
            if counters not in before:
                logger.debug(
                    "purgatory %s: watched %d, delayed %d, completed %d, expired %d", *counters
                )

    def _counters(self) -> list[tuple[str, int, int, int, int]]:
        return [
            (each.name, each.watched, each.delayed, each.completed_total, each.expired_total)
            for each in self._parts.purgatories()
        ]


class RecoveryPointRounds:
    """Writer of recovery points, which shorten the scan of a start after a crash."""

    def __init__(
        self, turn: Turn, logs: Logs, flushes: Flushes, deletions: RecordDeletions
    ) -> None:
        self._turn = turn
        self._points = logs.recovery_points
        self._flushes = flushes
        self._deletions = deletions

    def begin(self) -> None:
        """Begin a round unless one is under way or there is nothing to write."""
        flush_id = self._points.begin(self._turn.now_ms)
        if flush_id >= 0:
            self._deletions.on_round_begun()
            self._flushes.then(flush_id, self._on_flushed)

    def _on_flushed(self, flush_id: int) -> None:
        """Begin the next step of a round, because the last one is durable."""
        next_flush_id = self._points.on_flushed(flush_id)
        if next_flush_id >= 0:
            self._flushes.then(next_flush_id, self._on_flushed)
        self._deletions.on_step(is_round_over=next_flush_id < 0)
