"""DelayedScheduleChanges: waits until no answer about scheduled records can become another one.

A request is decided in steps, and what a step has appended is written in its turn.  The answer is
given when each log has passed what an outcome rests on.  To look at that is done in steps too: a
request may have tens of thousands of changes.
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

# Changes that are settled in one turn, of all requests together: 3 ms, interpreted.
SETTLED_PER_TURN_MAX: Final = 2_000


class AwaitedScheduleChanges:
    """Changes by one request; `part` is where they wait.

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
        # Those of them that were decided in this turn.
        self._fresh: list[ChangeStatus] = []
        self._keys: dict[WatchKey, None] = {}

    def add(self, status: ChangeStatus) -> None:
        """Wait for one more change."""
        if status.log is not None:
            self._pending.append(status)
            self._fresh.append(status)
            self._keys[status.log.watch_key] = None

    def keys(self) -> list[WatchKey]:
        """Return the watch keys of the logs that are waited for, or were."""
        return list(self._keys)

    def settle_after_write(self) -> list[WatchKey]:
        """Settle what the disk has not taken of this turn; return the watch keys of its logs."""
        keys: dict[WatchKey, None] = {}
        for status in self._fresh:
            if status.log is not None:
                keys[status.log.watch_key] = None
                status.fail_what_was_not_written()
        self._fresh = []
        return list(keys)

    def try_settle(self) -> bool:
        """Settle changes from the last one on; true if none is left.

        It stops at the first one that has to wait, so that many of them are not looked at each
        time that a log moves.  When the turn's share is used up it goes on in the next one.
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
        """Answer the request, with REQUEST_TIMED_OUT for what is not settled."""
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
    """Requests that change schedules, while they are decided and until their answers stand."""

    def __init__(self, timer: TimingWheel) -> None:
        super().__init__(timer, "ChangeScheduledRecords")
        # Of what was appended in this turn.
        self._unwritten: dict[AwaitedScheduleChanges, None] = {}
        # Those that were not settled to the end, and what this turn has left for them.
        self._unsettled: dict[AwaitedScheduleChanges, None] = {}
        self._left = SETTLED_PER_TURN_MAX

    def may_settle(self) -> bool:
        """Count a change that is settled; False if this turn settles no more."""
        self._left -= 1
        return self._left >= 0

    def go_on_with(self, changes: AwaitedScheduleChanges) -> None:
        """Have a request's changes settled on in the next turn."""
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
        """Have a request hear after this turn's write what the disk has not taken."""
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
