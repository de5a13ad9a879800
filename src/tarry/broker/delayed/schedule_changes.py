"""DelayedScheduleChanges: waits until no outcome of a request about scheduled records can change.

A request is decided in steps, and the records of a step are written in its turn.  The answer is
given when each log has passed the offset on which an outcome depends.  Outcomes are examined in
steps too, because a request may have tens of thousands of changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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

# Limit of the changes settled in one turn, of all requests together; they take 3 ms, interpreted.
SETTLED_PER_TURN_MAX: Final = 2_000


class AwaitedScheduleChanges:
    """Changes of one request; `part` keeps the request while it waits.

    `rows` has their statuses by topic and partition, in the order of the request.
    """

    def __init__(
        self, long_answers: LongAnswers, part: ScheduleChanges, context: RequestContext
    ) -> None:
        self._long_answers = long_answers
        self._part = part
        self.context = context
        self.rows: list[tuple[str, list[tuple[int, list[ChangeStatus]]]]] = []
        self._pending: list[ChangeStatus] = []
        # Statuses of `_pending` that were decided in this turn.
        self._fresh: list[ChangeStatus] = []
        self._keys: dict[WatchKey, None] = {}

    def add(self, status: ChangeStatus) -> None:
        """Add a change whose outcome has to be awaited."""
        if status.log is not None:
            self._pending.append(status)
            self._fresh.append(status)
            self._keys[status.log.watch_key] = None

    def keys(self) -> list[WatchKey]:
        """Return the watch keys of the logs on which outcomes depend, or have depended."""
        return list(self._keys)

    def settle_after_write(self) -> list[WatchKey]:
        """Fail changes whose records the disk has refused in this turn; return the keys of their
        logs.
        """
        keys: dict[WatchKey, None] = {}
        for status in self._fresh:
            if status.log is not None:
                keys[status.log.watch_key] = None
                status.fail_what_was_not_written()
        self._fresh = []
        return list(keys)

    def try_settle(self) -> bool:
        """Settle changes from the last one on; return true if none is left.

        It stops at the first one that has to wait, so that not all of them are examined each time
        that a log moves.  When the turn's share is used up, it continues in the next turn.
        """
        pending = self._pending
        while pending:
            if not self._part.may_settle():
                self._part.go_on_with(self)
                return False
            if not pending[-1].try_settle():
                return False
            pending.pop()
        return True

    def respond(self) -> None:
        """Answer the request, with REQUEST_TIMED_OUT for changes that are not settled."""
        self._pending = []
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
                    if not status.try_settle():
                        status.fail(errors.REQUEST_TIMED_OUT, "it may have been done or not")
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
    """Requests that change schedules, until their outcomes are certain."""

    def __init__(self, timer: TimingWheel) -> None:
        super().__init__(timer, "ChangeScheduledRecords")
        # Requests that have appended something in this turn.
        self._unwritten: dict[AwaitedScheduleChanges, None] = {}
        # Requests with changes left to settle, and the number of changes left for this turn.
        self._unsettled: dict[AwaitedScheduleChanges, None] = {}
        self._left = SETTLED_PER_TURN_MAX

    def may_settle(self) -> bool:
        """Count a change; return False if no more changes may be settled in this turn."""
        self._left -= 1
        return self._left >= 0

    def go_on_with(self, changes: AwaitedScheduleChanges) -> None:
        """Continue to settle the changes of a request in the next turn."""
        self._unsettled[changes] = None

    def step(self) -> None:
        self._left = SETTLED_PER_TURN_MAX
        unsettled = self._unsettled
        if not unsettled:
            return
        self._unsettled = {}
        for changes in unsettled:
            for key in changes.keys()[:1]:
                self.touch(key)

    def settle_after_write(self, changes: AwaitedScheduleChanges) -> None:
        """Check a request's changes after this turn's write, which the disk may have refused."""
        self._unwritten[changes] = None

    def settle(self) -> None:
        unwritten = self._unwritten
        if not unwritten:
            return
        self._unwritten = {}
        for changes in unwritten:
            for key in changes.settle_after_write():
                self.touch(key)

    def on_moved(self, partition: ReplicatedLog) -> None:
        if self.purgatory.delayed:
            self.touch(partition.watch_key)

    def has_work_left(self) -> bool:
        return len(self._unwritten) > 0 or len(self._unsettled) > 0 or len(self.touched) > 0
