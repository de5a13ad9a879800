"""DelayedProduce: waits until each partition's records may be acknowledged.

Every partition starts at REQUEST_TIMED_OUT.  It is settled by its high watermark (acks=-1), by the
leader's flushed end (acks=1 and 0), or by an error.  An expiry answers settled partitions as
settled, and the records stay.  With acks=0 the end of the wait replaces the answer, so that the
connection's next request sees the records.  Hot: under `flush.policy=commit` every produce waits
here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base import errors
from tarry.broker.delayed.shares import RequestInShares
from tarry.broker.metadata.leader_hints import LeaderHints
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.partition.replicated_log import ReplicatedLog, WatchKey
from tarry.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from tarry.purgatory.operation import PayloadOperation
from tarry.timer.wheel import TimingWheel

# Number of shares of one produce that may wait at once.  Under `flush.policy=commit` each of their
# partitions is a log to flush, and a producer beside them waits for two rounds of flushes.
SHARES_WAITING_MAX: Final = 10


class ProduceStatus:
    """Status of one partition of the request: the offset that has to count, and its row of the
    answer.
    """

    def __init__(
        self,
        partition: ReplicatedLog | None,
        required_offset: int,
        answer: PartitionProduceResponse,
        throttle_ms: int = 0,
    ) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.answer = answer
        self.is_pending = partition is not None
        # Throttle time of the answer: the client must pause for it.
        self.throttle_ms = throttle_ms
        # Leadership at the append: if another broker has led since, the records may be others.
        self.led_since = 0 if partition is None else partition.leadership.led_since

    def settle(self, error_code: int) -> None:
        """Settle the partition; its answer keeps the offset of the records."""
        self.is_pending = False
        self.answer.error_code = error_code

    def fail(self, error_code: int) -> None:
        """Settle the partition with an error that leaves no offset to tell."""
        self.settle(error_code)
        self.answer.base_offset = -1
        self.answer.s_offset = -1


class Produced:
    """Produce request whose records wait, with its acks, its partitions and its answer."""

    def __init__(
        self,
        context: RequestContext,
        acks: int,
        statuses: list[ProduceStatus],
        response: ProduceResponse,
        hints: LeaderHints,
    ) -> None:
        self.context = context
        self.acks = acks
        self.statuses = statuses
        self.response = response
        self._hints = hints

    def settle(self) -> bool:
        """Settle the partitions that can be settled; return true if none is left."""
        pending: i64 = 0
        for status in self.statuses:
            if not status.is_pending:
                continue
            partition = status.partition
            assert partition is not None
            if partition.leadership.gone_code != errors.NONE:
                status.fail(partition.leadership.gone_code)
            elif partition.leadership.led_since != status.led_since:
                status.fail(errors.NOT_LEADER_OR_FOLLOWER)
            elif partition.acked_end(self.acks) >= status.required_offset:
                self._settle(status, partition)
            elif partition.leadership.rests():
                # Another broker may lead by now, and flushes and replicas here may never make the
                # records count.
                status.fail(errors.NOT_LEADER_OR_FOLLOWER)
            else:
                pending += 1
        return pending == 0

    def _settle(self, status: ProduceStatus, partition: ReplicatedLog) -> None:
        if self.acks == -1 and partition.leadership.is_under_min_isr():
            # The records are in the log, but on fewer replicas than the topic requires.  The high
            # watermark stops below the floor, so this happens only if a replica is lost in the same
            # turn in which the high watermark passed the records.
            status.settle(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        else:
            status.settle(errors.NONE)

    def waits_for(self, operation: DelayedProduce) -> None:
        """Note that the request waits for this operation from now on."""
        self.context.operation = operation

    def answer(self) -> None:
        """Answer, with REQUEST_TIMED_OUT for partitions that are not settled."""
        is_lost = False
        is_moved = False
        for status in self.statuses:
            if status.is_pending:
                status.fail(errors.REQUEST_TIMED_OUT)
            elif status.answer.error_code == errors.KAFKA_STORAGE_ERROR:
                is_lost = True
            elif status.answer.error_code == errors.NOT_LEADER_OR_FOLLOWER:
                is_moved = True
        context = self.context
        if is_moved:
            self._hints.add_to_produce(context, self.response)
        if self.acks != 0:
            context.respond(self.response)
        elif is_lost:
            context.close_connection("a produce with acks=0 was lost: KAFKA_STORAGE_ERROR")
        else:
            context.respond_nothing()


@mypyc_attr(allow_interpreted_subclasses=True)
class ProduceInShares:
    """Produce to thousands of partitions, appended in shares of some of them, a few in a turn.

    A share is checked, appended, written and awaited as a request of its own would be, so each
    partition has what one turn would give it.  The request is answered once, when the last share is
    appended and no share waits any more.  While many shares wait, no further one is appended: the
    logs of other producers have to be flushed too.
    """

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self.context = context
        self.request = request
        self.response = ProduceResponse()
        self.operation = RequestInShares()
        context.operation = self.operation
        self._pending: i64 = 0
        self._is_appended = False
        self._is_paused = False
        self._is_hurried = False

    def go_on(self) -> None:
        """Append further shares after a pause."""
        raise NotImplementedError

    def forget_batches(self) -> None:
        """Append no further share, and release the request's frame."""
        raise NotImplementedError

    def respond(self) -> None:
        """Answer the request; `response` has the result of every partition."""
        raise NotImplementedError

    def begin_share(self) -> None:
        """Note that one more share waits."""
        self._pending += 1

    def end_share(self) -> None:
        """Note that all partitions of a share are settled."""
        self._pending -= 1
        if self._is_paused and 2 * self._pending <= SHARES_WAITING_MAX:
            self._end_pause()
        self._maybe_respond()

    def hurry(self) -> None:
        """Append the rest without a pause, because other produces may need the room of its
        batches.
        """
        self._is_hurried = True
        if self._is_paused:
            self._end_pause()

    def _end_pause(self) -> None:
        self._is_paused = False
        # With acks=0 all shares are appended, even if the peer has gone.
        if not self.operation.is_completed or self.request.acks == 0:
            self.go_on()
        else:
            self.forget_batches()

    def must_pause(self) -> bool:
        """Return whether so many shares wait that appending has to pause; `go_on` ends the
        pause.
        """
        self._is_paused = self._pending >= SHARES_WAITING_MAX and not self._is_hurried
        return self._is_paused

    def end_appends(self) -> None:
        """Note that the last share is appended."""
        self._is_appended = True
        self._maybe_respond()

    def _maybe_respond(self) -> None:
        if self._is_appended and self._pending == 0 and self.operation.force_complete():
            self.respond()


