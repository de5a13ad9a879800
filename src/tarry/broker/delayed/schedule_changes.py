"""DelayedScheduleChanges: waits until no answer about scheduled records can become another one.

A request is decided in steps, and what a step has appended is written in its turn.  The answer is
given when each log has passed what an outcome rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.broker.scheduling.changing import ChangeStatus
from tarry.partition.replicated_log import ReplicatedLog, WatchKey
from tarry.protocol.messages.change_scheduled_records import (
    ChangeScheduledRecordsResponse,
    SchedulePartitionResult,
    ScheduleTopicResult,
)
from tarry.purgatory.operation import PayloadOperation
from tarry.timer.wheel import TimingWheel


class AwaitedScheduleChanges:
    """Changes by one request.

    `rows` has their statuses by topic and partition, in the order of the request.
    """

    def __init__(self, long_answers: LongAnswers, context: RequestContext) -> None:
        self._long_answers = long_answers
        self.context = context
        self.rows: list[tuple[str, list[tuple[int, list[ChangeStatus]]]]] = []
        self._pending: list[ChangeStatus] = []

    def add(self, status: ChangeStatus) -> None:
        """Wait for one more change."""
        if status.log is not None:
            self._pending.append(status)

    def keys(self) -> list[WatchKey]:
        """Return the watch keys of the logs that are waited for."""
        keys: dict[WatchKey, None] = {}
        for status in self._pending:
            if status.log is not None:
                keys[status.log.watch_key] = None
        return list(keys)

    def fail_what_was_not_written(self) -> None:
        """After the turn's write: settle what the disk has not taken."""
        for status in self._pending:
            status.fail_what_was_not_written()

    def try_settle(self) -> bool:
        """Settle changes from the last one on; true if none is left.

        It stops at the first one that has to wait, so that many of them are not looked at each
        time that a log moves.
        """
        pending = self._pending
        while pending and pending[-1].try_settle():
            pending.pop()
        return not pending

    def respond(self) -> None:
        """Answer the request, with REQUEST_TIMED_OUT for what is not settled."""
        for status in self._pending:
            if not status.try_settle():
                status.fail(errors.REQUEST_TIMED_OUT, "it may have been done or not")
        answer = LongAnswer(self.context)
        self._long_answers.begin(answer, self._steps(answer))

    def _steps(self, answer: LongAnswer) -> Iterator[int]:
        answer.open(ChangeScheduledRecordsResponse())
        for name, partitions in self.rows:
            answer.open(ScheduleTopicResult(name))
            for index, statuses in partitions:
                answer.open(SchedulePartitionResult(index))
                yield 1
                for status in statuses:
                    answer.add(status.result)
                    yield 1
                answer.close()
            answer.close()
            yield 1


class DelayedScheduleChanges(PayloadOperation[AwaitedScheduleChanges]):
    """The answer to one ChangeScheduledRecords request."""

    def is_ready(self, payload: AwaitedScheduleChanges) -> bool:
        return payload.try_settle()

    def complete_with(self, payload: AwaitedScheduleChanges) -> None:
        payload.respond()


class ScheduleChanges(WaitingPart):
    """Requests that change schedules, while they are decided and until their answers stand."""

    def __init__(self, timer: TimingWheel) -> None:
        super().__init__(timer, "ChangeScheduledRecords")
        # Of what was appended in this turn.
        self._unwritten: dict[AwaitedScheduleChanges, None] = {}

    def settle_after_write(self, changes: AwaitedScheduleChanges) -> None:
        """Have a request hear after this turn's write what the disk has not taken."""
        self._unwritten[changes] = None

    def settle(self) -> None:
        unwritten = self._unwritten
        if not unwritten:
            return
        self._unwritten = {}
        for changes in unwritten:
            keys = changes.keys()
            changes.fail_what_was_not_written()
            for key in keys:
                self.touch(key)

    def on_moved(self, partition: ReplicatedLog) -> None:
        if self.purgatory.delayed:
            self.touch(partition.watch_key)

    def has_work_left(self) -> bool:
        return len(self._unwritten) > 0 or len(self.touched) > 0