class ProducedShare(Produced):
    """Share of a produce to thousands of partitions."""

    def __init__(
        self, whole: ProduceInShares, statuses: list[ProduceStatus], hints: LeaderHints
    ) -> None:
        super().__init__(whole.context, whole.request.acks, statuses, whole.response, hints)
        self._whole = whole
        whole.begin_share()

    def waits_for(self, operation: DelayedProduce) -> None:
        self._whole.operation.add(operation)

    def answer(self) -> None:
        for status in self.statuses:
            if status.is_pending:
                status.fail(errors.REQUEST_TIMED_OUT)
        self._whole.end_share()


class DelayedProduce(PayloadOperation[Produced]):
    """Wait of one produce request, which is answered when its last partition is settled."""

    def context_waits(self) -> None:
        """Note that the request waits for this operation from now on."""
        produced = self.payload
        assert produced is not None
        produced.waits_for(self)

    def fail_what_was_not_written(self) -> None:
        """Fail partitions whose records were lost with the tail.  Called after the turn's write."""
        produced = self.payload
        assert produced is not None
        for status in produced.statuses:
            partition = status.partition
            if (
                partition is not None
                and status.is_pending
                and status.required_offset > partition.log.written_end_offset
            ):
                status.fail(errors.KAFKA_STORAGE_ERROR)

    def keys(self) -> list[WatchKey]:
        """Return the watch keys of the partitions that are not settled."""
        produced = self.payload
        assert produced is not None
        keys: list[WatchKey] = []
        for status in produced.statuses:
            partition = status.partition
            if partition is not None and status.is_pending:
                keys.append(partition.watch_key)
        return keys

    def is_ready(self, payload: Produced) -> bool:
        return payload.settle()

    def complete_with(self, payload: Produced) -> None:
        payload.answer()


class Produces(WaitingPart):
    """Produces whose batches are in tails, and produces that wait until their records count."""

    completions_wake_nobody = True

    def __init__(self, timer: TimingWheel, hints: LeaderHints) -> None:
        super().__init__(timer, "Produce")
        self.hints = hints
        self._unsettled: list[DelayedProduce] = []

    def settle_after_write(self, operation: DelayedProduce) -> None:
        """Take a produce whose batches are in tails; it goes on once they are written."""
        self._unsettled.append(operation)

    def settle(self) -> None:
        unsettled = self._unsettled
        if not unsettled:
            return
        self._unsettled = []
        for operation in unsettled:
            operation.fail_what_was_not_written()
            if not operation.try_complete():
                operation.context_waits()
                self.watch(operation, operation.keys())

    def on_moved(self, partition: ReplicatedLog) -> None:
        self.touch(partition.watch_key)

    def has_work_left(self) -> bool:
        return len(self._unsettled) > 0 or len(self.touched) > 0
